"""The plan of an experiment: which of its runs are there, which have to be run, and how long."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from dropin.errors import InputError
from dropin.experiments.choices import Choices
from dropin.experiments.grid import Grid
from dropin.experiments.runs import Kept, find_runs, identity
from dropin.experiments.speeds import seconds
from dropin.training.config import RunConfig
from dropin.training.directory import RunDirectory


class Progress(Enum):
    """How far a run is."""

    DONE = "done"
    BEGUN = "begun"
    MISSING = "missing"


@dataclass(frozen=True)
class Job:
    """A run that an experiment needs."""

    grid: str
    """The name of the grid that it belongs to."""
    kept: Kept
    """Where it is, or will be."""
    progress: Progress

    @property
    def config(self) -> RunConfig:
        """The settings of the run."""
        return self.kept.config

    @property
    def name(self) -> str:
        """A short name for people."""
        config = self.config
        parts = (config.game, config.learner, self.grid, f"seed {config.seed}")
        return " ".join(each for each in parts if each)

    @property
    def seconds(self) -> float:
        """About how long the rest takes on one core."""
        if self.progress is Progress.DONE:
            return 0.0
        left = 1.0
        if self.progress is Progress.BEGUN:
            left -= self.kept.step / self.kept.last
        return left * seconds(self.config)

    def begin(self) -> None:
        """Create the run's directory, if it is not there."""
        files = RunDirectory(self.kept.path)
        if not files.exists:
            files.create(self.config, keep="agents")


def plan(
    grids: Mapping[str, Grid],
    choices: Choices,
    home: Path,
    places: Sequence[Path] = (),
    *,
    agents: bool = False,
) -> list[Job]:
    """All runs of these grids. Those that are in one of the places, or in `home`, are used.

    New ones are to go to `home`. With `agents` the agent of every checkpoint has to be there.
    """
    wanted = {name: grid.runs(choices) for name, grid in grids.items()}
    if not any(wanted.values()):
        games = dict.fromkeys(game for grid in grids.values() for game in grid.games)
        learners = dict.fromkeys(each for grid in grids.values() for each in grid.learners)
        raise InputError(
            f"Nothing is left of the experiment: it has {', '.join(games)} and"
            f" {', '.join(learners)}."
        )
    found = find_runs([home, *places])
    jobs = []
    for name, configs in wanted.items():
        for config in configs:
            kept = found.get(identity(config))
            if kept is not None and _serves(kept, config, choices.column, agents):
                jobs.append(Job(name, kept, Progress.DONE))
                continue
            if kept is None or not _goes_on(kept, config, home):
                kept = Kept(home / _directory(config), config)
            progress = Progress.BEGUN if kept.step >= 0 else Progress.MISSING
            jobs.append(Job(name, kept, progress))
    return jobs


def _serves(kept: Kept, config: RunConfig, column: str, agents: bool) -> bool:
    """Whether a run has all that is asked of it."""
    limits = {config.team_limit, *config.evaluation.team_limits}
    told = all(row[column] for row in kept.rows)
    return kept.done and told and limits <= kept.limits and (kept.has_agents or not agents)


def _goes_on(kept: Kept, config: RunConfig, home: Path) -> bool:
    """Whether an unfinished run will have all that is asked of it at its end."""
    limits = {kept.config.team_limit, *kept.config.evaluation.team_limits}
    wanted = {config.team_limit, *config.evaluation.team_limits}
    if kept.path.is_relative_to(home):
        return wanted <= limits
    resumable = bool(RunDirectory(kept.path).steps())
    return not kept.done and resumable and wanted <= limits and kept.has_agents


def _directory(config: RunConfig) -> Path:
    """Runs of the same settings but the seed are together; the name tells apart what differs."""
    name = f"{config.game}-{config.learner}-{config.rules}-{config.team_limit}"
    return Path("runs") / f"{name}-{identity(config)}"
