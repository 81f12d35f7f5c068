"""From finished runs to the result of an experiment: tables, charts and numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dropin.core import registry
from dropin.core.config import PlainDict, PlainMapping
from dropin.evaluation.curves import Curve
from dropin.evaluation.published import PublishedMean
from dropin.evaluation.statistics import Estimate, estimate
from dropin.experiments.analyses import AnalysisCache
from dropin.experiments.planning import Job, Progress, StoredRun
from dropin.experiments.runs import PAPER_LEARNERS, Options
from dropin.plots.charts import COLOURS, HeatMap, Panel
from dropin.training.config import STRANGERS

__all__ = [
    "CHECKPOINT_NOTE",
    "EMPTY_CELL",
    "NO_NUMBERS_NOTE",
    "BestCheckpoint",
    "Chart",
    "CompletedRuns",
    "ExperimentResult",
    "RunGroup",
    "Sheet",
    "estimate_as_dict",
    "finite_or_none",
    "format_half_width",
    "format_interval",
    "format_published",
    "format_seeds",
    "learner_colour",
]

EMPTY_CELL = "–"
"""A cell of a table for which there is no number."""
CHECKPOINT_NOTE = (
    "The checkpoint is the one with the best mean return in training over the runs of a learner,"
    " the same for all of them; the policy is greedy."
)
EXTRA_COLOURS = ("#1b1b1b", "#e7298a", "#66c2a5", "#a6761d")
"""The colours of learners besides the paper's, in the order of their registration."""
NO_NUMBERS_NOTE = "The paper shows this as a picture, without numbers."


@dataclass(frozen=True)
class Sheet:
    """A table of text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    """A note for the reader, shown below the table."""


@dataclass(frozen=True)
class Chart:
    """A picture: panels of lines, or heat maps."""

    name: str
    """Part of the name of the image file."""
    caption: str
    panels: Sequence[Panel] = ()
    heat_maps: Sequence[HeatMap] = ()
    columns: int = 3
    """Number of panels in a row."""
    share_axes: bool = False
    """Whether the panels of a column have the same axes."""


@dataclass(frozen=True)
class ExperimentResult:
    """What an experiment has found, before it is written anywhere."""

    sheets: Sequence[Sheet] = ()
    charts: Sequence[Chart] = ()
    notes: Sequence[str] = ()
    """Notes for the reader, shown above the charts."""
    numbers: PlainDict = field(default_factory=dict)
    """The numbers as plain values, for programs."""
    intervals: str = "over runs; n is their number"
    """What the intervals are over, as the end of a sentence."""
    title: str = ""
    """The heading, if it is a section of a page."""
    sections: Sequence["ExperimentResult"] = ()
    """Further results that the same page shows, one after another."""
    records: Sequence[PlainMapping] = ()
    """The raw data, written as a CSV file: rows with the same columns."""

    @property
    def all_charts(self) -> list[Chart]:
        """The charts, with those of all sections."""
        return [*self.charts, *(chart for each in self.sections for chart in each.all_charts)]


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ in nothing but their seeds."""

    grid: str
    game: str
    learner: str


@dataclass(frozen=True)
class BestCheckpoint:
    """The checkpoint with the best mean return in training over the runs of a group."""

    step: int
    training_returns: list[float]
    """The return of each run there, at the team limit of training."""


class CompletedRuns:
    """The finished runs of an experiment, and the statistics that the paper's tables take.

    Args:
        jobs: All runs that the experiment needs.
        options: The options of the experiment.
        analyses: Where results of analyses are stored.
        failures: Why runs failed, by identity.
    """

    groups: dict[RunGroup, list[StoredRun]]
    """The finished runs of each group; none for a group of which no run is done."""

    def __init__(
        self,
        jobs: Sequence[Job],
        options: Options,
        analyses: AnalysisCache,
        failures: Mapping[str, str] | None = None,
    ):
        self.jobs, self.options, self.analyses = list(jobs), options, analyses
        self._failures = failures or {}
        self.groups = {}
        for job in jobs:
            group = RunGroup(job.grid, job.config.game, job.config.learner)
            runs = self.groups.setdefault(group, [])
            if job.progress is Progress.DONE:
                runs.append(job.run)

    @property
    def missing(self) -> list[Job]:
        """The runs that are not done."""
        return [job for job in self.jobs if job.progress is not Progress.DONE]

    @property
    def failures(self) -> dict[str, str]:
        """Why runs that are missing failed, by name; those that never ran are not in it."""
        found = {job.name: self._failures.get(job.run.identity) for job in self.missing}
        return {name: reason for name, reason in found.items() if reason is not None}

    def only(
        self, learners: Sequence[str], games: Sequence[str] | None = None
    ) -> "CompletedRuns | None":
        """Return the runs of some learners and games; None if none of them is done.

        Args:
            learners: The learners.
            games: The games; all of them if it is None.
        """
        jobs = [
            job
            for job in self.jobs
            if job.config.learner in learners and (games is None or job.config.game in games)
        ]
        done = any(job.progress is Progress.DONE for job in jobs)
        return CompletedRuns(jobs, self.options, self.analyses, self._failures) if done else None

    @property
    def games(self) -> list[str]:
        """The games in which at least one run is done, in the order of the grids."""
        return list(dict.fromkeys(group.game for group, runs in self.groups.items() if runs))

    @property
    def grids(self) -> list[str]:
        """The names of the grids."""
        return list(dict.fromkeys(group.grid for group in self.groups))

    def by_learner(self, game: str, grid: str = "") -> dict[str, list[StoredRun]]:
        """Return the finished runs in a game by learner; learners without any are left out.

        Args:
            game: Name of the game.
            grid: Name of the grid.
        """
        return {
            group.learner: runs
            for group, runs in self.groups.items()
            if runs and (group.grid, group.game) == (grid, game)
        }

    def curve(
        self,
        runs: Sequence[StoredRun],
        label: str = "",
        *,
        team_limit: int | None = None,
        teammates: str = STRANGERS,
        column: str | None = None,
        missing_value: float | None = None,
    ) -> Curve:
        """Return a column of the evaluations of runs as a learning curve.

        Args:
            runs: The runs of a group.
            label: What the curve is called.
            team_limit: The team limit of the evaluations; that of training by default.
            teammates: Whom the learner played with, `strangers` or `partners`.
            column: The column of `evaluation.csv`; the returns by default.
            missing_value: What an empty cell counts as; by default it is left out.
        """
        limit = runs[0].config.team_limit if team_limit is None else team_limit
        rows = [run.greedy_evaluations(limit, teammates) for run in runs]
        return Curve(label, rows, column or self.options.return_column, missing_value)

    def best_checkpoint(
        self, runs: Sequence[StoredRun], teammates: str = STRANGERS
    ) -> BestCheckpoint:
        """Return the checkpoint that the paper's tables use: the same for all runs of a group.

        Args:
            runs: The runs of a group.
            teammates: Whom the learner played with, `strangers` or `partners`.
        """
        curve = self.curve(runs, teammates=teammates)
        best = curve.best_index
        return BestCheckpoint(curve.steps[best], [values[best] for values in curve.individual])

    def returns_at(
        self, runs: Sequence[StoredRun], step: int, team_limit: int, teammates: str = STRANGERS
    ) -> list[float]:
        """Return the return of each run at a checkpoint.

        Args:
            runs: The runs of a group.
            step: The step of the checkpoint.
            team_limit: The team limit of the evaluation.
            teammates: Whom the learner played with, `strangers` or `partners`.
        """
        curve = self.curve(runs, team_limit=team_limit, teammates=teammates)
        index = curve.steps.index(step)
        return [values[index] for values in curve.individual]


def learner_colour(learner: str) -> str:
    """Return the colour of a learner, the same on every chart."""
    if learner in PAPER_LEARNERS:
        return COLOURS[PAPER_LEARNERS.index(learner) % len(COLOURS)]
    others = [name for name in (*registry.learners, learner) if name not in PAPER_LEARNERS]
    return EXTRA_COLOURS[others.index(learner) % len(EXTRA_COLOURS)]


def format_interval(values: Sequence[float]) -> str:
    """Format the mean over runs with its interval, as `4.00 (3.25 to 4.75; n = 2)`."""
    found = estimate(values)
    interval = f"{found.interval}; " if found.n > 1 else ""
    return f"{found.mean:.2f} ({interval}n = {found.n})"


def format_half_width(values: Sequence[float]) -> str:
    """Format the mean over runs and half the width of its interval, as in the paper's tables."""
    found = estimate(values)
    width = f" ± {(found.high - found.low) / 2:.2f}" if found.n > 1 else ""
    return f"{found.mean:.2f}{width}"


def format_seeds(seeds: Iterable[int]) -> str:
    """Format seeds, as `0-3, 5`."""
    spans: list[list[int]] = []
    for seed in sorted(seeds):
        if spans and spans[-1][-1] == seed - 1:
            spans[-1].append(seed)
        else:
            spans.append([seed])
    return ", ".join(f"{span[0]}-{span[-1]}" if len(span) > 1 else str(span[0]) for span in spans)


def format_published(found: PublishedMean | None) -> str:
    """Format a number of the paper, or the lack of one."""
    return EMPTY_CELL if found is None else str(found)


def estimate_as_dict(found: Estimate | None) -> PlainDict | None:
    """Return an estimate as plain values; ends of the interval that are not finite are None."""
    if found is None:
        return None
    low, high = finite_or_none(found.low), finite_or_none(found.high)
    return {"mean": found.mean, "low": low, "high": high, "n": found.n}


def finite_or_none(value: float | None) -> float | None:
    """Return the value if it is a finite number, otherwise None."""
    return value if value is not None and np.isfinite(value) else None
