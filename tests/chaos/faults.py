"""Loss of power and faults of the disk, at every operation of short runs."""

import errno
import os
import random
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from made_up import TRAINING, fill, make_experiment, write_run

from chaos import counter
from chaos.disk import CHANGES, Fault, Journal, Operation, watched
from chaos.kills import Found
from chaos.power import LOSSES, PoweredDisk, put
from chaos.workloads import contents, differing
from dropin.agents import AGENT_FILE
from dropin.core.errors import InputError, StoppedError
from dropin.experiments import Options
from dropin.experiments import kept as kept_runs
from dropin.experiments.planning import StoredRun
from dropin.training.run_directory import RunDirectory
from dropin.training.sets_of_runs import create_runs

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS)
"""The disk is full, an operation fails once, access is denied once, and from now on the disk can
only be read, as Linux leaves one that had an error."""


@dataclass(frozen=True)
class Job:
    """Something that writes files in a directory.

    All three functions get the directory.
    """

    name: str
    prepare: Callable[[Path], None]
    """Writes what is there before."""
    do: Callable[[Path], object]
    """Does it. Done again after it has failed or was cut off, it goes on."""


def _nothing(directory: Path) -> None:
    del directory


def _cut_back(directory: Path) -> None:
    """Leave a run as if it had been killed when it was half done."""
    counter.start(directory / "run")
    files = RunDirectory(directory / "run")
    for step in files.steps():
        if step > 40:
            files.checkpoint(step).unlink()


def _two_runs(directory: Path) -> None:
    """Create two runs, as one command does, and train them."""
    paths = [directory / f"seed-{seed}" for seed in (0, 1)]
    configs = [counter.config(seed) for seed in (0, 1)]
    if not all(RunDirectory(each).exists for each in paths):
        create_runs(paths, configs, "agents")
    for each in paths:
        counter.go_on(each)


def _evaluated(directory: Path) -> None:
    """Make up a finished run."""
    write_run(directory / "run", counter.config(), {3: [1.0, 2.0], 5: [0.5, 1.5]})


def _publish(directory: Path) -> None:
    """Keep the run, with fresh episodes that nobody played."""
    fresh = [{"step": 120, "team_limit": 3, "mode": "greedy", "mean_return": 2.5, "agent": "last"}]
    run = StoredRun(directory / "run", counter.config())
    with mock.patch.object(kept_runs, "fresh_evaluations", return_value=fresh):
        kept_runs.publish(run, directory / "results")


OPTIONS = Options(
    rules="reference", games=("lbf",), learners=("ql",), seeds=2, estimator="fixed", scale=0.05
)


def _fill(directory: Path) -> None:
    fill(directory, "table2", OPTIONS, TRAINING)


def _write_page(directory: Path) -> None:
    make_experiment(directory, "table2", OPTIONS).write("dropin reproduce table2")


def jobs(scratch: Path) -> list[Job]:
    """Return all that is disturbed.

    Args:
        scratch: A directory in which a run that is cut back can be made.
    """
    half = scratch / "half"
    _cut_back(half)

    def put_half(directory: Path) -> None:
        shutil.copytree(half, directory, dirs_exist_ok=True)

    def run(directory: Path) -> None:
        counter.go_on(directory / "run")

    return [
        Job("train", _nothing, run),
        Job("resume", put_half, run),
        Job("create and train two seeds", _nothing, _two_runs),
        Job("keep a finished run", _evaluated, _publish),
        Job("write a page of results", _fill, _write_page),
    ]


@contextmanager
def quiet() -> Iterator[None]:
    """Do not show warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def undisturbed(job: Job, scratch: Path) -> tuple[dict[str, bytes], list[Operation], Path]:
    """Do a job, and return what it leaves, what it did to the disk, and where.

    Args:
        job: The job.
        scratch: A directory that does not exist.
    """
    root = scratch / "root"
    root.mkdir(parents=True)
    job.prepare(root)
    journal = Journal()
    with quiet(), watched(root, journal):
        job.do(root)
    return contents(root), journal.operations, root


def lose_power(
    job: Job, scratch: Path, found: Found, until: float, seed: int = 0, most: int | None = None
) -> bool:
    """Do a job on a disk whose power fails after every operation, and go on.

    Args:
        job: The job; what is there before is certain.
        scratch: A directory that does not exist.
        found: Where to note what is found.
        until: When to stop.
        seed: Decides the order, and what is random.
        most: The largest number of cases; all of them if it is None.

    Returns:
        Whether there was time for all of it.
    """
    reference, operations, root = undisturbed(job, scratch / "whole")
    shutil.rmtree(root)
    root.mkdir()
    job.prepare(root)
    before = [*_as_operations(root)]
    changes = [each for each in operations if each.kind in CHANGES]
    cases = [(end, loss) for end in range(len(changes) + 1) for loss in LOSSES]
    random.Random(seed).shuffle(cases)
    seen: set[int] = set()
    for end, loss in cases[:most]:
        if time.monotonic() > until:
            return False
        state = PoweredDisk(root, [*before, *changes[:end]]).after(loss, seed + end)
        found.count(f"power: {job.name}, moments and losses")
        if hash(tuple(state.items())) in seen:
            continue
        seen.add(hash(tuple(state.items())))
        shutil.rmtree(root)
        root.mkdir()
        put(state, root)
        what = f"power: {job.name}, {loss} after operation {end} of {len(changes)}"
        _check_goes_on(job, root, reference, what, found)
        found.count(f"power: {job.name}, different disks")
    shutil.rmtree(scratch)
    return True


def _as_operations(root: Path) -> Iterator[Operation]:
    """Yield operations that make what is in a directory, all of it synced."""
    for path in sorted(root.rglob("*")):
        name = str(path)
        if path.is_dir():
            yield Operation("mkdir", name)
        else:
            yield Operation("create", name)
            yield Operation("write", name, path.read_bytes())
            yield Operation("sync", name)
        yield Operation("sync", str(path.parent))


def fail(
    job: Job, scratch: Path, found: Found, until: float, seed: int = 0, most: int | None = None
) -> bool:
    """Do a job on a disk that fails at one operation, at every one of them, and go on.

    Args:
        job: The job.
        scratch: A directory that does not exist.
        found: Where to note what is found.
        until: When to stop.
        seed: Decides the order.
        most: The largest number of cases; all of them if it is None.

    Returns:
        Whether there was time for all of it.
    """
    reference, operations, root = undisturbed(job, scratch / "whole")
    cases = [(at, error) for at in range(len(operations)) for error in ERRORS]
    random.Random(seed).shuffle(cases)
    for at, error in cases[:most]:
        if time.monotonic() > until:
            return False
        shutil.rmtree(root)
        root.mkdir()
        job.prepare(root)
        before = contents(root)
        fault = Fault(at, error)
        kind = f"{operations[at].kind} {Path(operations[at].path).relative_to(root)}"
        what = f"disk: {job.name}, {errno.errorcode[error]} at operation {at} ({kind})"
        try:
            with quiet(), watched(root, fault):
                job.do(root)
        except (InputError, StoppedError, OSError) as stop:
            _check_sentence(stop, root, what, found)
        except Exception as other:  # A traceback for the user.
            found.break_promise(f"{what}: {type(other).__name__}: {other}")
        if harmed := _harmed(before, contents(root), reference):
            found.break_promise(f"{what}: {', '.join(harmed)} harmed")
        _check_goes_on(job, root, reference, what, found)
        found.count(f"disk: {job.name}, {errno.errorcode[error]}")
    shutil.rmtree(scratch)
    return True


def _harmed(
    before: dict[str, bytes], after: dict[str, bytes], reference: dict[str, bytes]
) -> list[str]:
    """Return the files that are neither as they were nor on the way to what they will be."""
    found = []
    for name, content in before.items():
        now, end = after.get(name), reference.get(name)
        on_the_way = name.endswith(".csv") and now and end and end.startswith(now)
        # The agent of a run is that of the checkpoint with which it goes on.
        if now not in (content, end) and not on_the_way and not name.endswith(AGENT_FILE):
            found.append(name)
    return found


def _check_sentence(error: Exception, root: Path, what: str, found: Found) -> None:
    """Note an error that is not one sentence for the user which names the file."""
    text = str(error)
    if isinstance(error, OSError):  # As the command says it.
        text = f"{error.filename or 'A file'} cannot be read or written: {error.strerror}."
    if str(root) not in text or "\n" in text or ".tmp" in text:
        found.break_promise(f"{what}: the message is {text!r}")


def _check_goes_on(
    job: Job, root: Path, reference: dict[str, bytes], what: str, found: Found
) -> None:
    """Do a job again, and note if it does not end as it should."""
    try:
        with quiet():
            job.do(root)
    except Exception as error:
        found.break_promise(f"{what}: it does not go on: {type(error).__name__}: {error}")
        return
    if different := differing(reference, contents(root)):
        found.break_promise(f"{what}: {', '.join(different)} differ afterwards")


def fast_scratch(name: str, usual: Path) -> Path:
    """Return a directory in memory, if there is one: syncs of a real disk take most of the time.

    Args:
        name: Its name.
        usual: Where it is if there is no file system in memory.
    """
    memory = Path("/dev/shm")
    root = memory if os.access(memory, os.W_OK) else usual
    return root / name
