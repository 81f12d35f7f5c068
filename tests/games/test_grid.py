from collections import Counter
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dropin.games.grid import NOWHERE, draw_cells, draw_free


@given(
    seed=st.integers(0, 2**31 - 1),
    taken=st.lists(st.integers(-3, 30), min_size=4, max_size=4),
    total=st.integers(1, 25),
    wanted=st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_drawn_cells_are_free_distinct_and_given_to_whoever_wants_one(seed, taken, total, wanted):
    chance = jax.random.uniform(jax.random.key(seed), (5,))
    cells = jax.jit(draw_cells)(
        chance, jnp.array(wanted), jnp.array(taken, jnp.int32), jnp.int32(total)
    )
    drawn = [int(cell) for cell in cells if cell != NOWHERE]
    free = set(range(total)) - set(taken)
    assert len(drawn) == len(set(drawn)) == min(sum(wanted), len(free))
    assert set(drawn) <= free
    assert all(cell == NOWHERE for cell, wants in zip(cells, wanted, strict=True) if not wants)


def test_every_ordered_choice_of_cells_has_the_same_chance():
    taken, total, draws = jnp.array([2, 2, 9], jnp.int32), jnp.int32(5), 40_000
    chance = jax.random.uniform(jax.random.key(0), (draws, 3))
    cells = jax.vmap(lambda c: draw_cells(c, jnp.array([True, False, True]), taken, total))(chance)
    counts = Counter((int(a), int(b)) for a, _, b in np.asarray(cells))
    pairs = list(permutations([0, 1, 3, 4], 2))
    assert set(counts) == set(pairs)
    assert [counts[pair] / draws for pair in pairs] == pytest.approx([1 / 12] * 12, abs=0.007)


def test_a_free_cell_is_drawn_uniformly():
    free = np.zeros((4, 4), bool)
    free[[0, 0, 2, 3], [1, 3, 0, 2]] = True
    chance = jax.random.uniform(jax.random.key(1), (40_000,))
    cells = np.asarray(jax.vmap(lambda c: draw_free(c, jnp.asarray(free)))(chance))
    counts = Counter(map(tuple, cells.tolist()))
    assert set(counts) == set(zip(*np.nonzero(free), strict=True))
    assert [count / 40_000 for count in counts.values()] == pytest.approx([0.25] * 4, abs=0.01)


def test_no_free_cell_is_nowhere():
    assert draw_free(jnp.float32(0.5), jnp.zeros((3, 3), bool)).tolist() == [NOWHERE, NOWHERE]
