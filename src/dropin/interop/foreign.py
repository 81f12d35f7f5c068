"""Learners that are not Dropin's in the benchmark: they play the tasks in the Gymnasium view.

A policy is any object with `reset()` and `act(observation) -> action`. It sees what a learner of
Dropin sees, as the dictionary of the Gymnasium view, and nothing else.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from dropin.core.errors import InputError
from dropin.env import AnyEnv
from dropin.experiments.benchmark.records import WINDOW, EpisodeTable, Record, Sums
from dropin.experiments.benchmark.tasks import Task
from dropin.interop.gymnasium import DropinEnv
from dropin.interop.spaces import check_action

__all__ = ["ForeignPolicy", "MakePolicy", "ReplayedForeign", "load_entry", "measure_foreign"]


class ForeignPolicy(Protocol):
    """A policy that sees observations only."""

    def reset(self) -> None:
        """Forget everything: an episode starts."""
        ...

    def act(self, observation: dict[str, np.ndarray]) -> int:
        """Return the number of an action.

        Args:
            observation: What the learner observes, as the Gymnasium view has it.
        """
        ...


MakePolicy = Callable[[str, int], ForeignPolicy]
"""`(task, seed) -> policy`: the policy that was trained for a task in the run of a seed."""


def measure_foreign(
    make_policy: MakePolicy,
    task: Task,
    limit: int,
    *,
    learner: str,
    seed: int = 0,
    step: int = 0,
    episodes: int | None = None,
) -> Record:
    """Measure a policy of any kind in a task, one episode after another.

    The episodes are of the same task as those of Dropin's agents, but not the same ones: their
    random numbers are drawn in another order. Predictions of teammates' actions are not measured.

    Args:
        make_policy: Makes the policy, given the name of the task and the seed.
        task: The task.
        limit: The team limit, one of the task's.
        learner: The name of the learner.
        seed: The seed of its training run.
        step: The steps it was trained for.
        episodes: Number of episodes instead of the task's; those with single types become fewer in
            proportion.

    Raises:
        InputError: If an action is none of the game's.
    """
    env, policy = task.make_test_env(limit), make_policy(task.name, seed)
    number = task.episodes if episodes is None else episodes
    if number < 1:
        raise InputError(f"The number of episodes {number} is too small: it is at least 1.")
    played = _play(env, policy, number, task.seed)
    per_type = -(-task.episodes_per_type * number // task.episodes)
    own = [each.name for each in env.team.pool.types if each.side == env.sides[0]]
    names = [name for name in own if name in (task.test_types or own)] if per_type else []
    returns_by_type = {
        name: _play(env.restricted_to([name]), policy, per_type, task.seed + at + 1).table.returns
        for at, name in enumerate(names)
    }
    return Record(
        task=task.name,
        version=task.version,
        team_limit=limit,
        seed=seed,
        checkpoint="last",
        step=step,
        episodes=played.table,
        reward_by_team_size=_sums(played.sizes, env.team.slots + 1),
        **{
            f"reward_around_{name}": _sums(each, 2 * WINDOW) for name, each in played.around.items()
        },
        correct_by_age=None,
        returns_by_type=returns_by_type,
        learner=learner,
    )


class _Played:
    """Episodes that were played, and terms (cell, reward) of the sums over their steps."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, int, int, int, int]] = []
        self.sizes: list[tuple[int, float]] = []
        self.around: dict[str, list[tuple[int, float]]] = {"entry": [], "exit": [], "change": []}

    @property
    def table(self) -> EpisodeTable:
        """The episodes as columns."""
        returns = np.array([row[0] for row in self.rows], np.float32)
        steps, entries, exits, changes = np.array([row[1:] for row in self.rows], np.int32).T
        return EpisodeTable(returns, steps, entries, exits, changes)

    def add(self, rewards: Sequence[float], teams: Sequence["_Team"]) -> None:
        """Add an episode.

        Args:
            rewards: The reward of each step.
            teams: Who acted in each step.
        """
        self.sizes += [(len(team) + 1, reward) for team, reward in zip(teams, rewards, strict=True)]
        counts = dict.fromkeys(self.around, 0)
        for time in range(1, len(teams)):
            before, now = teams[time - 1], teams[time]
            stayed = {slot for slot in now if slot in before and not now[slot][1]}
            events = {
                "entry": len(now) - len(stayed),
                "exit": len(before) - len(stayed),
                "change": sum(now[slot][0] != before[slot][0] for slot in stayed),
            }
            for name, happened in events.items():
                counts[name] += happened
                if happened:
                    first = max(time - WINDOW, 0)
                    near = rewards[first : time + WINDOW]
                    cells = range(first - time + WINDOW, first - time + WINDOW + len(near))
                    self.around[name] += zip(cells, near, strict=True)
        total = float(np.sum(rewards, dtype=np.float64))
        events = (counts["entry"], counts["exit"], counts["change"])
        self.rows.append((total, len(rewards), *events))


_Team = dict[int, tuple[str, bool]]
"""By the slot of each teammate that acts: its type, and whether it has just arrived."""


def _play(env: AnyEnv, policy: ForeignPolicy, episodes: int, seed: int) -> _Played:
    view, played, own = DropinEnv(env), _Played(), env.team.slots
    observation, info = view.reset(seed=seed)
    for number in range(episodes):
        if number:
            observation, info = view.reset()
        policy.reset()
        rewards: list[float] = []
        teams: list[_Team] = []
        done = False
        while not done:
            arrived, types = observation["arrived"], info["types"]
            teams.append({slot: (types[slot], bool(arrived[slot])) for slot in range(1, own)
                          if observation["present"][slot]})  # fmt: skip
            seen = {name: np.array(each) for name, each in observation.items()}
            action = check_action(env, policy.act(seen))
            observation, reward, terminated, truncated, info = view.step(action)
            rewards.append(reward)
            done = terminated or truncated
        played.add(rewards, teams)
    return played


def _sums(terms: Sequence[tuple[int, float]], number: int) -> Sums:
    cells = np.array([cell for cell, _ in terms], int)
    values = np.array([value for _, value in terms], np.float64)
    return Sums(np.bincount(cells, values, number), np.bincount(cells, minlength=number))


def load_entry(entry: str) -> MakePolicy:
    """Return the function that makes a policy, given by whoever checks a submission.

    Args:
        entry: As `module:function`.

    Raises:
        InputError: If there is no such module or function.
    """
    module, sign, name = entry.partition(":")
    if not sign or not module or not name:
        raise InputError(f"{entry!r} is no entry: write module:function.")
    try:
        found: Any = getattr(import_module(module), name, None)
    except ImportError as error:
        raise InputError(f"The entry {entry} cannot be imported: {error}.") from None
    if not callable(found):
        raise InputError(f"The module {module} has no function {name!r}.")
    return cast(MakePolicy, found)


class ReplayedForeign:
    """Plays the records of a foreign policy again.

    Args:
        make_policy: Makes the policy.
        tasks: The tasks.
    """

    def __init__(self, make_policy: MakePolicy, tasks: Sequence[Task]):
        self._make_policy = make_policy
        self._tasks = {task.name: task for task in tasks}

    def __call__(self, record: Record, agent: Path | None) -> Record:
        """Return what is measured now.

        Args:
            record: The record of the submission; its numbers are not used.
            agent: Not used.
        """
        del agent
        return measure_foreign(
            self._make_policy,
            self._tasks[record.task],
            record.team_limit,
            learner=record.learner,
            seed=record.seed,
            step=record.step,
            episodes=len(record.episodes),
        )
