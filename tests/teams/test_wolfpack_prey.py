"""What prey see, and that they do what they value most."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wolfpack_states import state

from dropin.dice import Dice
from dropin.teams.wolfpack.prey import (
    CELLS,
    DEEP,
    SIDE,
    WIDE,
    Fleeing,
    action_values,
    networks,
    patches,
    quick_values,
)

AHEAD = [(-1, 0), (0, 1), (1, 0), (0, -1)]
SEE = jax.jit(lambda state: patches(10, state))
NETS = networks(jax.random.key(5))
QUICK = jax.jit(lambda state: quick_values(NETS, 10, state))


def painted(hunters, prey, facing, captured, size=10):
    """The patch of each prey, cell by cell: hunters, prey, outside."""
    seen = np.zeros((len(prey), 3, DEEP, WIDE))
    for k, (row, column) in enumerate(prey):
        ahead, right = AHEAD[facing[k]], AHEAD[(facing[k] + 1) % 4]
        for deep in range(DEEP):
            for side in range(-SIDE, SIDE + 1):
                cell = (
                    row + deep * ahead[0] + side * right[0],
                    column + deep * ahead[1] + side * right[1],
                )
                others = [each for each, gone in zip(prey, captured, strict=True) if not gone]
                seen[k, 0, deep, side + SIDE] = cell in hunters
                seen[k, 1, deep, side + SIDE] = cell in others
                seen[k, 2, deep, side + SIDE] = not all(0 <= line < size for line in cell)
    return seen.reshape(len(prey), -1)


cells = st.tuples(st.integers(0, 9), st.integers(0, 9))


@given(
    places=st.lists(cells, min_size=6, max_size=6, unique=True),
    facing=st.lists(st.integers(0, 3), min_size=3, max_size=3),
    captured=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_a_patch_shows_what_is_ahead_and_values_follow_from_it(places, facing, captured):
    """Also the values that are worked out without the patch."""
    hunters, prey = places[:3], places[3:]
    here = state([*hunters, None], prey, facing=facing, captured=captured)
    x = painted(hunters, prey, facing, captured)
    assert np.array_equal(SEE(here), x)
    for number, layer in enumerate(NETS.layers):
        weight, bias = np.float64(layer.weight)[[0, 1, 0]], np.float64(layer.bias)[[0, 1, 0]]
        x = np.einsum("ki,kio->ko", np.maximum(x, 0) if number else x, weight) + bias
    assert np.asarray(QUICK(here)) == pytest.approx(x, abs=1e-5)


def test_a_prey_sees_ahead_and_beside_it_but_not_behind():
    # Facing right from (5, 2): (5, 6) is four ahead, (7, 2) two to the right, (5, 1) behind.
    here = state([(5, 6), (7, 2), (5, 1)], [(5, 2), (0, 9)], facing=[1, 0])
    seen = np.asarray(SEE(here))[0, :CELLS].reshape(DEEP, WIDE)
    assert seen.sum() == 2
    assert seen[4, SIDE] == 1
    assert seen[0, SIDE + 2] == 1


def test_prey_take_the_action_of_the_highest_value():
    nets = networks(jax.random.key(3))
    here = state([(5, 6), (7, 2), (5, 1)], [(5, 2), (0, 9)], facing=[1, 2])
    actions, memory = Fleeing(nets).act(Dice(jax.random.key(0)), 10, here)
    values = np.asarray(action_values(nets, patches(10, here)))
    assert actions.tolist() == values.argmax(axis=1).tolist()
    assert memory == ()


def test_each_prey_has_its_own_network_and_more_take_turns():
    nets = networks(jax.random.key(3))
    seen = jnp.tile(jax.random.uniform(jax.random.key(1), (1, 3 * CELLS)), (3, 1))
    one, two, three = np.asarray(action_values(nets, seen))
    assert not np.allclose(one, two)
    assert three == pytest.approx(one, abs=1e-6)
