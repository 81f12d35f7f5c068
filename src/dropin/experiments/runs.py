"""Runs that are there already, found by what they are and not by where."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dropin.agents import Agent, load_agent
from dropin.errors import InputError
from dropin.training.config import WATCHING, RunConfig
from dropin.training.directory import RunDirectory
from dropin.training.table import AMONG, STRANGERS, read_table


def identity(config: RunConfig) -> str:
    """A name for everything that decides what a run learns, the seed included."""
    values = {name: value for name, value in config.as_dict().items() if name not in WATCHING}
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

    def evaluations(self, limit: int, among: str = STRANGERS) -> list[dict[str, str]]:
        """Those of the greedy policy at a team limit, among strangers or partners."""
        return [
            row
            for row in self.rows
            if int(row["team_limit"]) == limit
            and row["policy"] == "greedy"
            and row.get(AMONG, STRANGERS) == among
        ]

    @property
    def last(self) -> int:
        """The step of its last evaluation, when it is done."""
        return self.config.updates(self.config.steps) * self.config.steps_per_update

    @property
    def done(self) -> bool:
        """Whether it came to its end, the last evaluation included."""
        steps = [int(row["step"]) for row in self.rows]
        return steps.count(self.last) == steps.count(0) > 0

    @property
    def limits(self) -> set[int]:
        """The team limits that it was evaluated at."""
        return {int(row["team_limit"]) for row in self.rows}

    @property
    def steps(self) -> list[int]:
        """The steps at which it was evaluated."""
        return sorted({int(row["step"]) for row in self.rows})

    @property
    def has_agents(self) -> bool:
        """Whether the agent of every evaluation is there."""
        return set(self.steps) <= set(RunDirectory(self.path).steps_with_agent())

    def agent(self, step: int) -> Agent:
        """The agent of a step."""
        return load_agent(RunDirectory(self.path).agent_at(step))


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
