"""The plan of an experiment: which runs exist, which have to be trained, and how long it takes.

Runs on disk are found by their settings, not by where they are, so a run made for one experiment
serves the others.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import count
from pathlib import Path

from dropin.agents import Agent, load_agent
from dropin.core.errors import InputError
from dropin.evaluation.curves import Row, select_rows
from dropin.experiments.analyses import KeptAnalyses
from dropin.experiments.runs import Grid, Options
from dropin.experiments.timing import estimate_seconds
from dropin.training.config import NOT_IDENTITY, STRANGERS, RunConfig
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import EVALUATION_COLUMNS, read_table

__all__ = [
    "Job",
    "Needs",
    "Progress",
    "StoredRun",
    "find_runs",
    "identity",
    "plan",
    "plan_run",
    "rules_of",
]


def identity(config: RunConfig) -> str:
    """Return a hash of all settings that decide what a run learns, its seed included."""
    values = {name: value for name, value in config.to_dict().items() if name not in NOT_IDENTITY}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class StoredRun:
    """A run on disk. Its evaluations are read once, when they are first needed."""

    path: Path
    """The run's directory; it need not exist yet."""
    config: RunConfig

    @property
    def identity(self) -> str:
        """A hash of all settings that decide what it learns, its seed included."""
        return identity(self.config)

    def reloaded(self) -> "StoredRun":
        """Return the same run with its evaluations still to be read."""
        return StoredRun(self.path, self.config)

    @cached_property
    def evaluations(self) -> list[Row]:
        """The rows of its `evaluation.csv`; none if there is no such file."""
        return list(read_table(self.path / "evaluation.csv", EVALUATION_COLUMNS))

    def greedy_evaluations(self, team_limit: int, teammates: str = STRANGERS) -> list[Row]:
        """Return the evaluations of the greedy policy.

        Args:
            team_limit: The team limit of the evaluations.
            teammates: Whom the learner played with, `strangers` or `partners`.
        """
        return select_rows(
            self.evaluations, team_limit=team_limit, mode="greedy", teammates=teammates
        )

    @cached_property
    def fresh_evaluations(self) -> list[Row]:
        """The rows of its `fresh.csv`, see `dropin.experiments.kept`; none if there is no file."""
        return list(read_table(self.path / "fresh.csv", (*EVALUATION_COLUMNS, "agent")))

    @property
    def best_step(self) -> int:
        """The step of its best evaluation: greedy, with strangers, at the limit of training."""
        rows = self.greedy_evaluations(self.config.team_limit)
        if not rows:
            raise InputError(f"{self.path} has no evaluation at its own team limit.")
        return int(max(rows, key=lambda row: float(row["mean_return"] or "-inf"))["step"])

    @cached_property
    def evaluated_steps(self) -> list[int]:
        """The steps at which it was evaluated, in order."""
        return sorted({int(row["step"]) for row in self.evaluations})

    @property
    def last_evaluated_step(self) -> int:
        """The step of its latest evaluation; -1 if there is none."""
        return self.evaluated_steps[-1] if self.evaluated_steps else -1

    @cached_property
    def evaluated_limits(self) -> set[int]:
        """The team limits at which it was evaluated."""
        return {int(row["team_limit"]) for row in self.evaluations}

    @cached_property
    def evaluated_teammates(self) -> set[str]:
        """Whom it was evaluated with: strangers, partners, or both."""
        return {row["teammates"] for row in self.evaluations}

    @property
    def final_step(self) -> int:
        """The step at which it ends: a whole number of updates."""
        return self.config.num_updates(self.config.steps) * self.config.steps_per_update

    @cached_property
    def is_done(self) -> bool:
        """Whether it has ended and its last evaluation has as many rows as its first."""
        steps = [int(row["step"]) for row in self.evaluations]
        return steps.count(self.final_step) == steps.count(0) > 0

    @property
    def is_resumable(self) -> bool:
        """Whether training can continue from its files, or there are no files yet."""
        files = RunDirectory(self.path)
        try:
            if files.exists:
                files.check_resumable()
        except InputError:
            return False
        return True

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is a checkpoint to continue from."""
        return bool(RunDirectory(self.path).steps())

    @cached_property
    def kept_analyses(self) -> KeptAnalyses:
        """The results of analyses that are kept with it, in place of its agents."""
        return KeptAnalyses.read(self.path)

    @property
    def has_agents(self) -> bool:
        """Whether the agent of every evaluation is stored."""
        return set(self.evaluated_steps) <= set(RunDirectory(self.path).steps_with_agent())

    def agent(self, step: int) -> Agent:
        """Load the agent of a checkpoint."""
        return load_agent(RunDirectory(self.path).agent_at(step))


def find_runs(roots: Sequence[Path]) -> dict[str, list[StoredRun]]:
    """Find all runs in some directories and the directories below them.

    A directory whose `run.json` cannot be used, or that needs a plug-in which is not installed, is
    left out.

    Args:
        roots: Where to search.

    Returns:
        The runs by identity, in the order in which they were found.
    """
    found: dict[str, list[StoredRun]] = {}
    for root in roots:
        for file in sorted(root.rglob("run.json")):
            try:
                run = StoredRun(file.parent, RunDirectory(file.parent).config())
            except InputError:
                continue
            found.setdefault(identity(run.config), []).append(run)
    return found


class Progress(Enum):
    """How far a run is."""

    DONE = "done"
    STARTED = "started"
    MISSING = "missing"


@dataclass(frozen=True)
class Needs:
    """What an experiment needs of a run, besides its identity."""

    team_limits: frozenset[int]
    """The team limits of the evaluations."""
    teammates: frozenset[str]
    """Whom it is evaluated with: strangers, partners, or both."""
    column: str
    """The column that holds the returns in every evaluation."""
    agents: bool
    """Whether the agent of every evaluation has to be stored."""
    experiment: str = ""
    """The experiment; a run that is kept with the results of its analyses needs no agents."""

    def met_by(self, run: StoredRun) -> bool:
        """Return whether a run is done and has everything."""
        return (
            run.is_done
            and all(row[self.column] for row in run.evaluations)
            and self.team_limits <= run.evaluated_limits
            and self.teammates <= run.evaluated_teammates
            and (not self.agents or run.has_agents or self._was_analysed(run))
        )

    def _was_analysed(self, run: StoredRun) -> bool:
        """Return whether the results of the experiment's analyses are kept with a run."""
        return self.experiment in run.kept_analyses.experiments

    def can_be_met_by(self, run: StoredRun, home: Path) -> bool:
        """Return whether an unfinished run will have everything once it is done.

        Args:
            run: The run.
            home: Where new runs go. They store the agent of every checkpoint, so runs elsewhere
                are continued only if they do so as well.
        """
        config = run.config
        if run.is_done or not run.is_resumable:
            return False
        if not self.team_limits <= {config.team_limit, *config.evaluation.team_limits}:
            return False
        if not self.teammates <= set(config.evaluation.teammates):
            return False
        return run.path.is_relative_to(home) or (run.has_checkpoint and run.has_agents)


@dataclass(frozen=True)
class Job:
    """A run that an experiment needs."""

    grid: str
    """The name of its grid."""
    run: StoredRun
    """The run, where it is or will be."""
    needs: Needs
    progress: Progress

    @classmethod
    def of(cls, grid: str, run: StoredRun, needs: Needs) -> "Job":
        """Return the job for a run, with its progress as the run's files have it.

        Args:
            grid: The name of the run's grid.
            run: The run.
            needs: What the experiment needs of it.
        """
        if needs.met_by(run):
            progress = Progress.DONE
        else:
            progress = Progress.STARTED if run.evaluations else Progress.MISSING
        return cls(grid, run, needs, progress)

    @property
    def config(self) -> RunConfig:
        """The settings of the run."""
        return self.run.config

    @property
    def name(self) -> str:
        """A short name for messages, as `lbf gpl-q seed 0`."""
        words = (self.config.game, self.config.learner, self.grid, f"seed {self.config.seed}")
        return " ".join(filter(None, words))

    @property
    def share_left(self) -> float:
        """The share of the run that is still to be trained."""
        if self.progress is Progress.DONE:
            return 0.0
        return 1.0 - max(self.run.last_evaluated_step, 0) / self.run.final_step

    @property
    def seconds_left(self) -> float:
        """An estimate of the time that the rest of the run takes on one core."""
        return self.share_left * estimate_seconds(self.config)

    def create(self) -> None:
        """Create the run's directory if it does not exist."""
        files = RunDirectory(self.run.path)
        if not files.exists:
            files.create(self.config, keep="agents")

    def refreshed(self) -> "Job":
        """Return the job with its progress read again; one that is done stays as it is."""
        if self.progress is Progress.DONE:
            return self
        return Job.of(self.grid, self.run.reloaded(), self.needs)


def plan(
    grids: Mapping[str, Grid],
    options: Options,
    home: Path,
    search: Sequence[Path] = (),
    *,
    needs_agents: bool = False,
    experiment: str = "",
    stored: dict[str, list[StoredRun]] | None = None,
) -> list[Job]:
    """Return all runs of some grids, with what exists of them.

    Args:
        grids: Grids by name.
        options: The options of the experiment.
        home: A directory to search for runs; new ones go to its subdirectory `runs`.
        search: Further directories to search.
        needs_agents: Whether the agent of every evaluation has to be stored.
        experiment: Name of the experiment. Runs that are kept with the results of its analyses
            need no agents.
        stored: The runs that exist, as of `find_runs`, if they are known already. Planned runs are
            added, so that several plans can share them.

    Raises:
        InputError: If the options leave no run.
    """
    if all(grid.is_empty(options) for grid in grids.values()):
        games = dict.fromkeys(game for grid in grids.values() for game in grid.games)
        learners = dict.fromkeys(each for grid in grids.values() for each in grid.learners)
        raise InputError(
            f"Nothing is left of the experiment: it has {', '.join(games)} and"
            f" {', '.join(learners)}."
        )
    stored = find_runs([home, *search]) if stored is None else stored
    jobs = []
    for name, grid in grids.items():
        for config in grid.run_configs(options):
            needs = Needs(
                frozenset({config.team_limit, *config.evaluation.team_limits}),
                frozenset(config.evaluation.teammates),
                options.return_column,
                needs_agents,
                experiment,
            )
            jobs.append(plan_run(name, config, needs, home, stored))
    return jobs


def plan_run(
    grid: str, config: RunConfig, needs: Needs, home: Path, stored: dict[str, list[StoredRun]]
) -> Job:
    """Return the job for a run: one that exists and serves, or else a new one.

    Args:
        grid: The name of the run's grid.
        config: The settings of the run.
        needs: What is needed of it.
        home: Where new runs go, to its subdirectory `runs`.
        stored: The runs that exist, as of `find_runs`; a planned run is added.
    """
    same = stored.setdefault(identity(config), [])
    run = _choose(same, needs, home)
    if run is None:
        run = StoredRun(_new_path(config, home, same), config)
        same.append(run)
    return Job.of(grid, run, needs)


def rules_of(jobs: Sequence[Job]) -> str:
    """Return the names of the rules of some runs, each once."""
    return ", ".join(dict.fromkeys(job.config.rules for job in jobs))


def _choose(runs: Sequence[StoredRun], needs: Needs, home: Path) -> StoredRun | None:
    """Return the furthest run that meets the needs, or else one that will meet them, or None."""
    furthest_first = sorted(runs, key=lambda run: -run.last_evaluated_step)
    for run in furthest_first:
        if needs.met_by(run):
            return run
    return next((run for run in furthest_first if needs.can_be_met_by(run, home)), None)


def _new_path(config: RunConfig, home: Path, same: Sequence[StoredRun]) -> Path:
    """Return a free directory for a run; its name says what the run is.

    Args:
        config: The settings of the run.
        home: Where runs go.
        same: Runs of the same identity, whose directories are taken even if they do not exist yet.
    """
    name = f"{config.game}-{config.learner}-{config.rules}-{config.team_limit}-{identity(config)}"
    paths = (home / "runs" / (name if number == 1 else f"{name}-{number}") for number in count(1))
    taken = {run.path for run in same}
    return next(path for path in paths if path not in taken and RunDirectory(path).is_free)
