"""The table of targets, to which modules add theirs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
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
    weight: float = 1.0
    """Share of the time that it gets, relative to others."""

    @property
    def failed(self) -> list[Path]:
        """The inputs that once failed."""
        return sorted((CORPUS / self.name).glob("*"))


TARGETS: dict[str, Target] = {}


def target(
    mutate: Mutate, seeds: Callable[[], Iterable[bytes]], weight: float = 1.0
) -> Callable[[Read], Read]:
    """Add a function to the targets, under its name.

    Args:
        mutate: Makes an input of another one.
        seeds: Returns the first inputs.
        weight: Share of the time that it gets, relative to others.
    """

    def add(read: Read) -> Read:
        name = read.__name__.replace("_", "-")
        TARGETS[name] = Target(name, read, mutate, seeds, weight)
        return read

    return add
