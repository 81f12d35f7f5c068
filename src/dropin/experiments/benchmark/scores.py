"""Scores of the benchmark: normalised returns, aggregates over tasks, recovery and prediction.

A score is (return - chance) / (best response - chance): 0 for random actions, 1 for a learner that
was trained in the situation of the test itself. Intervals are over training runs (seeds).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dropin.core.errors import InputError
from dropin.evaluation.statistics import (
    POOLED,
    Estimate,
    across_tasks,
    estimate,
    improvement_across_tasks,
)
from dropin.experiments.benchmark.records import WINDOW, Checkpoint, Measured, Sums, mean_returns

__all__ = [
    "BEST_RESPONSE",
    "CHANCE",
    "EVENTS",
    "Aggregate",
    "Event",
    "Recovery",
    "Reference",
    "Situation",
    "TaskKey",
    "accuracy_by_age",
    "aggregate",
    "by_situation",
    "find_references",
    "improvement",
    "recovery",
    "reward_by_team_size",
    "task_returns",
    "task_scores",
    "type_returns",
    "worst_type",
]

CHANCE, BEST_RESPONSE = "random", "best-response"
"""The names of the two references: random actions, and a learner of the test situation itself."""
Event = Literal["entry", "exit", "change"]
EVENTS: tuple[Event, ...] = ("entry", "exit", "change")
"""What may happen to a team: a teammate enters, leaves, or changes its type."""


class TaskKey(NamedTuple):
    """A task in one of its versions; only records of the same version can be compared."""

    name: str
    version: int

    def __str__(self) -> str:
        return f"{self.name} (version {self.version})"

    @property
    def game(self) -> str:
        """The game, the first part of the name."""
        return self.name.partition("/")[0]

    @property
    def short(self) -> str:
        """The name without the game."""
        return self.name.partition("/")[2]


class Situation(NamedTuple):
    """A task at one of the team limits of its test."""

    task: TaskKey
    team_limit: int

    def __str__(self) -> str:
        return f"{self.task}, team limit {self.team_limit}"

    @classmethod
    def of(cls, record: Measured) -> "Situation":
        """Return the situation of a record."""
        return cls(TaskKey(record.task, record.version), record.team_limit)


@dataclass(frozen=True)
class Reference:
    """The two returns that a score is measured between, as far as they are known."""

    chance: float | None = None
    """The mean return of random actions."""
    best_response: float | None = None
    """The mean return of learners that were trained in the situation itself."""

    @property
    def missing(self) -> tuple[str, ...]:
        """What is missing for a score; nothing if there can be one."""
        named = {"chance": self.chance, "the best response": self.best_response}
        missing = tuple(name for name, value in named.items() if value is None)
        if self.chance is None or self.best_response is None:
            return missing
        return () if self.best_response > self.chance else ("a best response above chance",)

    def normalised(self, returns: ArrayLike) -> np.ndarray:
        """Return scores: 0 at chance, 1 at the best response.

        Args:
            returns: Mean returns.

        Raises:
            InputError: If a reference is missing.
        """
        if self.missing or self.chance is None or self.best_response is None:
            raise InputError(f"There is no score without {' and '.join(self.missing)}.")
        return (np.asarray(returns, np.float64) - self.chance) / (self.best_response - self.chance)


def by_situation(
    records: Iterable[Measured], checkpoint: Checkpoint = "last"
) -> dict[Situation, list[Measured]]:
    """Return the records of one learner by situation, each list in the order of its seeds.

    Args:
        records: The records.
        checkpoint: Which agents to take.

    Raises:
        InputError: If there are two records of the same seed in a situation.
    """
    found: dict[Situation, dict[int, Measured]] = {}
    for record in records:
        if record.checkpoint == checkpoint:
            runs = found.setdefault(Situation.of(record), {})
            if record.seed in runs:
                raise InputError(
                    f"There are two records of seed {record.seed} in {Situation.of(record)}."
                )
            runs[record.seed] = record
    return {
        situation: [runs[seed] for seed in sorted(runs)]
        for situation, runs in sorted(found.items())
    }


def find_references(
    chance: Iterable[Measured], best_response: Iterable[Measured]
) -> dict[Situation, Reference]:
    """Return the references of every situation of which there is at least one record.

    Args:
        chance: Records of random actions.
        best_response: Records of learners trained in the situations themselves. Their last agents
            count: no selection takes part in the scale.
    """
    low, high = (
        {situation: float(mean_returns(runs).mean()) for situation, runs in found.items()}
        for found in map(by_situation, (chance, best_response))
    )
    return {each: Reference(low.get(each), high.get(each)) for each in sorted({*low, *high})}


def task_returns(
    records: Iterable[Measured], checkpoint: Checkpoint = "last"
) -> dict[TaskKey, dict[int, float]]:
    """Return the mean return of each run in each task, by seed.

    A run is counted once however many team limits it is tested at: its value is the mean over them.
    Seeds that were not tested at every limit are left out.

    Args:
        records: The records of a learner.
        checkpoint: Which agents to take.
    """
    found = by_situation(records, checkpoint)
    return _over_limits({each: mean_returns(runs) for each, runs in found.items()}, found)


def task_scores(
    records: Iterable[Measured],
    references: Mapping[Situation, Reference],
    checkpoint: Checkpoint = "last",
) -> dict[TaskKey, dict[int, float]]:
    """Return the score of each run in each task, by seed, as `task_returns` does for returns.

    Tasks of which a reference is missing at one of the team limits are left out.

    Args:
        records: The records of a learner.
        references: The references of the situations.
        checkpoint: Which agents to take.
    """
    found = by_situation(records, checkpoint)
    without = {each.task for each in found if references.get(each, Reference()).missing}
    known = {each: runs for each, runs in found.items() if each.task not in without}
    return _over_limits(
        {each: references[each].normalised(mean_returns(runs)) for each, runs in known.items()},
        known,
    )


def _over_limits(
    values: Mapping[Situation, np.ndarray], records: Mapping[Situation, Sequence[Measured]]
) -> dict[TaskKey, dict[int, float]]:
    """Return the mean over the team limits of each run, by task and seed."""
    tables: dict[TaskKey, list[dict[int, float]]] = {}
    for situation, runs in records.items():
        seeds = [run.seed for run in runs]
        table = dict(zip(seeds, values[situation].tolist(), strict=True))
        tables.setdefault(situation.task, []).append(table)
    return {
        task: {
            seed: float(np.mean([table[seed] for table in each]))
            for seed in sorted(set.intersection(*map(set, each)))
        }
        for task, each in tables.items()
    }


@dataclass(frozen=True)
class Aggregate:
    """The scores of a learner over several tasks, which all have the same weight."""

    tasks: tuple[TaskKey, ...]
    mean: Estimate
    interquartile_mean: Estimate
    """Without the best and the worst quarter of the runs of all tasks together."""
    optimality_gap: Estimate
    """The mean shortfall below 1."""


def aggregate(scores: Mapping[TaskKey, Mapping[int, float]]) -> Aggregate | None:
    """Return aggregates over tasks, with stratified bootstrap intervals over runs.

    Args:
        scores: By task, the score of each run by seed. Compare only learners with the same tasks.

    Returns:
        The aggregates; None if there are no scores.
    """
    tasks = {task: list(runs.values()) for task, runs in scores.items() if runs}
    if not tasks:
        return None
    mean, middle, gap = (
        across_tasks(list(tasks.values()), of) for of in ("mean", POOLED, "optimality gap")
    )
    return Aggregate(tuple(tasks), mean, middle, gap)


def improvement(
    ours: Mapping[TaskKey, Mapping[int, float]], theirs: Mapping[TaskKey, Mapping[int, float]]
) -> Estimate | None:
    """Return the probability that a run of ours is above one of theirs, averaged over tasks.

    Args:
        ours: The returns or scores of our runs, as `task_returns` gives them.
        theirs: Those of the others.

    Returns:
        The estimate over the tasks that both have; None if there are none.
    """
    tasks = [task for task, runs in ours.items() if runs and theirs.get(task)]
    if not tasks:
        return None
    one, two = ([list(each[task].values()) for task in tasks] for each in (ours, theirs))
    return improvement_across_tasks(one, two)


def reward_by_team_size(records: Sequence[Measured]) -> dict[int, Estimate]:
    """Return the learner's mean reward in a step, by the number of agents of its side.

    Args:
        records: The records of one situation, one of each run.

    Returns:
        An estimate for each size that occurred, over the `n` runs in which it did.
    """
    return _by_cell([record.reward_by_team_size for record in records])


def type_returns(records: Sequence[Measured]) -> dict[str, Estimate]:
    """Return the mean return among teammates of a single type, by type, over runs.

    Args:
        records: The records of one situation, one of each run.
    """
    values: dict[str, list[float]] = {}
    for record in records:
        for name, mean in record.mean_return_by_type.items():
            values.setdefault(name, []).append(mean)
    return {name: estimate(each) for name, each in values.items()}


def worst_type(records: Sequence[Measured]) -> tuple[str, Estimate] | None:
    """Return the type with which the mean return is lowest, and that return.

    Args:
        records: The records of one situation, one of each run.

    Returns:
        The name and the estimate; None if no type was tested by itself.
    """
    found = type_returns(records)
    return min(found.items(), key=lambda each: each[1].mean, default=None)


@dataclass(frozen=True)
class Recovery:
    """The learner's reward in the steps after an event, compared with those before it."""

    before: Estimate
    """The mean reward of the `WINDOW` steps before it."""
    after: Estimate
    """That of the `WINDOW` steps from the event on."""
    difference: Estimate
    """After minus before, of each run and then averaged."""
    ratio: Estimate | None
    """After over before, likewise; None unless every run has a positive mean reward before."""
    curve: dict[int, Estimate]
    """The mean reward by step, from -`WINDOW`; 0 is the first step with the change."""


def recovery(records: Sequence[Measured], event: Event) -> Recovery | None:
    """Return how the learner's reward changes around an event, with intervals over runs.

    Args:
        records: The records of one situation, one of each run.
        event: What happened to the team.

    Returns:
        The comparison, over the runs that have steps on both sides; None if none has.
    """
    every = [getattr(record, f"reward_around_{event}") for record in records]
    halves = [(_pooled(each, slice(0, WINDOW)), _pooled(each, slice(WINDOW, None)))
              for each in every]  # fmt: skip
    known = np.array([pair for pair in halves if np.all(np.isfinite(pair))])
    if not len(known):
        return None
    before, after = known.T
    return Recovery(
        before=estimate(before),
        after=estimate(after),
        difference=estimate(after - before),
        ratio=estimate(after / before) if (before > 0).all() else None,
        curve={index - WINDOW: found for index, found in _by_cell(every).items()},
    )


def accuracy_by_age(records: Sequence[Measured]) -> dict[int, Estimate]:
    """Return how often the likeliest predicted action was taken, by steps since arrival.

    Args:
        records: The records of one situation, one of each run.

    Returns:
        An estimate for each age that occurred; nothing if the learner predicts nothing.
    """
    found = [record.correct_by_age for record in records]
    return _by_cell([each for each in found if each is not None])


def _pooled(sums: Sums, cells: slice) -> float:
    """Return the mean over all terms of several cells; NaN if there are none."""
    count = int(sums.count[cells].sum())
    return float(sums.total[cells].sum()) / count if count else float("nan")


def _by_cell(tables: Sequence[Sums]) -> dict[int, Estimate]:
    """Return an estimate of each cell's mean over runs, for the cells that have terms."""
    if not tables:
        return {}
    means = np.stack([each.mean for each in tables])
    return {
        cell: estimate(column[np.isfinite(column)])
        for cell, column in enumerate(means.T)
        if np.isfinite(column).any()
    }
