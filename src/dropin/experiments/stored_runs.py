"""Runs on disk, found by their settings and not by where they are."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dropin.agents import Agent, load_agent
from dropin.core.errors import InputError
from dropin.evaluation.curves import Row, select_rows
from dropin.training.config import NOT_IDENTITY, STRANGERS, RunConfig
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import read_table

__all__ = ["StoredRun", "find_runs", "identity"]


def identity(config: RunConfig) -> str:
    """Return a hash of all settings that decide what a run learns, its seed included."""
    values = {name: value for name, value in config.to_dict().items() if name not in NOT_IDENTITY}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class StoredRun:
    """A run on disk. Its evaluations are read once, when they are first needed."""

    path: Path
    """The run's directory; it need not exist yet."""
    config: RunConfig

    def reloaded(self) -> "StoredRun":
        """Return the same run with its evaluations still to be read."""
        return StoredRun(self.path, self.config)

    @cached_property
    def evaluations(self) -> list[Row]:
        """The rows of its `evaluation.csv`; none if there is no such file."""
        return list(read_table(self.path / "evaluation.csv"))

    def greedy_evaluations(self, team_limit: int, teammates: str = STRANGERS) -> list[Row]:
        """Return the evaluations of the greedy policy.

        Args:
            team_limit: The team limit of the evaluations.
            teammates: Whom the learner played with, `strangers` or `partners`.
        """
        return select_rows(
            self.evaluations, team_limit=team_limit, mode="greedy", teammates=teammates
        )

    @cached_property
    def evaluated_steps(self) -> list[int]:
        """The steps at which it was evaluated, in order."""
        return sorted({int(row["step"]) for row in self.evaluations})

    @property
    def last_evaluated_step(self) -> int:
        """The step of its latest evaluation; -1 if there is none."""
        return self.evaluated_steps[-1] if self.evaluated_steps else -1

    @cached_property
    def evaluated_limits(self) -> set[int]:
        """The team limits at which it was evaluated."""
        return {int(row["team_limit"]) for row in self.evaluations}

    @cached_property
    def evaluated_teammates(self) -> set[str]:
        """Whom it was evaluated with: strangers, partners, or both."""
        return {row["teammates"] for row in self.evaluations}

    @property
    def final_step(self) -> int:
        """The step at which it ends: a whole number of updates."""
        return self.config.num_updates(self.config.steps) * self.config.steps_per_update

    @cached_property
    def is_done(self) -> bool:
        """Whether it has ended and its last evaluation has as many rows as its first."""
        steps = [int(row["step"]) for row in self.evaluations]
        return steps.count(self.final_step) == steps.count(0) > 0

    @property
    def is_resumable(self) -> bool:
        """Whether its files are of a format with which training can go on, or not there yet."""
        files = RunDirectory(self.path)
        try:
            if files.exists:
                files.check_resumable()
        except InputError:
            return False
        return True

    @property
    def has_checkpoint(self) -> bool:
        """Whether training can go on from a checkpoint."""
        return bool(RunDirectory(self.path).steps())

    @property
    def has_agents(self) -> bool:
        """Whether the agent of every evaluation is stored."""
        return set(self.evaluated_steps) <= set(RunDirectory(self.path).steps_with_agent())

    def agent(self, step: int) -> Agent:
        """Load the agent of a checkpoint."""
        return load_agent(RunDirectory(self.path).agent_at(step))


def find_runs(roots: Sequence[Path]) -> dict[str, list[StoredRun]]:
    """Find all runs in some directories and the directories below them.

    A directory whose `run.json` cannot be used, or that needs a plug-in which is not installed, is
    left out.

    Args:
        roots: Where to search.

    Returns:
        The runs by identity, in the order in which they were found.
    """
    found: dict[str, list[StoredRun]] = {}
    for root in roots:
        for file in sorted(root.rglob("run.json")):
            try:
                run = StoredRun(file.parent, RunDirectory(file.parent).config())
            except InputError:
                continue
            found.setdefault(identity(run.config), []).append(run)
    return found
