"""Learning curves as data: the evaluations of several runs, step by step."""

from collections.abc import Mapping, Sequence

import numpy as np

from dropin.core.errors import InputError, shown
from dropin.evaluation.statistics import estimate

__all__ = ["Curve", "Row", "select_rows"]

Row = Mapping[str, str]
"""A row of `evaluation.csv`: the text of each cell by the name of its column."""
MEAN_RETURN = "mean_return"
"""The column whose interval over episodes is in the table too."""
INTERVAL = ("ci_low", "ci_high")


class Curve:
    """A column of the evaluations of runs that differ in nothing but their seeds.

    Args:
        label: What the curve is called in legends, tables and messages.
        runs: For each run its evaluations, one row per checkpoint.
        column: The column to read.
        missing_value: What an empty cell counts as; by default the row is left out.

    Raises:
        InputError: If there is no step at which every run has a value.
    """

    label: str
    num_runs: int
    steps: list[int]
    """The steps at which every run has a value, in order."""
    individual: list[list[float]]
    """For each run its values at these steps."""
    ci_low: list[float]
    """The lower end of the 95 % interval at each step: over runs, or over the episodes of the
    evaluation if it is the mean return of a single run."""
    ci_high: list[float]
    """The upper end."""

    def __init__(
        self,
        label: str,
        runs: Sequence[Sequence[Row]],
        column: str = MEAN_RETURN,
        missing_value: float | None = None,
    ):
        self.label, self.num_runs = label, len(runs)
        values: dict[int, list[float]] = {}
        for run in runs:
            for row in run:
                if column not in row:
                    raise InputError(f"{label or 'These runs'}: there is no column {column}.")
                value = missing_value if row[column] == "" else _number(row[column], column)
                if value is not None:
                    values.setdefault(int(row["step"]), []).append(value)
        self.steps = sorted(step for step, found in values.items() if len(found) == len(runs))
        if not self.steps:
            raise InputError(
                f"{label or 'These runs'}: there is no step at which all runs have a value in the"
                f" column {column}."
            )
        self.points = [estimate(values[step]) for step in self.steps]
        """The mean over the runs at each step, with its interval."""
        self.individual = [
            list(run) for run in zip(*(values[step] for step in self.steps), strict=True)
        ]
        if len(runs) == 1 and column == MEAN_RETURN:
            rows = {int(row["step"]): row for row in runs[0]}
            self.ci_low, self.ci_high = (
                [float(rows[step].get(end) or "nan") for step in self.steps] for end in INTERVAL
            )
        else:
            self.ci_low = [point.low for point in self.points]
            self.ci_high = [point.high for point in self.points]

    @property
    def means(self) -> list[float]:
        """The mean over the runs at each step."""
        return [point.mean for point in self.points]

    @property
    def best_index(self) -> int:
        """The index of the step with the largest mean."""
        return int(np.argmax(self.means))


def _number(cell: str, column: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise InputError(f"{shown(cell)} in the column {column} is not a number.") from None


def select_rows(
    rows: Sequence[Row],
    *,
    team_limit: int | None = None,
    mode: str | None = None,
    teammates: str | None = None,
) -> list[Row]:
    """Return the evaluations that meet all given conditions.

    Args:
        rows: Rows of `evaluation.csv`.
        team_limit: The team limit of the evaluation.
        mode: How actions were chosen, `greedy` or `sampled`.
        teammates: Whom the learner played with, `strangers` or `partners`.
    """
    return [
        row
        for row in rows
        if (team_limit is None or int(row["team_limit"]) == team_limit)
        and (mode is None or row["mode"] == mode)
        and (teammates is None or row["teammates"] == teammates)
    ]
