"""Runs that are there already, found by what they are and not by where."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dropin.errors import InputError
from dropin.training.config import RunConfig
from dropin.training.directory import RunDirectory
from dropin.training.table import read_table

ASIDE = ("evaluation", "log_every")
"""Settings that say how a run is watched: those that differ in nothing else are the same run."""


def identity(config: RunConfig) -> str:
    """A name for everything that decides what a run learns, the seed included."""
    values = {name: value for name, value in config.as_dict().items() if name not in ASIDE}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Kept:
    """A run on disk."""

    path: Path
    config: RunConfig

    @property
    def rows(self) -> list[dict[str, str]]:
        """Its evaluations."""
        return read_table(self.path / "evaluation.csv")

    @property
    def step(self) -> int:
        """How far it has been evaluated; -1 if it was not."""
        return max((int(row["step"]) for row in self.rows), default=-1)

    @property
    def last(self) -> int:
        """The step of its last evaluation, when it is done."""
        return self.config.updates(self.config.steps) * self.config.steps_per_update

    @property
    def done(self) -> bool:
        """Whether it came to its end."""
        return self.step >= self.last

    def has(self, limits: Iterable[int]) -> bool:
        """Whether it was evaluated at all of these team limits."""
        return set(limits) <= {int(row["team_limit"]) for row in self.rows}


def find_runs(roots: Sequence[Path]) -> dict[str, Kept]:
    """The runs in these directories, however deep, by identity.

    Of several of the same the one that has come furthest counts. A directory whose run.json is of
    another kind, or of another version, is passed over.
    """
    found: dict[str, Kept] = {}
    for root in roots:
        for file in sorted(root.rglob("run.json")):
            try:
                kept = Kept(file.parent, RunDirectory(file.parent).config())
            except InputError:
                continue
            name = identity(kept.config)
            if name not in found or kept.step > found[name].step:
                found[name] = kept
    return found
