"""Reproduce the paper: `dropin reproduce`."""

import inspect
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from dropin.cli.show import show_table
from dropin.core.config import PlainMapping, parse_settings
from dropin.core.errors import InputError

if TYPE_CHECKING:
    from dropin.experiments.planning import Job
    from dropin.experiments.reproduce import Experiment

__all__ = ["format_time", "reproduce", "search_directories"]

TRAINED_RUNS = Path("runs")
"""Where `dropin train` puts runs."""


def reproduce(
    experiment: Annotated[Positional[str | None], arg(metavar="[EXPERIMENT]")] = None,
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

    Finished runs are used as they are, and interrupted ones continue. The page is written as
    Markdown and as HTML, with its pictures.

    Args:
        experiment: Name of the experiment, see --list; all for every one of the paper.
        list: List the experiments.
        plan: Show which runs it takes and about how long, and stop.
        draw: Train nothing: write the page from the runs that are done.
        rules: paper, reference, or a preset of the experiment's games, see `dropin games`.
        seeds: Number of runs of each kind (the paper's number, or fewer with --scale).
        steps: Length of all runs, instead of --scale.
        scale: Length of all runs as a share of the paper's, as 0.05.
        games: Only these games.
        learners: Only these learners.
        split: For held-out: ciao-disjoint, ciao-shared, or types of training/types of testing.
        limits: For held-out: the team limits of testing.
        estimator: fixed, or legacy, the authors' (the default with reference rules).
        set: Any other setting of all runs, as in dropin train.
        states: For analyses: number of states to look at, at every checkpoint.
        episodes: Number of episodes of each agent, where trained agents are evaluated again.
        directory: Where runs and pages go.
        use: More directories to search for runs; runs is searched too.
        on: here (one process per core), or ray for a cluster.
        address: Address of the Ray cluster; a local one is started if it is not given.
        report: auto (a live table in a terminal, lines elsewhere), lines, json or none.
    """
    command = _command_line(locals())

    from dropin.core import registry
    from dropin.experiments import Experiment, Options, select_experiments
    from dropin.experiments.reproduce import check_place
    from dropin.training.reporters import check_screen

    if list:
        rows = [(spec.name, spec.source, spec.title) for spec in registry.experiments.values()]
        show_table(("experiment", "in the paper", "what it shows"), rows)
        return
    if experiment is None:
        raise InputError("Give an experiment, as in: dropin reproduce table2 (--list names all)")
    check_screen(report)
    check_place(on)
    options = Options(
        rules=rules,
        seeds=seeds,
        steps=steps,
        scale=scale,
        games=games,
        learners=learners,
        split=split,
        team_limits=limits,
        estimator=estimator,
        settings=parse_settings(set),
        states=states,
        episodes=episodes,
    )
    search = search_directories(use)
    for spec in select_experiments(experiment, options):
        chosen = Experiment(spec, options, directory, search)
        if report in ("auto", "lines"):
            _show_plan(chosen)
        if plan:
            continue
        if draw:
            pages = chosen.write(command)
        else:
            try:
                pages = chosen.reproduce(command, on=on, address=address, report=report)
            except KeyboardInterrupt:
                print("Interrupted: run the same command again to continue.", file=sys.stderr)
                raise
        if report != "json":
            print("\n".join(map(str, pages)))


def _command_line(arguments: PlainMapping) -> str:
    """Return the shell command that gives `reproduce` these arguments.

    Args:
        arguments: All arguments by name; those that equal their default are left out.
    """
    words = ["dropin", "reproduce"]
    for name, parameter in inspect.signature(reproduce).parameters.items():
        value = arguments[name]
        if value == parameter.default:
            continue
        if name != "experiment":
            words.append(f"--{name}")
        if value is not True:
            words += map(str, value if isinstance(value, tuple) else (value,))
    return shlex.join(words)


def search_directories(use: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the directories to search for runs: the given ones, and `runs` if it exists.

    Args:
        use: The given ones.

    Raises:
        InputError: If one of them does not exist.
    """
    for directory in use:
        if not directory.is_dir():
            raise InputError(f"There is no directory {directory}.")
    return (*use, TRAINED_RUNS) if TRAINED_RUNS.is_dir() else use


def _show_plan(experiment: "Experiment") -> None:
    """Print the runs of an experiment, and about how long they take."""
    from dropin.experiments.planning import Progress, rules_of
    from dropin.training.parallel import cores

    spec, options, jobs = experiment.spec, experiment.options, experiment.jobs
    kinds: dict[tuple[str, str, str], list[Job]] = {}
    for job in jobs:
        kinds.setdefault((job.config.game, job.config.learner, job.grid), []).append(job)
    source = f" ({spec.source})" if spec.source else ""
    print(f"{spec.title or spec.name}{source}, rules {rules_of(jobs)}")
    if options.small_notice:
        print(options.small_notice)
    rows = []
    for kind, group in kinds.items():
        counts = [str(sum(job.progress is progress for job in group)) for progress in Progress]
        hours = sum(job.seconds_left for job in group) / 3600
        rows.append((*kind, f"{group[0].config.steps:,}", *counts, f"{hours:.1f}"))
    states = [progress.value for progress in Progress]
    show_table(("game", "learner", "", "steps", *states, "core hours"), rows, numbers=5)
    total, number = sum(job.seconds_left for job in jobs), len(cores())
    if total:
        longest = max(job.seconds_left for job in jobs)
        left = format_time(max(total / number, longest))
        print(f"About {left} on {number} cores, judged by the speed of another machine.")


def format_time(seconds: float) -> str:
    """Format a time in hours and minutes, as `1 h 5 min`.

    Args:
        seconds: The time in seconds.
    """
    minutes = max(round(seconds / 60), 1)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
