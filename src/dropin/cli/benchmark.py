"""The open-team benchmark: `dropin benchmark`."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg
from tyro.extras import SubcommandApp

from dropin.cli.benchmark_report import keep, leaderboard, report, submit
from dropin.cli.reproduce import format_time, search_directories
from dropin.cli.show import show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dropin.experiments.benchmark.records import Record
    from dropin.experiments.benchmark.running import Benchmark

__all__ = ["app", "references", "run", "tasks"]

app = SubcommandApp()
app.command(submit)
app.command(report)
app.command(leaderboard)
app.command(keep)


@app.command
def run(
    learner: Annotated[Positional[str], arg(metavar="LEARNER")],
    tasks: tuple[str, ...] = (),
    seeds: int = 8,
    scale: float = 1.0,
    plan: bool = False,
    train: bool = True,
    directory: Path = Path("benchmark"),
    use: tuple[Path, ...] = (),
    on: str = "here",
    address: str | None = None,
    cores: tuple[int, ...] | None = None,
    report: str = "auto",
) -> None:
    """Train a learner for the tasks of the benchmark and measure its agents in them.

    Finished runs and records are used as they are, and interrupted runs continue.

    Args:
        learner: Name of a learner, see `dropin learners`; or who is measured without training: a
            trained agent's name or file, a type, or random.
        tasks: Only these: games as lbf, tasks as lbf/crowd, or TOML files with tasks of your own.
        seeds: Number of training runs of each kind.
        scale: Length of all runs as a share of the tasks' budgets, as 0.02; tests become shorter.
        plan: Show which runs it takes and about how long, and stop.
        train: Train the runs that are missing; with --no-train, those that are done are measured.
        directory: Where runs and records go.
        use: More directories to search for runs; runs is searched too.
        on: here (one process per core), or ray for a cluster.
        address: Address of the Ray cluster; a local one is started if it is not given.
        cores: Use these cores only, as in --cores 0 1 (all cores if not given).
        report: auto (a live table in a terminal, lines elsewhere), lines, json or none.
    """
    _pin(cores)

    from dropin.experiments.benchmark.running import Benchmark, Options
    from dropin.experiments.benchmark.tasks import select_tasks

    options = Options(
        seeds, scale, directory, search_directories(use), on, address, report, train=train
    )
    _run(Benchmark(learner, select_tasks(tasks), options), plan=plan)


@app.command
def references(
    tasks: tuple[str, ...] = (),
    learner: str = "gpl-q",
    seeds: int = 2,
    scale: float = 1.0,
    plan: bool = False,
    train: bool = True,
    directory: Path = Path("benchmark"),
    use: tuple[Path, ...] = (),
    on: str = "here",
    address: str | None = None,
    cores: tuple[int, ...] | None = None,
    report: str = "auto",
) -> None:
    """Measure what the benchmark compares with: chance, and a learner trained in each test itself.

    Args:
        tasks: Only these: games as lbf, tasks as lbf/crowd, or TOML files with tasks of your own.
        learner: Name of the learner that is trained in the tests.
        seeds: Number of training runs of each kind.
        scale: Length of all runs as a share of the tasks' budgets, as 0.02; tests become shorter.
        plan: Show which runs it takes and about how long, and stop.
        train: Train the runs that are missing; with --no-train, those that are done are measured.
        directory: Where runs and records go.
        use: More directories to search for runs; runs is searched too.
        on: here (one process per core), or ray for a cluster.
        address: Address of the Ray cluster; a local one is started if it is not given.
        cores: Use these cores only, as in --cores 0 1 (all cores if not given).
        report: auto (a live table in a terminal, lines elsewhere), lines, json or none.
    """
    _pin(cores)

    from dropin.experiments.benchmark.running import Benchmark, Options
    from dropin.experiments.benchmark.tasks import select_tasks

    options = Options(
        seeds, scale, directory, search_directories(use), on, address, report, train=train
    )
    _run(Benchmark(learner, select_tasks(tasks), options, references=True), plan=plan)


@app.command
def tasks(names: Annotated[Positional[tuple[str, ...]], arg(metavar="[TASK ...]")] = ()) -> None:
    """List the tasks of the benchmark.

    Args:
        names: Only these: games as lbf, tasks as lbf/crowd, or TOML files with tasks of your own.
    """
    from dropin.experiments.benchmark.tasks import select_tasks

    rows = [
        (
            task.name,
            str(task.version),
            ", ".join(map(str, task.test_limits)),
            _types(task.train_types),
            _types(task.test_types),
            task.summary,
        )
        for task in select_tasks(names)
    ]
    show_table(("task", "version", "test limits", "trained with", "tested with", "what"), rows)


def _types(names: tuple[str, ...] | None) -> str:
    return "all" if names is None else " ".join(names)


def _pin(cores: tuple[int, ...] | None) -> None:
    """Use some cores only, before JAX is imported, which starts a thread for every core."""
    if cores is not None:
        from dropin.training.parallel import pin

        pin(cores)


def _run(benchmark: "Benchmark", *, plan: bool) -> None:
    """Train and measure, and print the returns; or only show the plan."""
    from dropin.core.errors import StoppedError
    from dropin.experiments.benchmark.storing import check_earlier, store_results
    from dropin.training.reporters import check_screen, screen_reporter

    options = benchmark.options
    check_screen(options.report)
    for note in benchmark.notes:
        print(f"dropin: {note}", file=sys.stderr)
    if options.report in ("auto", "lines") and benchmark.is_learner:
        _show_plan(benchmark)
    if plan:
        return
    check_earlier(benchmark)
    reporter = screen_reporter("lines" if options.report == "auto" else options.report)
    try:
        with reporter:
            records, failures = benchmark.attempt(reporter.say)
    except KeyboardInterrupt:
        print("Interrupted: run the same command again to continue.", file=sys.stderr)
        raise
    written = store_results(benchmark, records, _public_command(sys.argv[1:]))
    if options.report in ("auto", "lines"):
        _show_returns(records)
        for path in written:
            print(path)
    if failures:
        raise StoppedError(" ".join(failures))


def _public_command(words: Sequence[str]) -> str:
    """Return a command for others to read: of a path from the root, its last name is enough."""
    told = []
    for word in words:
        option, equals, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
        told.append(f"{option}{equals}{Path(value).name if Path(value).is_absolute() else value}")
    return shlex.join(["dropin", *told])


def _show_plan(benchmark: "Benchmark") -> None:
    """Print the training runs, and about how long those that are missing take."""
    from dropin.experiments.planning import Progress
    from dropin.training.parallel import cores

    jobs = benchmark.plan.jobs
    kinds: dict[tuple[str, str, str], list[Progress]] = {}
    for job in jobs:
        kind = (job.config.game, job.grid, f"{job.config.steps:,}")
        kinds.setdefault(kind, []).append(job.progress)
    columns = ("game", "trained for", "steps", *(each.value for each in Progress))
    rows = [
        (*kind, *(str(found.count(each)) for each in Progress)) for kind, found in kinds.items()
    ]
    show_table(columns, rows, numbers=4)
    total = sum(job.seconds_left for job in jobs)
    if total and benchmark.options.train:
        left = format_time(max(total / len(cores()), *(job.seconds_left for job in jobs)))
        print(f"About {left} on {len(cores())} cores, judged by the speed of another machine.")


def _show_returns(records: "Sequence[Record]") -> None:
    """Print the mean return of each task, team limit and kind of agent."""
    from dropin.evaluation.statistics import estimate
    from dropin.experiments.benchmark.records import mean_returns

    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        key = (record.task, str(record.team_limit), record.learner, record.checkpoint)
        groups.setdefault(key, []).append(record)
    rows = []
    for key, group in groups.items():
        mean = estimate(mean_returns(group))
        rows.append((*key, str(len(group)), f"{mean.mean:.2f}", mean.interval))
    columns = ("task", "limit", "learner", "agent", "seeds", "return", "95 % interval")
    show_table(columns, rows, numbers=3)
