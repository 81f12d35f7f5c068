"""Reproduce the paper."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from dropin.cli.show import show_table
from dropin.config import parse_settings
from dropin.errors import InputError

if TYPE_CHECKING:
    from dropin.experiments.plan import Job
    from dropin.experiments.reproduce import Experiment

RUNS = Path("runs")
"""Where `dropin train` puts runs."""


def reproduce(
    item: Annotated[Positional[str | None], arg(metavar="[EXPERIMENT]")] = None,
    list: bool = False,
    plan: bool = False,
    draw: bool = False,
    rules: str = "paper",
    seeds: int | None = None,
    steps: int | None = None,
    scale: float = 1.0,
    games: tuple[str, ...] | None = None,
    learners: tuple[str, ...] | None = None,
    split: str | None = None,
    limits: tuple[int, ...] | None = None,
    estimator: str | None = None,
    set: tuple[str, ...] = (),
    states: int = 24_000,
    episodes: int = 320,
    directory: Path = Path("experiments"),
    use: tuple[Path, ...] = (),
    on: str = "here",
    address: str | None = None,
    report: str = "auto",
) -> None:
    """Run an experiment of the paper and write a page with its numbers beside the paper's.

    Runs that are there are used, those that were interrupted go on. The page is written as
    Markdown and as HTML, with its pictures.

    Args:
        item: Name of the experiment, see --list; all for every one of the paper.
        list: List the experiments.
        plan: Show which runs it takes and about how long, and stop.
        draw: Train nothing: write the page from the runs that are there.
        rules: paper or reference.
        seeds: Runs of each kind (the paper's number, or fewer with --scale).
        steps: The length of all runs, instead of --scale.
        scale: The length of all runs as a share of the paper's, as 0.05.
        games: Only these games.
        learners: Only these learners.
        split: Of held-out: ciao-disjoint, ciao-shared, or types of training/types of the test.
        limits: Of held-out: the team limits.
        estimator: fixed, or legacy (with reference rules if not given), as the authors'.
        set: Any other setting of all runs, as in dropin train.
        states: Of an analysis: how many states are looked at, at every checkpoint.
        episodes: Of each agent, where more is played than in training.
        directory: Where runs and pages go.
        use: More directories with runs; runs is one if it is there.
        on: here (one process for each core), or ray for a cluster.
        address: Of the Ray cluster; a local one is started if not given.
        report: auto (a live table in a terminal, lines elsewhere), lines, json or none.
    """
    from dropin.experiments.choices import Choices
    from dropin.experiments.items import ITEMS, find_items
    from dropin.experiments.reproduce import Experiment
    from dropin.experiments.run import check_place
    from dropin.training.reporters import check_screen

    if list:
        rows = [(each.name, each.where, each.title) for each in ITEMS.values()]
        show_table(("experiment", "in the paper", "what it shows"), rows)
        return
    if item is None:
        raise InputError("Give an experiment, as in: dropin reproduce table2 (--list names all)")
    check_screen(report)
    check_place(on)
    choices = Choices(
        rules=rules,
        seeds=seeds,
        steps=steps,
        scale=scale,
        games=games,
        learners=learners,
        split=split,
        limits=limits,
        estimator=estimator,
        settings=parse_settings(set),
        states=states,
        episodes=episodes,
    )
    places = _places(use)
    command = shlex.join(["dropin", *sys.argv[1:]])
    for each in find_items(item, choices):
        experiment = Experiment(each, choices, directory, places)
        jobs = experiment.plan()
        if report in ("auto", "lines"):
            _show(experiment, jobs)
        if plan:
            continue
        if draw:
            pages = experiment.write(command)
        else:
            try:
                pages = experiment.reproduce(command, on=on, address=address, report=report)
            except KeyboardInterrupt:
                print("Interrupted: the same command goes on.", file=sys.stderr)
                raise
        if report != "json":
            print("\n".join(map(str, pages)))


def _places(use: tuple[Path, ...]) -> tuple[Path, ...]:
    for each in use:
        if not each.is_dir():
            raise InputError(f"There is no directory {each}.")
    return (*use, RUNS) if RUNS.is_dir() else use


def _show(experiment: "Experiment", jobs: "list[Job]") -> None:
    """The grid, and about how long it takes."""
    from dropin.experiments.plan import Progress
    from dropin.training.many import cores

    kinds: dict[tuple[str, str, str], list[Job]] = {}
    for job in jobs:
        kinds.setdefault((job.config.game, job.config.learner, job.grid), []).append(job)
    item, choices = experiment.item, experiment.choices
    print(f"{item.title} ({item.where}), rules {choices.rules}")
    if choices.stamp:
        print(choices.stamp)
    rows = []
    for names, each in kinds.items():
        counts = [str(sum(job.progress is one for job in each)) for one in Progress]
        hours = sum(job.seconds for job in each) / 3600
        rows.append((*names, f"{each[0].config.steps:,}", *counts, f"{hours:.1f}"))
    columns = ("game", "learner", "", "steps", "done", "begun", "missing", "hours of a core")
    show_table(columns, rows, numbers=5)
    whole, number = sum(job.seconds for job in jobs), len(cores())
    if whole:
        longest = max(job.seconds for job in jobs)
        left = _time(max(whole / number, longest))
        print(f"About {left} on {number} cores, by the speed of another machine.")


def _time(seconds: float) -> str:
    minutes = max(round(seconds / 60), 1)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
