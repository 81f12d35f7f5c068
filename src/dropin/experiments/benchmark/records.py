"""What was measured of one agent in one task: every episode, and sums over their steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

__all__ = [
    "CHECKPOINTS",
    "MAX_AGE",
    "WINDOW",
    "Checkpoint",
    "EpisodeTable",
    "KeptRecord",
    "Measured",
    "Record",
    "Sums",
    "mean_returns",
]

Checkpoint = Literal["last", "best"]
"""Which agent of a run: that of the end, or that of the run's own best evaluation."""
CHECKPOINTS: tuple[Checkpoint, ...] = ("last", "best")


@dataclass(frozen=True)
class EpisodeTable:
    """One row per episode, column by column."""

    returns: np.ndarray
    """Float32 [episode]."""
    steps: np.ndarray
    """The length of each episode, int32 [episode]."""
    entries: np.ndarray
    """How many teammates entered after the start, int32 [episode]."""
    exits: np.ndarray
    """How many teammates left, int32 [episode]."""
    type_changes: np.ndarray
    """How many times a teammate changed its type while it was present, int32 [episode]."""

    def __len__(self) -> int:
        return len(self.returns)


@dataclass(frozen=True)
class Sums:
    """A sum and the number of its terms for each of several cells, such as team sizes."""

    total: np.ndarray
    """Float64 [cell]."""
    count: np.ndarray
    """Int64 [cell]."""

    @property
    def mean(self) -> np.ndarray:
        """The mean of each cell, float64 [cell]; NaN where there are no terms."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.total / self.count


@dataclass(frozen=True, kw_only=True)
class _Situated:
    """What a record says besides the episodes: who was measured where, and sums over all steps."""

    task: str
    """The name of the task, as `lbf/strangers`."""
    version: int
    """The version of the task."""
    team_limit: int
    """The team limit of the test."""
    seed: int
    """The seed of the training run."""
    checkpoint: Checkpoint
    step: int
    """Environment steps that the agent was trained for."""
    learner: str = ""
    """Who was measured: the name of a learner, of a trained agent or of a type, `random`, or
    `best-response` for a learner that was trained in the situation of the test itself."""
    reward_by_team_size: Sums
    """The learner's reward in a step, by the number of agents of its side that acted in it; the
    index is the size, 0 to the number of slots."""
    reward_around_entry: Sums
    """The learner's reward in the steps before and after a teammate entered, `WINDOW` of each: the
    first step in which a newcomer acts is the one with index `WINDOW`."""
    reward_around_exit: Sums
    """The same around the first step that a teammate is missing from."""
    reward_around_change: Sums
    """The same around the first step in which a teammate acts by another type."""
    correct_by_age: Sums | None
    """Whether the likeliest predicted action of a teammate was the one it took, by the number of
    steps for which it has been present, up to `MAX_AGE`; None if the learner predicts nothing."""


@dataclass(frozen=True, kw_only=True)
class Record(_Situated):
    """One agent in one task at one team limit."""

    episodes: EpisodeTable
    """The episodes with the task's test pool."""
    returns_by_type: Mapping[str, np.ndarray] = field(default_factory=dict)
    """By test type, the returns of further episodes in which all teammates are of that type."""

    @property
    def num_episodes(self) -> int:
        """How many episodes there are with the test pool."""
        return len(self.episodes)

    @property
    def mean_return(self) -> float:
        """The mean return of the episodes with the test pool."""
        return _mean(self.episodes.returns)

    @property
    def standard_error(self) -> float:
        """The standard error of this mean over episodes, which says nothing about other runs."""
        returns = self.episodes.returns.astype(np.float64)
        return float(np.std(returns, ddof=1) / np.sqrt(len(returns))) if len(returns) > 1 else 0.0

    @property
    def mean_return_by_type(self) -> Mapping[str, float]:
        """The mean return of the episodes with teammates of one type, by type."""
        return {name: _mean(returns) for name, returns in self.returns_by_type.items()}


@dataclass(frozen=True, kw_only=True)
class KeptRecord(_Situated):
    """A record without its single episodes, as it is kept in a repository."""

    num_episodes: int
    mean_return: float
    standard_error: float
    mean_return_by_type: Mapping[str, float] = field(default_factory=dict)


Measured = Record | KeptRecord
"""What scores and pages are made from."""


WINDOW = 10
"""How many steps before and after an event are looked at."""
MAX_AGE = 50
"""From this number of steps on, ages are counted together."""


def mean_returns(records: Sequence[Measured]) -> np.ndarray:
    """Return the mean return of each record, float64 [record].

    Args:
        records: The records, for example of several seeds.
    """
    return np.array([each.mean_return for each in records])


def _mean(returns: np.ndarray) -> float:
    return float(np.mean(returns, dtype=np.float64))
