"""Kinds of moments at which a process kills itself, by SIGKILL: nothing of it runs afterwards."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import jax

from chaos.disk import CutShortError, Operation, watched

ANY_TIME, CHUNK, EVALUATION = "any time", "chunk", "evaluation"
CHECKPOINT, RENAME, ROW = "checkpoint", "rename", "row"
MOMENTS = (ANY_TIME, CHUNK, EVALUATION, CHECKPOINT, RENAME, ROW)
"""At any time of its life; in the middle of a chunk of updates, of an evaluation, or of the write
of a checkpoint; before or just after a file gets its name; in the middle of the write of a row."""
NEXT = 3
"""The moment is one of the next so many of its kind."""

Place = tuple[Any, str]
"""A module or class, and the name of one of its functions."""


def kill_self() -> None:
    """End this process as the kernel ends it, without a word."""
    os.kill(os.getpid(), signal.SIGKILL)


def _is_moment(kind: str, operation: Operation) -> bool:
    """Return whether a process is to be killed at an operation on a file."""
    path = Path(operation.path)
    if kind == RENAME:
        return operation.kind == "rename"
    if kind == ROW:
        return operation.kind == "write" and path.suffix == ".csv"
    of_state = path.parent.name == "checkpoints" or ".state." in path.name
    return operation.kind == "write" and of_state


@dataclass
class KillAtFile:
    """A hook that kills the process at an operation on a file.

    Args:
        kind: The kind of moment: `CHECKPOINT`, `RENAME` or `ROW`.
        rng: Decides at which of the next such operations, and how much of a write is done.
    """

    kind: str
    rng: random.Random
    left: int = field(init=False)
    after: bool = field(init=False)
    due: bool = False

    def __post_init__(self) -> None:
        self.left = self.rng.randrange(NEXT)
        self.after = self.kind == RENAME and self.rng.random() < 0.5

    def __call__(self, operation: Operation) -> None:
        if self.due:
            kill_self()
        if not _is_moment(self.kind, operation):
            return
        self.left -= 1
        if self.left >= 0:
            return
        if self.after:
            self.due = True
        elif self.kind == RENAME:
            kill_self()
        else:
            raise CutShortError(_killed, self.rng.random())


def _killed() -> OSError:
    kill_self()
    return OSError("is never reached")


@dataclass
class KillWithin:
    """Kills the process in the middle of a function that computes.

    Args:
        seconds: About how long the function takes.
        rng: Decides in which of the next calls, and when.
    """

    seconds: float
    rng: random.Random
    left: int = field(init=False)
    lock: Any = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.left = self.rng.randrange(NEXT)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that is killed when it is called often enough."""

        def call(*arguments: Any, **named: Any) -> Any:
            # Another thread only compiles.
            self.left -= threading.current_thread() is threading.main_thread()
            if self.left >= 0:
                return jax.block_until_ready(function(*arguments, **named))
            inside = [True]

            def kill_inside() -> None:
                with self.lock:
                    if inside:
                        kill_self()

            timer = threading.Timer(self.rng.uniform(0, self.seconds), kill_inside)
            timer.daemon = True
            timer.start()
            result = jax.block_until_ready(function(*arguments, **named))
            with self.lock:
                inside.clear()  # It was too late: once more, and earlier.
            self.seconds /= 2
            return result

        return call


@contextmanager
def killed_at(
    kind: str,
    root: Path,
    places: Mapping[str, Place],
    seconds: Mapping[str, float],
    rng: random.Random,
) -> Iterator[None]:
    """Kill this process when it comes to a moment.

    Args:
        kind: The kind of moment.
        root: A directory that holds the files.
        places: The functions in which chunks and evaluations are computed.
        seconds: How long these take.
        rng: Decides the rest.
    """
    with ExitStack() as stack:
        if kind in places:
            module, name = places[kind]
            killer = KillWithin(seconds[kind], rng)
            function = getattr(module, name)
            stack.enter_context(mock.patch.object(module, name, _method(killer.around(function))))
        else:
            stack.enter_context(watched(root, KillAtFile(kind, rng)))
        yield


@contextmanager
def timed(places: Mapping[str, Place], seconds: dict[str, float]) -> Iterator[None]:
    """Note the shortest time that each function takes.

    Args:
        places: The functions, by kind of moment.
        seconds: Where to note it.
    """

    def around(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            begin = time.monotonic()
            result = jax.block_until_ready(function(*arguments, **named))
            taken = time.monotonic() - begin
            if threading.current_thread() is threading.main_thread():
                seconds[kind] = min(taken, seconds.get(kind, taken))
            return result

        return call

    with ExitStack() as stack:
        for kind, (module, name) in places.items():
            patched = _method(around(kind, getattr(module, name)))
            stack.enter_context(mock.patch.object(module, name, patched))
        yield


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that becomes a method if it is put into a class."""

    def call(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return call
