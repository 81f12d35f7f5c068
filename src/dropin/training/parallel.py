"""Several runs at once: one pinned process for each core."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import Queue
from typing import Any

from dropin.core.errors import InputError, StoppedError
from dropin.training.reporters import (
    Board,
    Json,
    Lines,
    Reporter,
    screen_reporter,
)

__all__ = ["board_for", "cores", "pin", "raise_failures", "run_all", "show_state"]

LOCK_TIMEOUT = 120.0
"""Seconds that a run waits for one whose parent was killed. That one ends at its next report, when
nobody reads it."""


def cores() -> list[int]:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def pin(numbers: Sequence[int]) -> None:
    """Let this process, and those that it starts, use some cores only.

    Args:
        numbers: The cores.

    Raises:
        InputError: If there is no such core, or the system cannot do this.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise InputError("Processes cannot be pinned to cores on this system.")
    for core in numbers:
        if core not in cores():
            raise InputError(f"There is no core {core}: it can be {', '.join(map(str, cores()))}.")
    os.sched_setaffinity(0, set(numbers))


def _pass_on_priority(pid: int) -> None:
    """Give the session of a process the priority of this process, where sessions have one.

    Linux shares a core first among sessions (autogroups), then among the processes of each. A new
    session starts with the normal priority, so a lowered one would have no effect on others.
    """
    try:
        with open(f"/proc/{pid}/autogroup", "w") as group:
            group.write(str(os.getpriority(os.PRIO_PROCESS, 0)))
    except OSError:
        return  # Another system, or autogroups are switched off, or it has ended already.


class _Worker:
    """A process that trains one run on one core."""

    def __init__(self, name: str, arguments: Sequence[str], core: int, messages: "Queue[Any]"):
        self.name, self.core = name, core
        command = [sys.executable, "-m", "dropin.cli", "train", *arguments]
        command += ["--report", "json", "--wait", str(LOCK_TIMEOUT)]
        if hasattr(os, "sched_setaffinity"):
            command += ["--core", str(core)]
        # A session of its own: Ctrl-C in the terminal reaches this process alone, which passes it
        # on once. A second signal would end the run without saving.
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        _pass_on_priority(self.process.pid)
        self.errors: list[str] = []
        threading.Thread(target=self._listen, args=(messages,), daemon=True).start()

    def _listen(self, messages: "Queue[Any]") -> None:
        collect = threading.Thread(target=self._collect, daemon=True)
        collect.start()
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                messages.put((self, json.loads(line)))
            except ValueError:
                continue
        self.process.wait()
        collect.join()
        self.process.stdout.close()
        messages.put((self, {"kind": "end"}))

    @property
    def failure(self) -> str:
        """The reason why it failed; empty if it finished or was asked to end."""
        if self.process.returncode in (0, 130):
            return ""
        return self.errors[-1] if self.errors else "it ended"

    @property
    def ended(self) -> str:
        """How it ended, in a word."""
        if self.failure:
            return f"failed: {self.failure}"
        return "saved" if self.process.returncode else "done"

    def _collect(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as errors:
            self.errors += [line.rstrip() for line in errors]


def run_all(
    jobs: Mapping[str, Sequence[str]],
    report: str = "auto",
    *,
    on_start: Callable[[str], None] | None = None,
    on_end: Callable[[str, str], None] | None = None,
) -> None:
    """Run several `dropin train` processes, as many at a time as there are cores.

    Ctrl-C (or SIGTERM) is passed on to all of them; each saves before it ends.

    Args:
        jobs: The arguments of each run, by its name, in the order in which they start.
        report: "auto", "lines", "json" or "none".
        on_start: Called with the name of a run before its process starts.
        on_end: Called with the name of a run that was not interrupted, and why it failed (nothing
            if it is done). Its core stays free until this returns.

    Raises:
        StoppedError: If some of the runs failed; the others have been finished.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run_all(jobs, report, on_start or _ignore, on_end or _ignore)
    finally:
        signal.signal(signal.SIGTERM, before)


def _ignore(*_: str) -> None:
    """Do nothing."""


def _run_all(
    jobs: Mapping[str, Sequence[str]],
    report: str,
    on_start: Callable[[str], None],
    on_end: Callable[[str, str], None],
) -> None:
    messages: Queue[Any] = Queue()
    waiting, free = list(jobs.items()), cores()
    working: list[_Worker] = []
    failed: dict[str, str] = {}
    interrupted = False
    board = board_for(report)
    with board:
        for name in jobs:
            show_state(board, name, "waiting")
        try:
            while waiting or working:
                while waiting and free and not interrupted:
                    name, arguments = waiting.pop(0)
                    on_start(name)
                    working.append(_Worker(name, arguments, free.pop(0), messages))
                if not working:
                    break
                try:
                    worker, message = messages.get()
                except KeyboardInterrupt:
                    interrupted = True
                    _pass_on_interrupt(working)
                    continue
                if message["kind"] != "end":
                    board.pass_on(worker.name, message)
                    continue
                working.remove(worker)
                free.append(worker.core)
                show_state(board, worker.name, worker.ended)
                if worker.failure:
                    failed[worker.name] = worker.failure
                if worker.process.returncode == 130:
                    interrupted = True
                    continue
                try:
                    on_end(worker.name, worker.failure)
                except KeyboardInterrupt:
                    interrupted = True
                    _pass_on_interrupt(working)
        finally:
            for each in working:
                each.process.terminate()
    raise_failures(failed, len(jobs))
    if interrupted:
        raise KeyboardInterrupt


def _pass_on_interrupt(working: Sequence[_Worker]) -> None:
    """Ask all workers to save and end."""
    for each in working:
        each.process.send_signal(signal.SIGTERM)


def raise_failures(failed: Mapping[str, str], number: int) -> None:
    """Raise `StoppedError` if some runs failed.

    Args:
        failed: The reason of each failure, by the name of the run.
        number: Number of runs in all.
    """
    if failed:
        reasons = "; ".join(f"{name}: {why}" for name, why in failed.items())
        raise StoppedError(f"{len(failed)} of {number} runs failed. {reasons}")


def board_for(report: str) -> Reporter:
    """Return the reporter for several runs; `report` is as in `run_all`."""
    from rich.console import Console

    if report in ("none", "json"):
        return screen_reporter(report)
    return Board() if report == "auto" and Console().is_terminal else Lines()


def show_state(board: Reporter, name: str, state: str) -> None:
    """Show the state of a run; reports other than a table only say that it has ended.

    Args:
        board: The reporter of all runs.
        name: The name of the run.
        state: Its state, as "waiting" or "done".
    """
    if isinstance(board, Board):
        board.show(name, state=state)
    elif not isinstance(board, Json) and state != "waiting":
        board.say(f"{name}: {state}")
