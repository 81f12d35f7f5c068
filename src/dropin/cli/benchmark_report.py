"""What is made of the benchmark's records: `dropin benchmark submit`, `report`, `leaderboard`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from dropin.core.errors import InputError, unknown

__all__ = ["keep", "leaderboard", "report", "submit"]

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


def keep(directories: Directories = (), out: Path = Path("docs/results/benchmark")) -> None:
    """Keep results as small tables without agents and episodes, and write a page about them.

    Pages of kept results are those of the results themselves.

    Args:
        directories: Directories with results, or that hold such; benchmark if none is given.
        out: Where to keep them, a directory for each learner, beside those that are there.
    """
    from dropin.experiments.benchmark.kept_results import keep_results
    from dropin.experiments.benchmark.results import Results, results_name
    from dropin.experiments.benchmark.standing import collect

    collected = collect(directories or (Path("benchmark"),), need_receipt=False)
    for path, reason in collected.refused.items():
        print(f"dropin: {path} is left out: {reason}", file=sys.stderr)
    whole = [each for each in collected.results if isinstance(each, Results)]
    if not whole:
        raise InputError("There are no results to keep.")
    for each in whole:
        print(keep_results(each, out / results_name(each.about.learner, each.about.scale)))
    _write((out,), out, "report", "last", csv=False, need_receipt=False)


def _write(
    roots: tuple[Path, ...], out: Path, name: str, checkpoint: str, *, csv: bool, need_receipt: bool
) -> None:
    from dropin.experiments.benchmark.episode_file import write_episode_table
    from dropin.experiments.benchmark.leaderboard import write_leaderboard
    from dropin.experiments.benchmark.records import CHECKPOINTS
    from dropin.experiments.benchmark.results import Results
    from dropin.experiments.benchmark.standing import collect
    from dropin.experiments.benchmark.tasks import builtin_tasks

    if checkpoint not in CHECKPOINTS:
        raise unknown("checkpoint", checkpoint, CHECKPOINTS)
    roots = roots or (Path("benchmark"),)
    collected = collect(roots, need_receipt=need_receipt)
    command = shlex.join(["dropin", "benchmark", name, *map(str, roots), "--out", str(out)])
    if checkpoint != "last":
        command += f" --checkpoint {checkpoint}"
    pages = write_leaderboard(
        collected, out, command, name=name, checkpoint=checkpoint, tasks=builtin_tasks()
    )
    for path, reason in collected.refused.items():
        print(f"dropin: {path} is left out: {reason}", file=sys.stderr)
    if csv:
        whole = [each for each in collected.results if isinstance(each, Results)]
        if not whole:
            raise InputError("There are no episodes to write: kept results hold means only.")
        pages.append(out / "episodes.csv")
        write_episode_table(pages[-1], {each.about.learner: each.records for each in whole})
    for page in pages:
        print(page)
