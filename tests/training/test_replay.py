"""The replay buffer against a list of all that was ever put into it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix_game import matrix_game

from dropin.core import registry
from dropin.core.observation import Observation
from dropin.learners.base import LearnerInput
from dropin.learners.config import TrainConfig
from dropin.learners.replay import ReplayBuffer
from dropin.learners.replay_based import StoredStep, sample_transitions

ENVS, SLOTS = 3, 2
ADD = eqx.filter_jit(ReplayBuffer.add)
SAMPLE = eqx.filter_jit(sample_transitions)


def inputs_at(time, episode):
    """What is seen tells the time, the environment and the number of the episode."""
    shape = (*np.shape(time), ENVS)
    times = np.broadcast_to(np.reshape(time, (*np.shape(time), 1)), shape)
    env = np.broadcast_to(np.arange(ENVS), shape)
    shared = jnp.asarray(np.stack([times, env, episode], -1), jnp.float32)
    there = jnp.ones((*shape, SLOTS), bool)
    agents = jnp.zeros((*shape, SLOTS, 1))
    return LearnerInput(Observation(agents, shared, there, ~there, (0,) * SLOTS))


def stored(time, episode, over):
    """A step at a time, and the number of the episode after it."""
    number = jnp.asarray(np.broadcast_to(np.asarray(time)[..., None], np.shape(over)))
    both = jnp.stack([number] * SLOTS, -1)
    return StoredStep(
        actions=both.astype(jnp.int32),
        rewards=both.astype(jnp.float32),
        removed=jnp.zeros(both.shape, bool),
        episode_done=jnp.asarray(over),
        next_inputs=inputs_at(np.asarray(time) + 1, episode),
    )


def filled(capacity, block, blocks, seed=0):
    """A replay, with the transitions that went into it: (time, env, episode, over)."""
    over = np.random.default_rng(seed).random((blocks * block, ENVS)) < 0.2
    episode = np.concatenate([np.zeros((1, ENVS), int), np.cumsum(over, axis=0)])
    first = stored(np.array(-1), episode[0], over[0])
    replay = ReplayBuffer.create(first, capacity, spare_rows=block)
    for start in range(0, blocks * block, block):
        times = np.arange(start, start + block)
        replay = ADD(replay, stored(times, episode[times + 1], over[times]))
    known = {
        (time, env, int(episode[time, env]), bool(over[time, env]))
        for time in range(blocks * block)
        for env in range(ENVS)
    }
    return replay, known


@pytest.mark.parametrize(("rows", "block"), [(1, 2), (4, 1), (3, 2)])
@settings(max_examples=8, deadline=None)
@given(blocks=st.integers(1, 12))
def test_it_keeps_the_newest_transitions_and_no_others(rows, block, blocks):
    capacity = rows * block
    replay, known = filled(capacity, block, blocks)
    newest = {each for each in known if each[0] >= blocks * block - rows * block}
    drawn = SAMPLE(replay, jax.random.key(blocks), 2000)
    observation = np.asarray(drawn.inputs.observation.shared).astype(int)
    found = {
        (*map(int, row), bool(over))
        for row, over in zip(observation, drawn.episode_done, strict=True)
    }
    assert found == newest


def test_a_transition_is_whole_and_never_goes_on_in_another_episode():
    replay, _ = filled(10, 2, 20)
    drawn = SAMPLE(replay, jax.random.key(0), 500)
    before, after = (
        np.asarray(each.observation.shared) for each in (drawn.inputs, drawn.next_inputs)
    )
    np.testing.assert_array_equal(after[:, 0], before[:, 0] + 1)
    np.testing.assert_array_equal(after[:, 1], before[:, 1])
    np.testing.assert_array_equal(drawn.actions[:, 0], before[:, 0])
    np.testing.assert_array_equal(drawn.rewards[:, 1], before[:, 0])
    over = np.asarray(drawn.episode_done)
    assert 0 < over.sum() < 500
    # Where the episode changes nothing follows, so what is seen afterwards is not used.
    np.testing.assert_array_equal(after[:, 2] != before[:, 2], over)
    np.testing.assert_array_equal(drawn.done, np.stack([over, over], 1))


def test_every_transition_has_the_same_chance():
    replay, _ = filled(10, 2, 20)
    number = 60_000
    observation = np.asarray(SAMPLE(replay, jax.random.key(1), number).inputs.observation.shared)
    _, counts = np.unique(observation[:, 0] * ENVS + observation[:, 1], return_counts=True)
    assert len(counts) == 30
    # Chi-square with 29 degrees of freedom: above 58 once in a thousand times.
    assert ((counts - number / 30) ** 2 / (number / 30)).sum() < 58


def test_memory_is_what_the_arrays_take():
    replay, _ = filled(10, 2, 1)
    # A row of one environment: 2 x 1 + 3 features, 2 actions and 2 rewards of 4 bytes each, and
    # who is present, arrived and out, and whether it is over. Two rows more than can be drawn.
    assert replay.num_bytes == (10 + 2) * ENVS * ((5 + 4) * 4 + 3 * 2 + 1)
    assert replay.capacity == 10


def test_who_leaves_is_not_judged_and_who_is_taken_out_has_ended():
    replay, _ = filled(2, 1, 2)
    drawn = SAMPLE(replay, jax.random.key(2), 1)
    one = jax.tree.map(lambda leaf: leaf[0], drawn)
    cases = {
        "stays": ([True], [False], [False], [True]),
        "leaves": ([False], [False], [False], [False]),
        "is replaced": ([True], [True], [False], [False]),
        "is taken out": ([False], [False], [True], [True]),
    }
    for what, (present, arrived, ended, judged) in cases.items():
        there = jnp.array([True])
        step = eqx.tree_at(
            lambda t: (
                t.actions,
                t.rewards,
                t.done,
                t.inputs.observation.present,
                t.next_inputs.observation.present,
                t.next_inputs.observation.arrived,
            ),
            one,
            (
                jnp.zeros(1, jnp.int32),
                jnp.zeros(1),
                jnp.array(ended),
                there,
                jnp.array(present),
                jnp.array(arrived),
            ),
        )
        assert step.has_target.tolist() == judged, what
        absent = eqx.tree_at(lambda t: t.inputs.observation.present, step, ~there)
        assert not absent.has_target.any(), what


@pytest.mark.parametrize("transitions", [1, 7, 100])
def test_there_is_room_for_as_many_as_asked_for(transitions):
    learner: Any = make_dgn(replay_capacity=transitions)
    replay = learner.init(jax.random.key(0), matrix_game()).replay
    room = replay.capacity * replay.num_envs
    assert transitions <= room < transitions + learner.training.steps_per_update


def make_dgn(**settings):
    spec = registry.learners["dgn"]
    config = spec.default_settings(**tiny.SIZES, batch_size=4, **settings)
    return spec.make(config, TrainConfig(num_envs=2, rollout_length=2))


def test_the_ring_is_written_in_place():
    """In a loop of updates no instruction copies an array of the ring."""
    env, learner = matrix_game(), make_dgn(replay_capacity=9973)
    state = learner.init(jax.random.key(1), env)
    arrays, static = eqx.partition(state, eqx.is_array)

    def several(arrays, number):
        def body(_, arrays):
            following, _ = learner.update(env, eqx.combine(arrays, static))
            return eqx.filter(following, eqx.is_array)

        return jax.lax.fori_loop(0, number, body, arrays)

    lowered = jax.jit(several, donate_argnums=0).lower(arrays, jnp.int32(3))
    lines = (lowered.compile().as_text() or "").splitlines()
    ring = f"[{state.replay.num_rows},"
    assert any(ring in line and "dynamic-update-slice" in line for line in lines)
    assert not [line for line in lines if ring in line.split("(")[0] and " copy(" in line]
