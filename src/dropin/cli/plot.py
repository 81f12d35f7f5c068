"""Draw learning curves: `dropin plot`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from dropin.cli.show import show_table
from dropin.core.errors import InputError, unknown

__all__ = ["plot"]


def plot(
    directories: Annotated[Positional[tuple[Path, ...]], arg(metavar="DIRECTORIES")],
    out: Path = Path("learning_curve.png"),
    team_limit: int | None = None,
    mode: str | None = None,
    estimator: str = "fixed",
    published: bool = False,
    force: bool = False,
) -> None:
    """Draw the learning curves of runs, with 95 % intervals, and print where they end.

    Intervals are over seeds where a directory holds several runs, otherwise over episodes. With two
    to four runs the picture shows every run instead.

    Args:
        directories: Each a run's directory, or one that holds runs of several seeds.
        out: The picture to write.
        team_limit: The team limit of the evaluations; that of training if not given.
        mode: greedy or sampled; all there are if not given.
        estimator: fixed, or legacy for the authors' stopping rule.
        published: Draw the authors' curves too, at a team limit of 3.
        force: Replace a picture that exists.
    """
    if not directories:
        raise InputError("Give at least one directory of a run.")
    if out.exists() and not force:
        raise InputError(f"{out} exists already: give another name, or --force to replace it.")

    from dropin.evaluation.published import training_curve
    from dropin.plots.curves import draw_curves, read_curves
    from dropin.training.run_directory import RunDirectory, runs_in
    from dropin.training.tables import ESTIMATORS

    if estimator not in ESTIMATORS:
        raise unknown("estimator", estimator, ESTIMATORS)
    curves = read_curves(directories, team_limit, mode, estimator)
    configs = [RunDirectory(runs_in(directory)[0]).config() for directory in directories]
    game, learners = configs[0].game, dict.fromkeys(config.learner for config in configs)
    known = {f"{name}, published": training_curve(game, name) for name in learners}
    papers = {label: curve for label, curve in known.items() if published and curve is not None}
    draw_curves(curves, out, papers, title=f"{game}, {estimator} estimator")
    rows = []
    for label, curve in [*((curve.label, curve) for curve in curves), *papers.items()]:
        best = curve.best_index
        rows.append((
            label, str(curve.points[best]), f"{curve.steps[best]:,}",
            str(curve.points[-1]), f"{curve.steps[-1]:,}",
        ))  # fmt: skip
    show_table(("curve", "best", "at step", "last", "at step"), rows, numbers=4)
    print(out)
