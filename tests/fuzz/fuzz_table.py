"""The table of targets, to which modules add theirs."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fuzz_mutators import Mutate

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(__file__).parent / "corpus"
"""Inputs that once failed, a directory for each target."""
Read = Callable[[bytes, Path], object]


@dataclass(frozen=True)
class Target:
    """Something that is read."""

    name: str
    read: Read
    mutate: Mutate
    seeds: Callable[[], Iterable[bytes]]
    """Inputs that are right, to begin with."""

    @property
    def failed(self) -> list[Path]:
        """The inputs that once failed."""
        return sorted((CORPUS / self.name).glob("*"))


TARGETS: dict[str, Target] = {}


def target(mutate: Mutate, seeds: Callable[[], Iterable[bytes]]) -> Callable[[Read], Read]:
    """Add a function to the targets, under its name.

    Args:
        mutate: Makes an input of another one.
        seeds: Returns the first inputs.
    """

    def add(read: Read) -> Read:
        name = read.__name__.replace("_", "-")
        TARGETS[name] = Target(name, read, mutate, seeds)
        return read

    return add


@cache
def folder(path: Path) -> Path:
    """Return a directory, made if it is asked for the first time."""
    path.mkdir(parents=True, exist_ok=True)
    return path


def put(path: Path | str, data: bytes) -> None:
    """Write a file, in a third of the time of `Path.write_bytes`."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        os.write(handle, data)
    finally:
        os.close(handle)
