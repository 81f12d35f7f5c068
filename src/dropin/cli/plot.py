"""Draw learning curves."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from dropin.cli.show import show_table
from dropin.errors import InputError, unknown


def plot(
    directories: Annotated[Positional[tuple[Path, ...]], arg(metavar="DIRECTORIES")],
    out: Path = Path("learning_curve.png"),
    team_limit: int | None = None,
    policy: str | None = None,
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
        team_limit: Evaluations at this team limit; that of training if not given.
        policy: greedy or sampled; all there are if not given.
        estimator: fixed, or legacy for the authors' stopping rule.
        published: Draw the authors' curves beside, those of a team limit of 3.
        force: Write over a picture that exists.
    """
    if not directories:
        raise InputError("Give at least one directory of a run.")
    if out.exists() and not force:
        raise InputError(f"{out} exists already: give another name, or --force to replace it.")

    from dropin.published import curve as authors
    from dropin.render.curves import curves, draw
    from dropin.training.directory import RunDirectory, runs_in
    from dropin.training.table import ESTIMATORS

    if estimator not in ESTIMATORS:
        raise unknown("estimator", estimator, ESTIMATORS)
    found = curves(directories, team_limit, policy, estimator)
    configs = [RunDirectory(runs_in(each)[0]).config() for each in directories]
    learners = dict.fromkeys(each.learner for each in configs)
    known = {f"{name}, published": authors(configs[0].game, name) for name in learners}
    others = {label: each for label, each in known.items() if published and each is not None}
    draw(found, out, others, title=f"{configs[0].game}, {estimator} estimator")
    rows = []
    for each in found:
        best, last = each.points[each.best], each.points[-1]
        steps = (each.steps[each.best], each.steps[-1])
        rows.append((each.label, str(best), f"{steps[0]:,}", str(last), f"{steps[1]:,}"))
    for label, each in others.items():
        best, last = each.top, each.points[-1]
        steps = (each.steps[each.best], each.steps[-1])
        rows.append((label, str(best), f"{steps[0]:,}", str(last), f"{steps[1]:,}"))
    show_table(("curve", "best", "at step", "last", "at step"), rows, numbers=4)
    print(out)
