"""Prey with memory beside a slow implementation, and that nothing about them is random."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_prey import Board, patch, q_values
from wolfpack_states import state

from dropin._xla.random import StepRNG
from dropin.games.wolfpack.game import make_game
from dropin.games.wolfpack.prey import NUM_PATCH_CELLS
from dropin.games.wolfpack.recurrent_prey import (
    NUM_FRAMES,
    RecurrentPrey,
    init_recurrent_networks,
    normalise,
    unstack,
    window_values,
)

BLANK = np.zeros(3 * NUM_PATCH_CELLS)


def example_frames(number):
    random = np.random.default_rng(2)
    return jnp.asarray(random.uniform(size=(number, 3 * NUM_PATCH_CELLS)) < 0.1, jnp.float32)


EXAMPLES = example_frames(40).reshape(8, 5, -1)
NETWORKS = normalise(init_recurrent_networks(jax.random.key(5)), EXAMPLES, 2.0, 0.5)
POLICY = RecurrentPrey(NETWORKS)


def board_of(state) -> Board:
    return Board(
        hunters=[tuple(cell) for cell in np.asarray(state.hunters).tolist()],
        prey=[tuple(cell) for cell in np.asarray(state.prey).tolist()],
        facing=np.asarray(state.facing).tolist(),
        captured=np.asarray(state.captured).tolist(),
    )


def slow_values(history):
    """Return the values of each prey, given all boards of the episode so far."""
    number = len(history[-1].prey)
    frames = [[BLANK] * NUM_FRAMES for _ in range(number)]
    for board in history:
        for prey in range(number):
            frames[prey] = [*frames[prey][1:], patch(board, prey, 10)]
    networks = unstack(NETWORKS)
    return np.array([q_values(networks[prey % 2], frames[prey]) for prey in range(number)])


@pytest.mark.parametrize("num_prey", [2, 3])
def test_values_and_memory_over_an_episode(num_prey):
    """Seven steps from the start, a capture and its respawn among them, then a new episode."""
    game = make_game("reference", prey_policy=POLICY, num_prey=num_prey)
    here = game.reset(StepRNG(jax.random.key(1)), jnp.ones(3, bool))
    history, captures = [], 0
    step = eqx.filter_jit(lambda key, here, actions: game.step(StepRNG(key), here, actions)[0])
    values_of = eqx.filter_jit(lambda here: POLICY.q_values(10, here)[0])
    for time in range(7):
        if time == 2:  # Two hunters next to the first prey: if it stays there, it is captured.
            row, column = here.prey[0].tolist()
            down = 1 if row < 9 else -1
            right = 1 if column < 9 else -1
            beside = jnp.array([[row + down, column], [row, column + right]], jnp.int32)
            others = jnp.array([[0, 0], [0, 9]], jnp.int32)[: num_prey - 1]
            here = eqx.tree_at(
                lambda state: (state.hunters, state.prey, state.captured),
                here,
                (
                    here.hunters.at[:2].set(beside).at[2].set(jnp.array([9, 0])),
                    here.prey.at[1:].set(others),
                    here.captured.at[0].set(True),
                ),
            )
        captures += int(here.captured.sum())
        history.append(board_of(here))
        fast = np.asarray(values_of(here))
        assert fast == pytest.approx(slow_values(history), abs=1e-4)
        assert fast.std() > 0.01
        here = step(jax.random.key(time), here, jnp.full(3, time % 4))
    assert captures > 0
    first = game.reset(StepRNG(jax.random.key(2)), jnp.ones(3, bool))
    fast = np.asarray(values_of(first))
    assert fast == pytest.approx(slow_values([board_of(first)]), abs=1e-4)


def test_values_depend_on_five_frames_and_on_no_more():
    """Two histories that end with the same five frames, and two that end with the same four."""
    shared = [state([(k, 2), (5, k)], [(3, 3), (6, 8)], facing=[k % 4, 1]) for k in range(5)]
    starts = [state([(9, 9), (8, 8)], [(3, 3), (6, 8)]), state([(0, 9), (3, 4)], [(3, 3), (6, 8)])]

    def values_after(states):
        memory, values = POLICY.init_memory(2), None
        for here in states:
            with_memory = eqx.tree_at(lambda state: state.memory, here, memory)
            values, memory = POLICY.q_values(10, with_memory)
        return np.asarray(values)

    one, two = (values_after([start, *shared]) for start in starts)
    assert np.array_equal(one, two)
    one, two = (values_after([start, *shared[1:]]) for start in starts)
    assert np.abs(one - two).max() > 1e-4


def test_the_action_is_that_of_the_highest_value_whatever_the_random_numbers():
    here = state([(5, 6), (7, 2), (5, 1)], [(5, 2), (0, 9)], facing=[1, 2])
    here = eqx.tree_at(lambda state: state.memory, here, POLICY.init_memory(2))
    best = np.asarray(POLICY.q_values(10, here)[0]).argmax(axis=1).tolist()
    for seed in range(3):
        actions, _ = POLICY.act(StepRNG(jax.random.key(seed)), 10, here)
        assert actions.tolist() == best


def test_values_of_windows_in_which_an_episode_starts():
    """As learning needs them: frames of the episode before are blank, for later windows only."""
    frames = example_frames(11)
    times = jnp.array([197, 198, 199, 200, 201, 202, 0, 1, 2, 3, 4])
    network = unstack(NETWORKS)[1]
    fast = np.asarray(window_values(network, frames, times))
    assert fast.shape == (7, 7)
    rows = np.asarray(frames, np.float64)
    for window, values in enumerate(fast):
        last = window + NUM_FRAMES - 1
        age = int(times[last])
        seen = [rows[last - back] if back <= age else BLANK for back in reversed(range(NUM_FRAMES))]
        assert values == pytest.approx(q_values(network, seen), abs=1e-4)


def test_a_normalised_network_has_outputs_of_mean_zero_and_the_given_deviation():
    """The first convolution, by its inputs; and the values."""
    frames = np.asarray(EXAMPLES).reshape(40, 3, 9, 17)
    for network in unstack(NETWORKS):
        weight = np.asarray(network.first.weight, np.float64).reshape(4, 4, 3, 16)
        windows = np.lib.stride_tricks.sliding_window_view(frames, (4, 4), axis=(2, 3))
        outputs = np.einsum("ncijrs,rsco->nijo", windows, weight) + np.asarray(network.first.bias)
        assert outputs.mean(axis=(0, 1, 2)) == pytest.approx(np.zeros(16), abs=1e-4)
        assert outputs.std(axis=(0, 1, 2)) == pytest.approx(np.ones(16), abs=1e-4)
        values = np.array([q_values(network, list(each)) for each in np.asarray(EXAMPLES)])
        assert values.mean(axis=0) == pytest.approx(np.zeros(7), abs=1e-3)
        assert values.std(axis=0) == pytest.approx(np.full(7, 0.5), abs=1e-3)
