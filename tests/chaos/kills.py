"""Processes that are killed at random moments, and started again until they are done.

The parent imports everything and computes nothing, so that JAX has not started a thread yet; a
process that is to be killed is a fork of it and begins at once.
"""

import gc
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from chaos.moments import ANY_TIME, MOMENTS, killed_at, timed
from chaos.workloads import Workload, contents, differing, repeated_steps

POLL = 0.005
TIMEOUT = 600.0


@dataclass
class Found:
    """What was tried, and what broke a promise; with a file, that of several campaigns.

    Args:
        tally: The file that keeps it.
    """

    tally: Path | None = None
    kills: dict[str, dict[str, int]] = field(default_factory=dict)
    """The number of kills of each workload, by kind of moment."""
    tries: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.tally is not None and self.tally.exists():
            before = json.loads(self.tally.read_text())
            self.kills, self.tries = before["kills"], before["tries"]
            self.broken = before["broken"]

    def save(self) -> None:
        """Write the file, if there is one."""
        if self.tally is not None:
            kept = {name: each for name, each in asdict(self).items() if name != "tally"}
            self.tally.write_text(json.dumps(kept, indent=1))

    def count(self, what: str, number: int = 1) -> None:
        """Add to a number of tries."""
        self.tries[what] = self.tries.get(what, 0) + number

    def count_kill(self, name: str, moment: str) -> None:
        """Add a kill.

        Args:
            name: What was killed.
            moment: The kind of moment.
        """
        row = self.kills.setdefault(name, {})
        row[moment] = row.get(moment, 0) + 1
        print(f"killed: {name}, {moment}", flush=True)
        self.save()

    def break_promise(self, sentence: str) -> None:
        """Note that a promise was broken."""
        self.broken.append(sentence)
        print(f"BROKEN {sentence}", flush=True)
        self.save()

    def kills_of(self, name: str) -> int:
        """Return the number of kills of a workload."""
        return sum(self.kills.get(name, {}).values())

    def least(self, name: str, moments: Iterable[str]) -> list[str]:
        """Return kinds of moments, those at which a workload was killed least first."""
        row = self.kills.get(name, {})
        return sorted(moments, key=lambda moment: row.get(moment, 0))


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
        gc.disable()  # It takes a good part of a start, in which JAX traces programs.
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
        self.log, times = self.scratch / "log.txt", self.scratch / "times.json"
        whole = self.scratch / "whole"
        self.scratch.mkdir(parents=True)

        def work() -> None:
            seconds: dict[str, float] = {}
            with timed(self.workload.places, seconds):
                self.workload.start(whole)
            times.write_text(json.dumps(seconds))

        begin = time.monotonic()
        assert wait_for(fork(work, self.log)) == 0, self._last_words()
        self.life = time.monotonic() - begin
        self.seconds = json.loads(times.read_text())
        self.reference = contents(whole)

    def disturb(self, found: Found, until: float) -> None:
        """Kill it at each kind of moment, let it end, and compare it with what was not killed.

        A run that ends before its moment comes is compared, and another one is begun.

        Args:
            found: Where to note what is found; kinds that it has least come first.
            until: When to stop killing.
        """
        directory = self._fresh()
        moments = list(self.workload.moments)
        self.rng.shuffle(moments)
        for moment in found.least(self.workload.name, moments):
            if time.monotonic() > until:
                break
            code = self._kill(moment, directory)
            if code == -signal.SIGKILL:
                found.count_kill(self.workload.name, moment)
                if repeated_steps(directory):
                    found.break_promise(f"{self._what}: a step comes twice in the metrics")
            elif code:
                found.break_promise(f"{self._what}: {self._last_words()}")
            else:
                self._compare(directory, found)
                directory = self._fresh()
        code = wait_for(fork(lambda: self.workload.go_on(directory), self.log))
        if code:
            found.break_promise(f"{self._what}: {self._last_words()}")
        self._compare(directory, found)

    @property
    def _what(self) -> str:
        return f"{self.workload.name}, run {self.number} of seed {self.seed}"

    def _fresh(self) -> Path:
        self.number += 1
        return self.scratch / f"run-{self.number}"

    def _compare(self, directory: Path, found: Found) -> None:
        if different := differing(self.reference, contents(directory)):
            names = ", ".join(different)
            found.break_promise(f"{self._what}: {names} differ in {directory}")
        else:
            shutil.rmtree(directory)
        found.count("runs compared")
        found.save()

    def _last_words(self) -> str:
        return (self.log.read_text().strip().splitlines() or ["no words"])[-1]

    def _kill(self, moment: str, directory: Path) -> int:
        """Start or continue the run and kill it; return how it ended."""
        rng = random.Random(self.rng.random())

        def work() -> None:
            with killed_at(moment, self.scratch, self.workload.places, self.seconds, rng):
                self.workload.go_on(directory)

        if moment != ANY_TIME:
            return wait_for(fork(work, self.log))
        end = time.monotonic() + rng.uniform(0, self.life)
        child = fork(lambda: self.workload.go_on(directory), self.log)
        while (code := ended(child)) is None:
            if time.monotonic() >= end:
                os.kill(child, signal.SIGKILL)
                return wait_for(child)
            time.sleep(POLL)
        return code


def table(kills: dict[str, dict[str, int]]) -> str:
    """Return a table of the kills: a row for each workload, a column for each kind of moment."""
    others = {moment for row in kills.values() for moment in row} - set(MOMENTS)
    columns = [*MOMENTS, *sorted(others)]
    width = max(map(len, kills), default=0)
    lines = [f"{'killed':{width}}" + "".join(f"{each:>12}" for each in [*columns, "all"])]
    for name, row in kills.items():
        cells = [row.get(each, 0) for each in columns]
        shown = "".join(f"{each or '-':>12}" for each in [*cells, sum(cells)])
        lines.append(f"{name:{width}}{shown}")
    return "\n".join(lines)
