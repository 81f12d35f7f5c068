"""Measuring an agent in a task: episodes are played by a compiled program, counted by NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree
from numpy.typing import ArrayLike

from dropin._xla.cache import use_cache
from dropin._xla.compile import compiled
from dropin._xla.random import split
from dropin.agents import Agent, AgentPolicy, agent_policy
from dropin.core.errors import InputError, StoppedError
from dropin.core.observation import Observation
from dropin.env import AnyEnv, AnyEnvState, nonfinite_slots
from dropin.experiments.benchmark.records import (
    MAX_AGE,
    WINDOW,
    Checkpoint,
    EpisodeTable,
    Record,
    Sums,
)
from dropin.experiments.benchmark.tasks import Task
from dropin.learners.network_policy import NetworkPolicy
from dropin.policies import Policy, make_policy

__all__ = ["NUM_ENVS", "Trace", "count_ages", "measure", "play", "reward_around", "table_of"]

NUM_ENVS = 80
"""Most parallel environments."""
CHUNK = 25
"""Steps that are played between two looks at how many episodes have ended."""
UNKNOWN = -1
"""Stands for an action that was not predicted."""


class Trace(eqx.Module):
    """What happened in every step of parallel environments, one episode after another."""

    reward: Float[Array, "time env"]
    """The learner's reward."""
    done: Bool[Array, "time env"]
    """Whether the step was the last of its episode."""
    acted: Bool[Array, "time env slot"]
    """Who acted on the learner's side."""
    arrived: Bool[Array, "time env slot"]
    """Which of them acted for the first time since they entered."""
    type: Int[Array, "time env slot"]
    """The index of the type that each agent acted by."""
    action: Int[Array, "time env slot"]
    """The action that each agent took."""
    predicted: Int[Array, "time env slot"]
    """The action that the learner thought likeliest; -1 if it predicts nothing."""


class _Carry(eqx.Module):
    state: AnyEnvState
    observation: Observation
    memory: PyTree


def _start(env: AnyEnv, policy: Policy, key: PRNGKeyArray, num_envs: int) -> _Carry:
    """Return the start of the first episodes."""
    states, observation = jax.vmap(env.reset)(split(key, num_envs))
    memory = jax.vmap(lambda _: policy.init_memory(env.slots))(jnp.arange(num_envs))
    return _Carry(states, observation, memory)


def _play_chunk(
    env: AnyEnv, policy: Policy, key: PRNGKeyArray, carry: _Carry, first: Int[Array, ""]
) -> tuple[_Carry, Trace, Bool[Array, " slot"]]:
    """Play some steps from step `first` on; also return which slots were not finite."""
    num_envs, own = carry.observation.present.shape[0], env.team.slots

    def act(
        key: PRNGKeyArray, state: AnyEnvState, seen: Observation, memory: PyTree
    ) -> tuple[Array, Array, PyTree]:
        return _act(policy, key, env, state, seen, memory)

    def step(carry: _Carry, index: Int[Array, ""]) -> tuple[_Carry, tuple[Trace, Array]]:
        keys = split(jax.random.fold_in(key, index), (2, num_envs))
        before = carry.state
        actions, predicted, memory = jax.vmap(act)(keys[0], before, carry.observation, carry.memory)
        state, result = jax.vmap(env.step)(keys[1], before, actions)
        trace = Trace(
            reward=result.reward,
            done=result.done,
            acted=result.acted[:, :own],
            arrived=before.arrived[:, :own],
            type=before.roster.type[:, :own].astype(jnp.int16),
            action=result.actions[:, :own].astype(jnp.int16),
            predicted=predicted[:, :own].astype(jnp.int16),
        )
        return _Carry(state, result.observation, memory), (trace, nonfinite_slots(state))

    carry, (trace, bad) = jax.lax.scan(step, carry, first + jnp.arange(CHUNK))
    return carry, trace, jnp.any(bad, axis=0)


_start_compiled = compiled(_start)
_play_compiled = compiled(_play_chunk)


def _act(
    policy: Policy,
    key: PRNGKeyArray,
    env: AnyEnv,
    state: AnyEnvState,
    seen: Observation,
    memory: PyTree,
) -> tuple[Int[Array, ""], Int[Array, " slot"], PyTree]:
    """Choose an action; also return the likeliest action of each agent, if it is predicted."""
    if isinstance(policy, AgentPolicy) and isinstance(policy.agent.policy, NetworkPolicy):
        network = policy.agent.policy
        action, prediction, memory = network.act_with_prediction(key, seen, memory, policy.mode)
        if prediction.teammate_logits is not None:
            return action, jnp.argmax(prediction.teammate_logits, axis=-1), memory
    else:
        action, memory = policy.act(key, env, state, seen, memory)
    return action, jnp.full(seen.present.shape[0], UNKNOWN), memory


def play(env: AnyEnv, policy: Policy, key: PRNGKeyArray, num_envs: int, episodes: int) -> Trace:
    """Play until every environment has had its number of episodes.

    Args:
        env: The environment.
        policy: Who plays in the learner's place.
        key: A random key, used for nothing else.
        num_envs: Number of parallel environments.
        episodes: Number of episodes of each environment.

    Returns:
        All steps as NumPy arrays; those after the last episode are to be left out.

    Raises:
        StoppedError: If a state was not finite.
    """
    reset_key, step_key = split(key)
    carry = _start_compiled(env, policy, reset_key, num_envs)
    chunks: list[Trace] = []
    ended = np.zeros(num_envs, int)
    while ended.min() < episodes:
        first = jnp.int32(len(chunks) * CHUNK)
        carry, trace, bad = _play_compiled(env, policy, step_key, carry, first)
        if np.any(bad):
            raise StoppedError(
                f"The state of the agent in slot {int(np.argmax(bad))} was not a finite number"
                f" before step {int(first) + CHUNK}."
            )
        chunks.append(jax.tree.map(np.asarray, trace))
        ended += chunks[-1].done.sum(axis=0)
    return jax.tree.map(lambda *parts: np.concatenate(parts), *chunks)


class _Events:
    """What happened in a trace, as arrays [time, env] or [time, env, slot]."""

    def __init__(self, trace: Trace, episodes: int):
        done = np.asarray(trace.done)
        ended = np.cumsum(done, axis=0) - done
        self.first = np.concatenate([np.ones_like(done[:1]), done[:-1]])
        """Whether a step is the first of its episode."""
        self.episode = ended
        """The number of the episode, in its environment."""
        self.counted = ended < episodes
        acted, within = np.asarray(trace.acted), ~self.first[:, :, None]
        before = _shifted(acted, 1)
        stayed = before & acted & ~trace.arrived & within
        self.entered = acted & trace.arrived & within
        self.left = before & ~stayed & within
        self.changed = stayed & (trace.type != _shifted(np.asarray(trace.type), 1))
        for each in (self.entered, self.left, self.changed):
            each[:, :, 0] = False  # Slot 0 is the learner.
            np.logical_and(each, self.counted[:, :, None], out=each)


def _shifted(values: np.ndarray, steps: int) -> np.ndarray:
    """Return values as they were some steps ago, or will be if negative; zeros beyond the ends."""
    moved = np.zeros_like(values)
    if 0 < steps < len(values):
        moved[steps:] = values[:-steps]
    elif steps == 0:
        moved[:] = values
    elif -len(values) < steps < 0:
        moved[:steps] = values[-steps:]
    return moved


def table_of(trace: Trace, episodes: int) -> EpisodeTable:
    """Return a table with a row for every episode, those of one environment after another.

    Args:
        trace: The steps.
        episodes: How many episodes of each environment count.
    """
    events, num_envs = _Events(trace, episodes), trace.done.shape[1]
    rows = (np.arange(num_envs) * episodes + events.episode)[events.counted]

    def total(values: np.ndarray) -> np.ndarray:
        """Return the sum over the steps of each episode."""
        return np.bincount(rows, values[events.counted], minlength=num_envs * episodes)

    return EpisodeTable(
        returns=total(np.asarray(trace.reward, np.float64)).astype(np.float32),
        steps=total(np.ones_like(trace.reward)).astype(np.int32),
        entries=total(events.entered.sum(axis=2)).astype(np.int32),
        exits=total(events.left.sum(axis=2)).astype(np.int32),
        type_changes=total(events.changed.sum(axis=2)).astype(np.int32),
    )


def reward_around(happened: ArrayLike, trace: Trace, episodes: int) -> Sums:
    """Return the learner's reward before and after events, within their episodes.

    Args:
        happened: In which steps something happened, [time, env].
        trace: The steps.
        episodes: How many episodes of each environment count.
    """
    events, reward = _Events(trace, episodes), np.asarray(trace.reward, np.float64)
    here_at = np.asarray(happened) & events.counted
    serial = np.where(events.counted, events.episode + 1, 0)
    total, count = np.zeros(2 * WINDOW), np.zeros(2 * WINDOW, np.int64)
    for cell in range(2 * WINDOW):
        ago = WINDOW - cell
        here = here_at & (_shifted(serial, ago) == serial)
        total[cell] = _shifted(reward, ago)[here].sum()
        count[cell] = here.sum()
    return Sums(total, count)


def count_ages(trace: Trace) -> np.ndarray:
    """Return for how many steps each agent has been present before a step, int [time, env, slot].

    Args:
        trace: The steps.
    """
    ages = np.zeros(trace.acted.shape, int)
    first = np.concatenate([np.ones_like(trace.done[:1]), trace.done[:-1]])
    for time in range(1, len(ages)):
        new = trace.arrived[time] | first[time][:, None]
        ages[time] = np.where(new, 0, ages[time - 1] + 1)
    return ages


def _correct_by_age(trace: Trace, counted: np.ndarray) -> Sums | None:
    """Return how often predictions were right; None if there are none."""
    known = trace.acted & counted[:, :, None] & (trace.predicted != UNKNOWN)
    known[:, :, 0] = False
    if not (trace.predicted != UNKNOWN).any():
        return None
    cells = np.minimum(count_ages(trace), MAX_AGE)[known]
    right = (trace.predicted == trace.action)[known].astype(np.float64)
    return _sums(cells, right, MAX_AGE + 1)


def _sums(cells: ArrayLike, values: ArrayLike, number: int) -> Sums:
    """Return the sum of the values of each cell."""
    cells, values = np.asarray(cells), np.asarray(values)
    return Sums(np.bincount(cells, values, number), np.bincount(cells, minlength=number))


def measure(
    who: str | Agent | Policy,
    task: Task,
    limit: int,
    *,
    learner: str = "",
    seed: int = 0,
    checkpoint: Checkpoint = "last",
    step: int = 0,
    episodes: int | None = None,
    env: AnyEnv | None = None,
) -> Record:
    """Measure an agent, a type or any other policy in a task.

    Args:
        who: An agent, a policy, `random`, or the name of a type of the game.
        task: The task.
        limit: The team limit, one of the task's.
        learner: What the record says about who was measured.
        seed: The seed of its training run, for the record; the episodes are those of the task.
        checkpoint: Which agent of its run it is, for the record.
        step: The steps it was trained for, for the record.
        episodes: Number of episodes instead of the task's, rounded up to whole rounds of all
            parallel environments; those with single types become fewer in proportion.
        env: The environment of the test if it has been made already, as of `task.make_test_env`.

    Raises:
        InputError: If the agent does not fit the game, or there is no such type or limit.
    """
    use_cache()
    env = task.make_test_env(limit) if env is None else env
    policy = _policy(who, env)
    number = task.episodes if episodes is None else episodes
    if number < 1:
        raise InputError(f"The number of episodes {number} is too small: it is at least 1.")
    rounds = -(-number // NUM_ENVS)
    num_envs = -(-number // rounds)
    key = jax.random.key(task.seed)
    trace = play(env, policy, jax.random.fold_in(key, 0), num_envs, rounds)
    events = _Events(trace, rounds)
    sizes = trace.acted.sum(axis=2)[events.counted]
    around = [
        reward_around(happened.any(axis=2), trace, rounds)
        for happened in (events.entered, events.left, events.changed)
    ]
    rounds_per_type = -(-task.episodes_per_type * number // task.episodes // num_envs)
    returns_by_type = {}
    for index, name in enumerate(_own_types(task, env) if rounds_per_type else ()):
        one = env.restricted_to([name])
        alone = play(one, policy, jax.random.fold_in(key, index + 1), num_envs, rounds_per_type)
        returns_by_type[name] = table_of(alone, rounds_per_type).returns
    return Record(
        task=task.name,
        version=task.version,
        team_limit=limit,
        seed=seed,
        checkpoint=checkpoint,
        step=step,
        episodes=table_of(trace, rounds),
        reward_by_team_size=_sums(
            sizes, np.asarray(trace.reward, np.float64)[events.counted], env.team.slots + 1
        ),
        reward_around_entry=around[0],
        reward_around_exit=around[1],
        reward_around_change=around[2],
        correct_by_age=_correct_by_age(trace, events.counted),
        returns_by_type=returns_by_type,
        learner=learner,
    )


def _policy(who: str | Agent | Policy, env: AnyEnv) -> Policy:
    """Return who is measured as a policy for an environment."""
    if isinstance(who, Agent):
        return agent_policy(who, env)
    return make_policy(env, who) if isinstance(who, str) else who


def _own_types(task: Task, env: AnyEnv) -> list[str]:
    """Return the names of the types of the learner's side in the test."""
    own = [each.name for each in env.team.pool.types if each.side == env.sides[0]]
    return [name for name in own if name in (task.test_types or own)]
