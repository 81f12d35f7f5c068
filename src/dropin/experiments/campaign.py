"""The campaign: all runs of the results page, in the order of what they tell.

A campaign is a list of parts, each some runs of a registered experiment. It can be stopped at any
time: what is done is kept, and the next start goes on with the first run that is missing.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import median

from dropin.core import registry
from dropin.core.errors import InputError, StoppedError
from dropin.evaluation.evaluate import LEGACY_ENVS, LEGACY_EPISODES
from dropin.experiments.analyses import AnalysisCache
from dropin.experiments.kept import keep_analyses, kept_name, publish, write_failure
from dropin.experiments.planning import (
    Job,
    Progress,
    StoredRun,
    find_runs,
    plan,
)
from dropin.experiments.results import CompletedRuns
from dropin.experiments.runs import GPL, PAPER_LEARNERS, PAPER_SEEDS, Options
from dropin.experiments.timing import estimate_seconds
from dropin.training.config import RunConfig
from dropin.training.parallel import run_all
from dropin.training.run_directory import RunDirectory

__all__ = ["BLOCKS", "PARTS", "Campaign", "MachineSpeed", "Part", "measured_seconds"]

MIN_INTERVALS = 5
"""How many times between checkpoints it takes to measure the speed of a run."""
MAX_SPEEDUP = 20.0
"""A run that seems faster than expected by more than this was copied, not trained here."""


@dataclass(frozen=True)
class Part:
    """Runs of one experiment that belong together in a campaign."""

    block: int
    experiment: str
    """Name of a registered experiment."""
    seeds: int
    """Number of runs of each kind, from seed 0 on."""
    games: tuple[str, ...] | None = None
    """Only these games; all of the experiment if None."""
    learners: tuple[str, ...] | None = None
    """Only these learners; all of the experiment if None."""
    rules: str = "reference"

    def options(self, steps: int | None = None) -> Options:
        """Return the options of the experiment, with evaluations as in the authors' program.

        Args:
            steps: Length of all runs; the paper's if it is None.
        """
        evaluation = {"num_envs": LEGACY_ENVS, "episodes": LEGACY_EPISODES}
        return Options(
            rules=self.rules,
            seeds=self.seeds,
            steps=steps,
            games=self.games,
            learners=self.learners,
            settings={"evaluation": evaluation},
        )


BLOCKS: Mapping[int, str] = {
    1: "table 2 and figure 2 in level-based foraging and Wolfpack",
    2: "table 2 and figures 2 and 3a in FortAttack",
    3: "the appendices and figure 3b",
    4: "the rules of the paper's text",
}
"""What the blocks are, by number."""
_GRID_GAMES, _FORT = ("lbf", "wolfpack"), ("fortattack",)
_BASELINES = tuple(name for name in PAPER_LEARNERS if name not in GPL)
_FEW = ("gpl-q", "ql", "gnn-am")
"""The learners in FortAttack where an appendix asks for many."""
PARTS = (
    Part(1, "table2", PAPER_SEEDS, _GRID_GAMES),
    Part(2, "table2", 3, _FORT, GPL),
    Part(2, "table2", 1, _FORT, _BASELINES),
    Part(2, "table2", 2, _FORT, _BASELINES),
    Part(3, "diversity", 2),
    Part(3, "partners", 2, _GRID_GAMES),
    Part(3, "partners", 1, _FORT),
    Part(3, "team-of-two", 2, _GRID_GAMES),
    Part(3, "team-of-two", 1, _FORT, _FEW),
    Part(3, "fixed-types", 1, _FORT, _FEW),
    Part(3, "wolfpack-utilities", 2),
    Part(3, "shooting-values", 1, _FORT, _FEW),
    Part(3, "figure3b", 1),
    Part(4, "table2", 2, _FORT, ("gpl-q",), "paper"),
    Part(4, "table2", 2, _GRID_GAMES, (*GPL, "ql", "gnn-am"), "paper"),
)
"""The campaign of the results page, in the order in which it is run."""


class Campaign:
    """The runs of a campaign: what exists of them, and how the rest is trained and kept.

    Args:
        directory: Where new runs go.
        results: Where finished runs are kept, without checkpoints and agents.
        search: Further directories to search for runs.
        parts: The parts, in order.
        steps: Length of all runs; the paper's if it is None.
    """

    def __init__(
        self,
        directory: Path,
        results: Path,
        search: Sequence[Path] = (),
        parts: Iterable[Part] = PARTS,
        steps: int | None = None,
    ):
        self.directory, self.results, self.steps = directory, results, steps
        self._stored = find_runs([directory, results, *search])
        self.plans: dict[Part, list[Job]] = {}
        """The runs of each part, those with small seeds first."""
        for part in parts:
            spec, options = registry.experiments[part.experiment], part.options(steps)
            jobs = plan(
                spec.grids(options),
                options,
                directory,
                needs_agents=spec.needs_agents,
                experiment=spec.name,
                stored=self._stored,
            )
            self.plans[part] = sorted(jobs, key=lambda job: job.config.seed)

    @property
    def jobs(self) -> list[Job]:
        """All runs in the order of the campaign, each once."""
        every = (job for jobs in self.plans.values() for job in jobs)
        return list({job.run.path: job for job in every}.values())

    @cached_property
    def speed(self) -> "MachineSpeed":
        """The speed of this machine, as far as runs were trained here."""
        return MachineSpeed(run for runs in self._stored.values() for run in runs)

    def seconds_left(self) -> float:
        """Return about how long the rest of the campaign takes on one core."""
        return sum(self.speed.seconds_left(job) for job in self.jobs)

    def keep(self) -> None:
        """Keep the runs that are done, and the results of analyses of their agents."""
        for job in self.jobs:
            self._keep(job)
        self._keep_analyses()

    def run(self, report: str = "auto") -> None:
        """Train the runs that are not done, in order, and keep each one that is.

        Args:
            report: How to report progress: `auto`, `lines`, `json` or `none`.

        Raises:
            StoppedError: If some runs failed, once all others are done.
            KeyboardInterrupt: If it was interrupted, once all runs are saved.
        """
        self.keep()
        left = {
            str(kept_name(job.config)): job
            for job in self.jobs
            if job.progress is not Progress.DONE
        }

        def ended(name: str, failure: str) -> None:
            if failure:
                write_failure(left[name].config, failure, self.results)
            self._keep(left[name].refreshed())
            self._keep_analyses()

        if left:
            run_all(
                {name: ["--resume", str(job.run.path)] for name, job in left.items()},
                report,
                on_start=lambda name: left[name].create(),
                on_end=ended,
            )

    def _keep(self, job: Job) -> None:
        """Keep a run that is done and has its last agent; others stay where they are."""
        run = job.run
        if job.progress is not Progress.DONE or run.path.is_relative_to(self.results):
            return
        if run.final_step not in RunDirectory(run.path).steps_with_agent():
            return
        try:
            publish(run, self.results, with_agent=job.needs.experiment == "table2")
        except (InputError, StoppedError) as error:
            warnings.warn(f"{run.path} is not kept: {error}", stacklevel=2)

    def _keep_analyses(self) -> None:
        """Analyse the agents of runs that are done with all seeds, and keep the results.

        The best checkpoint of a learner depends on all of its seeds.
        """
        for part, jobs in self.plans.items():
            spec = registry.experiments[part.experiment]
            groups: dict[tuple[str, str, str], list[Job]] = {}
            for job in jobs if spec.needs_agents else ():
                key = (job.grid, job.config.game, job.config.learner)
                groups.setdefault(key, []).append(job.refreshed())
            for group in groups.values():
                if all(self._can_be_analysed(job) for job in group):
                    cache = AnalysisCache(self.directory / "analyses")
                    spec.result(CompletedRuns(group, part.options(self.steps), cache))
                    for job in group:
                        used = cache.used.get(job.run.identity, {})
                        keep_analyses(job.run, spec.name, used, self.results)

    def _can_be_analysed(self, job: Job) -> bool:
        """Return whether a run is done and has its agents: it is not only kept."""
        return job.progress is Progress.DONE and not job.run.path.is_relative_to(self.results)


class MachineSpeed:
    """How fast this machine is, measured by the runs that were trained on it.

    Args:
        runs: Runs; those that are not done, or without their agents, say nothing.
    """

    def __init__(self, runs: Iterable[StoredRun]):
        ratios: dict[tuple[str, str], list[float]] = {}
        for run in runs:
            seconds = measured_seconds(run)
            ratio = None if seconds is None else seconds / estimate_seconds(run.config)
            if ratio is not None and ratio > 1 / MAX_SPEEDUP:
                ratios.setdefault((run.config.game, run.config.learner), []).append(ratio)
        self._ratios = {kind: median(found) for kind, found in ratios.items()}
        self.num_runs = sum(map(len, ratios.values()))
        """How many runs it is measured by."""

    def seconds(self, config: RunConfig) -> float:
        """Return about how long a whole run takes on one core.

        It is measured by runs of the same learner and game or, if there are none, judged by all
        runs, or else by the speed of another machine.

        Args:
            config: The settings of the run.
        """
        usual = median(self._ratios.values()) if self._ratios else 1.0
        return self._ratios.get((config.game, config.learner), usual) * estimate_seconds(config)

    def seconds_left(self, job: Job) -> float:
        """Return about how long the rest of a run takes on one core.

        Args:
            job: The run.
        """
        return job.share_left * self.seconds(job.config)


def measured_seconds(run: StoredRun) -> float | None:
    """Return how long a finished run took, by the times at which its agents were written.

    The median time between two checkpoints counts, so that pauses do not.

    Args:
        run: The run.

    Returns:
        The time; None if the run is not done or its agents are not stored.
    """
    steps = run.evaluated_steps
    if not run.is_done or len(steps) <= MIN_INTERVALS:
        return None
    files = [RunDirectory(run.path).agents / f"step-{step:012d}.safetensors" for step in steps]
    if not all(file.exists() for file in files):
        return None
    times = [file.stat().st_mtime for file in files]
    between = [after - before for before, after in pairwise(times)]
    return median(between) * len(between)
