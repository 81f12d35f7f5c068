"""What is made of the benchmark's records: `dropin benchmark submit`, `report`, `leaderboard`."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from dropin.core.errors import InputError, unknown

if TYPE_CHECKING:
    from dropin.experiments.benchmark.records import Record
    from dropin.experiments.benchmark.running import Benchmark

__all__ = ["leaderboard", "report", "store_results", "submit"]

Directories = Annotated[Positional[tuple[Path, ...]], arg(metavar="[DIR ...]")]


def submit(
    directory: Annotated[Positional[Path], arg(metavar="DIR")],
    quick: bool = False,
    entry: str | None = None,
) -> None:
    """Check results completely, play their records again, and write a receipt if all is well.

    Everything that is wrong is printed, a sentence each; the exit code is 2 then.

    Args:
        directory: The directory with results.json.
        quick: Play only a sample of the records again, which the checksum of the results chooses.
        entry: For a learner that is not Dropin's: module:function, which makes its policy. Only
            name one whose code you trust.
    """
    from dropin.experiments.benchmark.receipt import write_receipt
    from dropin.experiments.benchmark.replay import Replayed, task_rules
    from dropin.experiments.benchmark.results import read_results
    from dropin.experiments.benchmark.submission import check_submission
    from dropin.experiments.benchmark.tasks import select_tasks

    about, tasks = read_results(directory, check_summaries=False).about, select_tasks()
    replay = Replayed(tasks)
    if about.kind == "foreign":
        replay = None
        if entry is not None:
            from dropin.interop.foreign import ReplayedForeign, load_entry

            replay = ReplayedForeign(load_entry(entry), tasks)
    elif entry is not None:
        raise InputError(f"--entry is for foreign policies: {directory} holds agents of Dropin.")
    check = check_submission(directory, task_rules(tasks, about), replay, quick=quick)
    for problem in check.problems:
        print(f"dropin: {problem}", file=sys.stderr)
    if check.problems:
        raise SystemExit(2)
    print(check.summary)
    if about.scale < 1:
        print(f"A small version: {about.scale:g} of the tasks' budgets.")
    print(write_receipt(check, quick=quick))


def report(
    directories: Directories = (),
    out: Path = Path("benchmark/report"),
    checkpoint: str = "last",
    csv: bool = False,
) -> None:
    """Write a page about the results of one or several learners.

    Args:
        directories: Directories with results, or that hold such; benchmark if none is given.
        out: Where to write the page.
        checkpoint: Which agents to compare: last or best.
        csv: Also write every episode as a row of episodes.csv.
    """
    _write(directories, out, "report", checkpoint, csv=csv, need_receipt=False)


def leaderboard(
    roots: Annotated[Positional[tuple[Path, ...]], arg(metavar="ROOT")],
    out: Path = Path("leaderboard"),
    checkpoint: str = "last",
    csv: bool = False,
) -> None:
    """Write the leaderboard of all checked results below a directory.

    Results without a receipt of `dropin benchmark submit` are listed with the reason.

    Args:
        roots: Directories that hold results.
        out: Where to write the page.
        checkpoint: Which agents to compare: last or best.
        csv: Also write every episode as a row of episodes.csv.
    """
    _write(roots, out, "leaderboard", checkpoint, csv=csv, need_receipt=True)


def _write(
    roots: tuple[Path, ...], out: Path, name: str, checkpoint: str, *, csv: bool, need_receipt: bool
) -> None:
    from dropin.experiments.benchmark.episode_file import write_episode_table
    from dropin.experiments.benchmark.leaderboard import write_leaderboard
    from dropin.experiments.benchmark.records import CHECKPOINTS
    from dropin.experiments.benchmark.standing import collect

    if checkpoint not in CHECKPOINTS:
        raise unknown("checkpoint", checkpoint, CHECKPOINTS)
    roots = roots or (Path("benchmark"),)
    collected = collect(roots, need_receipt=need_receipt)
    command = shlex.join(["dropin", "benchmark", name, *map(str, roots)])
    if checkpoint != "last":
        command += f" --checkpoint {checkpoint}"
    pages = write_leaderboard(collected, out, command, name=name, checkpoint=checkpoint)
    for path, reason in collected.refused.items():
        print(f"dropin: {path} is left out: {reason}", file=sys.stderr)
    if csv:
        pages.append(out / "episodes.csv")
        write_episode_table(
            pages[-1], {each.about.learner: each.records for each in collected.results}
        )
    for page in pages:
        print(page)


def store_results(benchmark: "Benchmark", records: "list[Record]", command: str) -> list[Path]:
    """Write the results of a benchmark's records, a directory for each learner.

    Args:
        benchmark: The benchmark.
        records: Its records.
        command: The command that made them.

    Returns:
        The directories, below `results` of the benchmark's directory.
    """
    from dropin.core.config import to_dict
    from dropin.experiments.benchmark.results import About, AgentKey, Kind, write_results

    agents: dict[str, dict[AgentKey, Path]] = {}
    for trial in benchmark.trials():
        if isinstance(trial.who, Path):
            key = (trial.task.name, trial.limit, trial.seed, trial.checkpoint)
            agents.setdefault(trial.learner, {})[key] = trial.who
    jobs = benchmark.plan.jobs
    config = to_dict(jobs[0].config) if jobs else {}
    written = []
    for learner in dict.fromkeys(record.learner for record in records):
        files = agents.get(learner, {})
        kind: Kind = "dropin" if files else "policy"
        about = About.here(
            learner,
            kind=kind,
            settings=config.get("settings", {}) if files else {},
            training=config if files else {},
            scale=benchmark.options.scale,
            command=command,
        )
        directory = benchmark.options.directory / "results" / learner.replace("/", "-")
        own = [record for record in records if record.learner == learner]
        write_results(directory, own, about, files, replace=True)
        written.append(directory)
    return written
