"""Learning curves of run directories, as data and as pictures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from dropin.core.errors import InputError
from dropin.evaluation.curves import Curve, select_rows
from dropin.evaluation.published import PublishedCurve
from dropin.plots.charts import Line, Panel, draw_panels
from dropin.training.config import STRANGERS
from dropin.training.run_directory import RunDirectory
from dropin.training.sets_of_runs import runs_of_one_kind
from dropin.training.tables import ESTIMATORS, EVALUATION_COLUMNS, read_table

__all__ = ["MIN_RUNS_FOR_BAND", "curve_line", "draw_curves", "published_line", "read_curves"]

MIN_RUNS_FOR_BAND = 5
"""With fewer runs each is drawn as a line of its own: a band would be too wide to be of use."""


def read_curves(
    directories: Sequence[Path],
    team_limit: int | None = None,
    mode: str | None = None,
    estimator: str = "fixed",
) -> list[Curve]:
    """Read the learning curves of runs: one for each directory, mode and kind of teammates.

    Labels say what the runs are, and in which directory where that alone would be the same.

    Args:
        directories: Each is a run's directory, or holds runs that differ in their seeds alone.
        team_limit: The team limit of the evaluations; that of training by default.
        mode: `greedy` or `sampled`; by default every mode that was evaluated.
        estimator: The estimator of returns, `fixed` or `legacy`.

    Raises:
        InputError: If a directory holds no such evaluations.
    """
    curves: list[tuple[Path, Curve]] = []
    for directory in directories:
        runs = runs_of_one_kind(directory)
        config = RunDirectory(runs[0]).config()
        limit = config.team_limit if team_limit is None else team_limit
        tables = [read_table(run / "evaluation.csv", EVALUATION_COLUMNS) for run in runs]
        at_limit = [select_rows(table, team_limit=limit) for table in tables]
        modes = sorted({row["mode"] for rows in at_limit for row in rows})
        if not modes:
            limits = sorted({int(row["team_limit"]) for table in tables for row in table})
            raise InputError(
                f"{directory} has no evaluation at team limit {limit}: it has"
                f" {', '.join(map(str, limits)) or 'none yet'}."
            )
        seeds = f"{len(runs)} seeds" if len(runs) > 1 else f"seed {config.seed}"
        for wanted in modes if mode is None else [mode]:
            of_mode = [select_rows(rows, mode=wanted) for rows in at_limit]
            if not all(of_mode):
                raise InputError(f"{directory} has no evaluation of the mode {wanted!r}.")
            groups = list(dict.fromkeys(row["teammates"] for row in of_mode[0]))
            for group in groups:
                rows = [select_rows(run, teammates=group) for run in of_mode]
                shown = wanted if groups == [STRANGERS] else f"{wanted}, among {group}"
                label = f"{config.learner}, {config.rules} rules, limit {limit}, {shown} ({seeds})"
                curves.append((directory, Curve(label, rows, ESTIMATORS[estimator])))
    numbers = Counter(curve.label for _, curve in curves)
    for directory, curve in curves:
        if numbers[curve.label] > 1:
            curve.label += f" in {directory.name}"
    return [curve for _, curve in curves]


def curve_line(curve: Curve, colour: str | None = None) -> Line:
    """Return a curve as a line with a band, or with all individual runs if there are few.

    Args:
        curve: The curve.
        colour: The colour of the line; chosen by its label if it is not given.
    """
    few = 1 < curve.num_runs < MIN_RUNS_FOR_BAND
    return Line(
        label=curve.label,
        x=_millions(curve.steps),
        y=curve.means,
        low=() if few else curve.ci_low,
        high=() if few else curve.ci_high,
        individual=curve.individual if few else (),
        colour=colour,
    )


def published_line(label: str, curve: PublishedCurve, colour: str | None = None) -> Line:
    """Return a curve of the paper as a dashed line with a band.

    Args:
        label: The name in the legend.
        curve: The curve of the paper.
        colour: The colour of the line; chosen by its label if it is not given.
    """
    return Line(
        label=label,
        x=_millions(curve.steps),
        y=[point.mean for point in curve.points],
        low=[point.mean - point.half_width for point in curve.points],
        high=[point.mean + point.half_width for point in curve.points],
        colour=colour,
        dashed=True,
    )


def draw_curves(
    curves: Sequence[Curve],
    path: Path,
    published: Mapping[str, PublishedCurve] | None = None,
    reference_lines: Mapping[str, float] | None = None,
    title: str = "",
) -> None:
    """Draw learning curves in one pair of axes.

    Args:
        curves: The curves, as of `read_curves`.
        path: The image file to write.
        published: Curves of the paper to draw beside them, by label.
        reference_lines: Returns to compare with, by name.
        title: The title of the picture.
    """
    greys = ("0.25", "0.55")
    dashed = [
        published_line(label, curve, greys[index % 2])
        for index, (label, curve) in enumerate((published or {}).items())
    ]
    lines = [curve_line(curve) for curve in curves] + dashed
    draw_panels([Panel(title, lines, reference_lines=reference_lines or {})], path)


def _millions(steps: Sequence[int]) -> list[float]:
    return [step / 1e6 for step in steps]
