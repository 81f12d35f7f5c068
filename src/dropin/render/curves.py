"""Learning curves of runs, with intervals."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dropin.errors import InputError, MissingExtraError
from dropin.evaluation.statistics import estimate
from dropin.training.directory import RunDirectory, runs_in
from dropin.training.table import AMONG, read_table

ESTIMATORS = {"fixed": "mean", "legacy": "legacy"}
FEW = 5
"""With fewer seeds a picture shows every run: their interval would be too wide to say anything."""
_COLOURS = ("#0b6e99", "#c2571a", "#4d8c2b", "#8a4fa3", "#b08900", "#b03060")


class Curve:
    """The evaluations of several runs of the same settings."""

    def __init__(self, label: str, runs: Sequence[Sequence[Mapping[str, str]]], column: str):
        self.label, self.seeds = label, len(runs)
        values: dict[int, list[float]] = {}
        for run in runs:
            for row in run:
                if row[column] != "":
                    values.setdefault(int(row["step"]), []).append(float(row[column]))
        # Only where all runs have come.
        self.steps = sorted(step for step, each in values.items() if len(each) == len(runs))
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
        runs = runs_in(directory)
        if not runs:
            raise InputError(f"There is no run in {directory}: a run has a file run.json.")
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


def published(path: Path, game: str, learners: Sequence[str]) -> list[dict[str, Any]]:
    """The authors' curves from a JSON file: `train`, game, learner, then `mean` and `ci95`."""
    try:
        values = json.loads(path.read_text())
        every = values["checkpoint_every_steps"]
        games = values["train"][game]
        return [
            {
                "label": f"{name}, published",
                "steps": [every * number for number in range(len(games[name]["mean"]))],
                "mean": games[name]["mean"],
                "ci95": games[name]["ci95"],
            }
            for name in learners
            if name in games
        ]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} holds no published curves of {game}.") from None


def draw(
    found: Sequence[Curve],
    path: Path,
    others: Sequence[Mapping[str, Any]] = (),
    levels: Mapping[str, float] | None = None,
    title: str = "",
) -> None:
    """A picture of learning curves; `levels` are returns to compare with, by name."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("Drawing curves", "plot") from None

    figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for curve, colour in zip(found, _COLOURS * len(found), strict=False):
        steps = np.array(curve.steps) / 1e6
        axes.plot(steps, curve.means, color=colour, label=curve.label)
        if 1 < curve.seeds < FEW:
            for run in curve.each:
                axes.plot(steps, run, color=colour, alpha=0.4, linewidth=0.8)
        else:
            axes.fill_between(steps, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
    for number, each in enumerate(others):
        steps, means, width = (
            np.array(each["steps"]) / 1e6,
            *map(np.array, (each["mean"], each["ci95"])),
        )
        colour = ("0.25", "0.55")[number % 2]
        axes.plot(steps, means, color=colour, linestyle="--", label=each["label"])
        axes.fill_between(
            steps, means - width, means + width, color=colour, alpha=0.12, linewidth=0
        )
    for name, value in (levels or {}).items():
        axes.axhline(value, color="0.4", linestyle=":", linewidth=1)
        axes.annotate(name, (1, value), xycoords=("axes fraction", "data"), ha="right", va="bottom",
                      fontsize=8, color="0.3")  # fmt: skip
    axes.set_xlabel("environment steps (million)")
    axes.set_ylabel("return")
    axes.set_title(title)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
