"""What learned prey see, and that they take the action with the highest value."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wolfpack_states import state

from dropin._xla.random import StepRNG
from dropin.games.wolfpack.prey import (
    NUM_PATCH_CELLS,
    PATCH_DEPTH,
    PATCH_SIDE,
    PATCH_WIDTH,
    LearnedPrey,
    fast_q_values,
    init_networks,
    observe_patches,
    q_values,
)

AHEAD = [(-1, 0), (0, 1), (1, 0), (0, -1)]
OBSERVE = jax.jit(lambda state: observe_patches(10, state))
NETWORKS = init_networks(jax.random.key(5))
FAST_Q_VALUES = jax.jit(lambda state: fast_q_values(NETWORKS, 10, state))


def painted(hunters, prey, facing, captured, size=10):
    """Return the patch of each prey, drawn cell by cell: hunters, prey, outside."""
    seen = np.zeros((len(prey), 3, PATCH_DEPTH, PATCH_WIDTH))
    for k, (row, column) in enumerate(prey):
        ahead, right = AHEAD[facing[k]], AHEAD[(facing[k] + 1) % 4]
        for deep in range(PATCH_DEPTH):
            for side in range(-PATCH_SIDE, PATCH_SIDE + 1):
                cell = (
                    row + deep * ahead[0] + side * right[0],
                    column + deep * ahead[1] + side * right[1],
                )
                others = [each for each, gone in zip(prey, captured, strict=True) if not gone]
                seen[k, 0, deep, side + PATCH_SIDE] = cell in hunters
                seen[k, 1, deep, side + PATCH_SIDE] = cell in others
                seen[k, 2, deep, side + PATCH_SIDE] = not all(0 <= line < size for line in cell)
    return seen.reshape(len(prey), -1)


cells = st.tuples(st.integers(0, 9), st.integers(0, 9))


@given(
    places=st.lists(cells, min_size=6, max_size=6, unique=True),
    facing=st.lists(st.integers(0, 3), min_size=3, max_size=3),
    captured=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_a_patch_shows_what_is_ahead_and_values_follow_from_it(places, facing, captured):
    """Also the values that are computed without the patch."""
    hunters, prey = places[:3], places[3:]
    here = state([*hunters, None], prey, facing=facing, captured=captured)
    x = painted(hunters, prey, facing, captured)
    assert np.array_equal(OBSERVE(here), x)
    for number, layer in enumerate(NETWORKS.layers):
        weight, bias = (np.asarray(each, float)[[0, 1, 0]] for each in (layer.weight, layer.bias))
        x = np.einsum("ki,kio->ko", np.maximum(x, 0) if number else x, weight) + bias
    assert np.asarray(FAST_Q_VALUES(here)) == pytest.approx(x, abs=1e-5)


def test_a_prey_sees_ahead_and_beside_it_but_not_behind():
    # Facing right from (5, 2): (5, 6) is four ahead, (7, 2) two to the right, (5, 1) behind.
    here = state([(5, 6), (7, 2), (5, 1)], [(5, 2), (0, 9)], facing=[1, 0])
    seen = np.asarray(OBSERVE(here))[0, :NUM_PATCH_CELLS].reshape(PATCH_DEPTH, PATCH_WIDTH)
    assert seen.sum() == 2
    assert seen[4, PATCH_SIDE] == 1
    assert seen[0, PATCH_SIDE + 2] == 1


def test_prey_take_the_action_of_the_highest_value():
    networks = init_networks(jax.random.key(3))
    here = state([(5, 6), (7, 2), (5, 1)], [(5, 2), (0, 9)], facing=[1, 2])
    actions, memory = LearnedPrey(networks).act(StepRNG(jax.random.key(0)), 10, here)
    values = np.asarray(q_values(networks, observe_patches(10, here)))
    assert actions.tolist() == values.argmax(axis=1).tolist()
    assert memory == ()


def test_each_of_two_prey_has_its_own_network_and_a_third_reuses_the_first():
    networks = init_networks(jax.random.key(3))
    seen = jnp.tile(jax.random.uniform(jax.random.key(1), (1, 3 * NUM_PATCH_CELLS)), (3, 1))
    one, two, three = np.asarray(q_values(networks, seen))
    assert not np.allclose(one, two)
    assert three == pytest.approx(one, abs=1e-6)
