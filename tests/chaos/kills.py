"""Processes that are killed at random moments, and started again until they are done.

The parent imports everything and computes nothing, so that JAX has not started a thread yet; a
process that is to be killed is a fork of it and begins at once.
"""

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from chaos.disk import CutShortError, Operation, watched
from chaos.workloads import Workload, contents, differing, repeated_steps

POLL = 0.002
MOST_KILLS = 6
"""Kills of one run, which is then left to end."""
MOST_OPERATIONS = 80
"""A process that kills itself does so before one of so many operations on files."""
TIMEOUT = 600.0
ANY_TIME, TRAINING, OPERATION = "any time", "while it trains", "operation"
KILLS = (ANY_TIME, TRAINING, OPERATION, "driver killed")
"""When a process is killed, as in the names of what is counted: at any time of its life; while it
trains; by itself, at an operation on a file; and a command with processes of its own."""


@dataclass
class KillSelf:
    """A hook that kills the process at one operation, a write when it is half done.

    Args:
        at: The number of the operation, from 0 on.
    """

    at: int
    count: int = 0

    def __call__(self, operation: Operation) -> None:
        number, self.count = self.count, self.count + 1
        if number == self.at:
            if operation.kind == "write":
                raise CutShortError(_kill_self)
            _kill_self()


def _kill_self() -> OSError:
    os.kill(os.getpid(), signal.SIGKILL)
    return OSError("is never reached")


@dataclass
class Found:
    """What was tried, and what broke a promise."""

    tries: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def count(self, what: str, number: int = 1) -> None:
        """Add to a number of tries."""
        self.tries[what] = self.tries.get(what, 0) + number


def fork(work: Callable[[], None], log: Path) -> int:
    """Do something in a process of its own, which is the first of its group.

    Args:
        work: What to do.
        log: A file for all that it prints.

    Returns:
        The number of the process.
    """
    sys.stdout.flush()
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        os.setpgid(0, 0)
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        work()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ended(number: int) -> int | None:
    """Return the exit code of a process, negative for a signal; None while it is running."""
    found, status = os.waitpid(number, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def wait_for(number: int) -> int:
    """Wait for a process to end, and return its exit code."""
    until = time.monotonic() + TIMEOUT
    while (code := ended(number)) is None:
        if time.monotonic() > until:
            os.kill(number, signal.SIGKILL)
        time.sleep(POLL)
    return code


def _signature(directory: Path) -> list[tuple[str, int]]:
    found = []
    for path in directory.rglob("*"):
        try:
            found.append((str(path), path.stat().st_mtime_ns))
        except FileNotFoundError:
            continue
    return sorted(each for each in found if not each[0].endswith(".lock"))


@dataclass
class Victim:
    """A workload with what it leaves if it is not killed, and how long it takes.

    Args:
        workload: The workload.
        scratch: A directory for its runs.
        seed: Decides when it is killed.
    """

    workload: Workload
    scratch: Path
    seed: int

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.number = 0
        self.log = self.scratch / "log.txt"
        whole = self.scratch / "whole"
        self.scratch.mkdir(parents=True)
        begin = work = 0.0
        for _ in range(2):  # The first one compiles.
            shutil.rmtree(whole, ignore_errors=True)
            begin, work = time.monotonic(), 0.0
            child = fork(lambda: self.workload.start(whole), self.log)
            while (code := ended(child)) is None:
                if not work and any(whole.rglob("*.safetensors")):
                    work = time.monotonic()
                time.sleep(POLL)
            assert code == 0, self.log.read_text()[-2000:]
        self.life, self.work = time.monotonic() - begin, time.monotonic() - (work or begin)
        self.reference = contents(whole)

    def disturb(self, found: Found, until: float) -> None:
        """Kill a run several times, let it end, and compare it with the one that was not killed."""
        self.number += 1
        directory = self.scratch / f"run-{self.number}"
        what = f"{self.workload.name}, run {self.number} of seed {self.seed}"
        for _ in range(MOST_KILLS):
            kind = self.rng.choices((ANY_TIME, TRAINING, OPERATION), (1, 2, 1))[0]
            code = self._kill(kind, directory)
            if code == -signal.SIGKILL:
                found.count(f"{self.workload.name}: {kind}")
                if repeated_steps(directory):
                    found.broken.append(f"{what}: a step comes twice in the metrics")
            else:
                if code:
                    found.broken.append(f"{what}: {self._last_words()}")
                break
            if time.monotonic() > until:
                break
        code = wait_for(fork(lambda: self.workload.go_on(directory), self.log))
        if code:
            found.broken.append(f"{what}: {self._last_words()}")
        different = differing(self.reference, contents(directory))
        if different:
            found.broken.append(f"{what}: {', '.join(different)} differ in {directory}")
        else:
            shutil.rmtree(directory)
        found.count("runs compared")

    def _last_words(self) -> str:
        return (self.log.read_text().strip().splitlines() or ["no words"])[-1]

    def _kill(self, kind: str, directory: Path) -> int:
        """Start or continue the run and kill it; return how it ended."""
        if kind == OPERATION:
            hook = KillSelf(self.rng.randrange(MOST_OPERATIONS))

            def work() -> None:
                with watched(self.scratch, hook):
                    self.workload.go_on(directory)

            return wait_for(fork(work, self.log))
        before = _signature(directory)
        child = fork(lambda: self.workload.go_on(directory), self.log)
        if kind == ANY_TIME:
            moment = time.monotonic() + self.rng.uniform(0, self.life)
        else:
            while (code := ended(child)) is None and _signature(directory) == before:
                time.sleep(POLL)
            if code is not None:
                return code
            moment = time.monotonic() + self.rng.uniform(0, self.work / 2)
        while (code := ended(child)) is None and time.monotonic() < moment:
            time.sleep(POLL)
        if code is not None:
            return code
        os.kill(child, signal.SIGKILL)
        return wait_for(child)
