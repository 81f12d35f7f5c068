"""The finished runs of an experiment, and what the paper's tables take from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dropin.experiments.answers import Answers
from dropin.experiments.choices import Choices
from dropin.experiments.plan import Job, Progress
from dropin.experiments.runs import Kept
from dropin.render.curves import Curve
from dropin.training.table import STRANGERS


@dataclass(frozen=True)
class Cell:
    """Runs that differ in nothing but the seed."""

    grid: str
    game: str
    learner: str


@dataclass(frozen=True)
class Best:
    """The checkpoint with the best mean in training over the runs of a cell."""

    step: int
    training: list[float]
    """The return of every run there, at the team limit of training."""


class Collected:
    """The runs of an experiment that are done."""

    def __init__(self, jobs: Sequence[Job], choices: Choices, answers: Answers):
        self.jobs, self.choices, self.answers = list(jobs), choices, answers
        self.cells: dict[Cell, list[Kept]] = {}
        for job in jobs:
            cell = Cell(job.grid, job.config.game, job.config.learner)
            runs = self.cells.setdefault(cell, [])
            if job.progress is Progress.DONE:
                runs.append(job.kept)

    @property
    def missing(self) -> list[Job]:
        """Those that are not done."""
        return [job for job in self.jobs if job.progress is not Progress.DONE]

    @property
    def games(self) -> list[str]:
        """Those in which a run is done, in the order of the grids."""
        return list(dict.fromkeys(cell.game for cell, runs in self.cells.items() if runs))

    @property
    def grids(self) -> list[str]:
        """The names of the grids."""
        return list(dict.fromkeys(cell.grid for cell in self.cells))

    def learners(self, game: str, grid: str = "") -> dict[str, list[Kept]]:
        """The runs in a game, by learner; those of which none is done are not there."""
        return {
            cell.learner: runs
            for cell, runs in self.cells.items()
            if runs and (cell.grid, cell.game) == (grid, game)
        }

    def curve(
        self,
        runs: Sequence[Kept],
        label: str,
        limit: int | None = None,
        among: str = STRANGERS,
        column: str | None = None,
        nothing: float | None = None,
    ) -> Curve:
        """A column of the evaluations of runs; their returns at the limit of training if it is not
        said which. An empty cell counts as `nothing`."""
        limit = runs[0].config.team_limit if limit is None else limit
        rows = [each.evaluations(limit, among) for each in runs]
        return Curve(label, rows, column or self.choices.column, nothing)

    def best(self, runs: Sequence[Kept], among: str = STRANGERS) -> Best:
        """The paper's choice of a checkpoint: the same for all runs of a kind."""
        curve = self.curve(runs, "", among=among)
        place = int(np.argmax(curve.means))
        return Best(curve.steps[place], [each[place] for each in curve.each])

    def at(
        self, runs: Sequence[Kept], step: int, limit: int, among: str = STRANGERS
    ) -> list[float]:
        """The return of every run at a checkpoint and team limit."""
        curve = self.curve(runs, "", limit, among)
        place = curve.steps.index(step)
        return [each[place] for each in curve.each]
