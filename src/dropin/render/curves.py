"""Learning curves of runs, with intervals."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dropin.errors import InputError
from dropin.evaluation.statistics import estimate
from dropin.published import PublishedCurve
from dropin.render.charts import Line, Panel, draw_panels
from dropin.training.directory import RunDirectory, runs_of_a_kind
from dropin.training.table import AMONG, ESTIMATORS, read_table

FEW = 5
"""With fewer seeds a picture shows every run: their interval would be too wide to say anything."""


class Curve:
    """The evaluations of several runs of the same settings.

    A cell in which there is nothing counts as `nothing` says; by default not at all.
    """

    def __init__(
        self,
        label: str,
        runs: Sequence[Sequence[Mapping[str, str]]],
        column: str,
        nothing: float | None = None,
    ):
        self.label, self.seeds = label, len(runs)
        values: dict[int, list[float]] = {}
        for run in runs:
            for row in run:
                value = nothing if row[column] == "" else float(row[column])
                if value is not None:
                    values.setdefault(int(row["step"]), []).append(value)
        # Only where all runs have come.
        self.steps = sorted(step for step, each in values.items() if len(each) == len(runs))
        if not self.steps:
            raise InputError(
                f"{label or 'These runs'}: no evaluation that all runs have says anything in the"
                f" column {column}."
            )
        self.points = [estimate(values[step]) for step in self.steps]
        self.each = [list(run) for run in zip(*(values[step] for step in self.steps), strict=True)]
        """The values of every run."""
        if len(runs) == 1 and column == "mean":
            rows = {int(row["step"]): row for row in runs[0]}
            self.low = [float(rows[step]["low"]) for step in self.steps]
            self.high = [float(rows[step]["high"]) for step in self.steps]
        else:
            self.low = [each.low for each in self.points]
            self.high = [each.high for each in self.points]

    @property
    def means(self) -> list[float]:
        """The mean over the runs at every step."""
        return [each.mean for each in self.points]

    @property
    def best(self) -> int:
        """The place of the best mean."""
        return int(np.argmax(self.means))


def curves(
    directories: Sequence[Path],
    team_limit: int | None = None,
    policy: str | None = None,
    estimator: str = "fixed",
) -> list[Curve]:
    """One curve for each directory and policy."""
    found = []
    for directory in directories:
        runs = runs_of_a_kind(directory)
        config = RunDirectory(runs[0]).config()
        limit = config.team_limit if team_limit is None else team_limit
        tables = [read_table(run / "evaluation.csv") for run in runs]
        rows = [[row for row in each if int(row["team_limit"]) == limit] for each in tables]
        policies = sorted({row["policy"] for each in rows for row in each})
        if not policies:
            limits = sorted({int(row["team_limit"]) for each in tables for row in each})
            raise InputError(
                f"{directory} has no evaluation at team limit {limit}: it has"
                f" {', '.join(map(str, limits)) or 'none yet'}."
            )
        seeds = f"{len(runs)} seeds" if len(runs) > 1 else f"seed {config.seed}"
        for each in policies if policy is None else [policy]:
            chosen = [[row for row in run if row["policy"] == each] for run in rows]
            if not all(chosen):
                raise InputError(f"{directory} has no evaluation of the policy {each!r}.")
            for among in dict.fromkeys(row.get(AMONG, "") for row in chosen[0]):
                theirs = [[row for row in run if row.get(AMONG, "") == among] for run in chosen]
                what = f"{each}, among {among}" if among else each
                label = f"{config.learner}, {config.rules} rules, limit {limit}, {what} ({seeds})"
                found.append(Curve(label, theirs, ESTIMATORS[estimator]))
    return found


def line(curve: Curve, colour: str | None = None) -> Line:
    """A curve as a line of a chart, with a band, or with every run where there are few."""
    few = 1 < curve.seeds < FEW
    return Line(
        label=curve.label,
        x=_millions(curve.steps),
        y=curve.means,
        low=() if few else curve.low,
        high=() if few else curve.high,
        each=curve.each if few else (),
        colour=colour,
    )


def published_line(label: str, curve: PublishedCurve, colour: str | None = None) -> Line:
    """The authors' curve as a dashed line."""
    return Line(
        label=label,
        x=_millions(curve.steps),
        y=[each.mean for each in curve.points],
        low=[each.mean - each.width for each in curve.points],
        high=[each.mean + each.width for each in curve.points],
        colour=colour,
        dashed=True,
    )


def _millions(steps: Sequence[int]) -> list[float]:
    return [step / 1e6 for step in steps]


def draw(
    found: Sequence[Curve],
    path: Path,
    others: Mapping[str, PublishedCurve] | None = None,
    levels: Mapping[str, float] | None = None,
    title: str = "",
) -> None:
    """A picture of learning curves; `others` are the authors', `levels` returns to compare with."""
    greys = ("0.25", "0.55")
    dashed = [
        published_line(label, curve, greys[number % 2])
        for number, (label, curve) in enumerate((others or {}).items())
    ]
    lines = [line(each) for each in found] + dashed
    draw_panels([Panel(title, lines, levels=levels or {})], path)
