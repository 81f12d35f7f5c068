from collections import Counter
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dropin.games.grid import NO_CELL, cell_position, draw_cells, draw_free_cell


@given(
    seed=st.integers(0, 2**31 - 1),
    taken=st.lists(st.integers(-3, 30), min_size=4, max_size=4),
    total=st.integers(1, 25),
    wanted=st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_drawn_cells_are_free_and_distinct_and_drawn_only_where_wanted(seed, taken, total, wanted):
    uniform = jax.random.uniform(jax.random.key(seed), (5,))
    cells = jax.jit(draw_cells)(
        uniform, jnp.array(wanted), jnp.array(taken, jnp.int32), jnp.int32(total)
    )
    drawn = [int(cell) for cell in cells if cell != NO_CELL]
    free = set(range(total)) - set(taken)
    assert len(drawn) == len(set(drawn)) == min(sum(wanted), len(free))
    assert set(drawn) <= free
    assert all(cell == NO_CELL for cell, wants in zip(cells, wanted, strict=True) if not wants)


def test_every_ordered_choice_of_cells_is_equally_likely():
    taken, total, draws = jnp.array([2, 2, 9], jnp.int32), jnp.int32(5), 40_000
    uniform = jax.random.uniform(jax.random.key(0), (draws, 3))
    cells = jax.vmap(lambda u: draw_cells(u, jnp.array([True, False, True]), taken, total))(uniform)
    counts = Counter((int(a), int(b)) for a, _, b in np.asarray(cells))
    pairs = list(permutations([0, 1, 3, 4], 2))
    assert set(counts) == set(pairs)
    assert [counts[pair] / draws for pair in pairs] == pytest.approx([1 / 12] * 12, abs=0.007)


def test_a_free_cell_is_drawn_uniformly():
    free = np.zeros((4, 4), bool)
    free[[0, 0, 2, 3], [1, 3, 0, 2]] = True
    uniform = jax.random.uniform(jax.random.key(1), (40_000,))
    cells = np.asarray(jax.vmap(lambda u: draw_free_cell(u, jnp.asarray(free)))(uniform))
    counts = Counter(map(tuple, cells.tolist()))
    assert set(counts) == set(zip(*np.nonzero(free), strict=True))
    assert [count / 40_000 for count in counts.values()] == pytest.approx([0.25] * 4, abs=0.01)


def test_a_full_grid_has_no_free_cell():
    assert draw_free_cell(jnp.float32(0.5), jnp.zeros((3, 3), bool)).tolist() == [NO_CELL, NO_CELL]


def test_cells_are_numbered_row_by_row():
    positions = cell_position(jnp.arange(6).reshape(2, 3), 3)
    assert positions.tolist() == [[[0, 0], [0, 1], [0, 2]], [[1, 0], [1, 1], [1, 2]]]
