"""Random free cells of a square grid whose cells are numbered row by row."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dropin._xla.materialize import materialize
from dropin._xla.random import uniform_to_index

__all__ = ["NO_CELL", "cell_position", "draw_cells", "draw_free_cell"]

NO_CELL = 2**20
"""Stands for "no cell"; larger than the number of any cell."""


def cell_position(cell: Int[Array, "*n"], size: int) -> Int[Array, "*n 2"]:
    """Return the row and the column of each cell.

    Args:
        cell: Numbers of cells.
        size: Number of columns of the grid.
    """
    return jnp.stack([cell // size, cell % size], axis=-1)


def draw_cells(
    uniform: Float[Array, " n"],
    wanted: Bool[Array, " n"],
    taken: Int[Array, " m"],
    num_cells: Int[Array, ""],
) -> Int[Array, " n"]:
    """Draw distinct free cells, uniformly.

    Each draw is a rank among the free cells, which is then turned into the number of a cell. So no
    cell is drawn twice, and nothing is sorted or counted over the whole grid.

    Args:
        uniform: Uniform random numbers in [0, 1), one for each draw.
        wanted: Which draws to make.
        taken: Cells that are not free. Repeated cells and numbers outside the grid do no harm.
        num_cells: Number of cells of the grid.

    Returns:
        A cell for each draw; `NO_CELL` where none is wanted or none is left.
    """
    index = jnp.arange(taken.shape[0])
    repeated = jnp.any((taken[:, None] == taken[None]) & (index[:, None] > index[None]), axis=1)
    excluded = jnp.where(repeated | (taken < 0) | (taken >= num_cells), NO_CELL, taken)
    rank = _draw_ranks(uniform, wanted, num_cells - jnp.sum(excluded < NO_CELL))
    cells = _skip_excluded(excluded, _count_smaller(excluded), rank)
    return materialize(jnp.where(rank < NO_CELL, cells, NO_CELL))


def _draw_ranks(
    uniform: Float[Array, " n"], wanted: Bool[Array, " n"], total: Int[Array, ""]
) -> Int[Array, " n"]:
    """Draw distinct numbers of 0..total-1, uniformly; `NO_CELL` where none is wanted or left."""
    index = jnp.arange(uniform.shape[0])
    drawn_before = jnp.sum(wanted[None] & (index[:, None] > index[None]), axis=1)
    left = total - drawn_before
    rank_among_left = jnp.where(wanted & (left > 0), uniform_to_index(uniform, left), NO_CELL)
    ranks, smaller = jnp.full_like(index, NO_CELL), jnp.zeros_like(index)
    for k in range(uniform.shape[0]):
        rank = _skip_excluded(ranks, smaller, rank_among_left[k : k + 1])
        smaller = jnp.where(
            index == k, jnp.sum(ranks < rank), smaller + (ranks > rank).astype(jnp.int32)
        )
        ranks = jnp.where(index == k, rank, ranks)
    return materialize(ranks)


def _count_smaller(numbers: Int[Array, " n"]) -> Int[Array, " n"]:
    """Return for each number how many of the numbers are smaller."""
    return jnp.sum(numbers[:, None] > numbers[None], axis=1)


def _skip_excluded(
    excluded: Int[Array, " m"], smaller: Int[Array, " m"], rank: Int[Array, " n"]
) -> Int[Array, " n"]:
    """Return the numbers with the given ranks among the numbers that are not excluded.

    Args:
        excluded: Numbers to skip.
        smaller: For each of them, how many of the others are smaller.
        rank: Ranks, from 0.
    """
    return rank + jnp.sum((excluded - smaller)[None] <= rank[:, None], axis=1)


def draw_free_cell(uniform: Float[Array, ""], free: Bool[Array, "size size"]) -> Int[Array, " 2"]:
    """Draw a free cell, uniformly: first its row, weighted by its free cells, then its column.

    Args:
        uniform: A uniform random number in [0, 1).
        free: Which cells are free.

    Returns:
        Row and column; (`NO_CELL`, `NO_CELL`) if no cell is free.
    """
    free_in_row = jnp.sum(free, axis=1)
    rank = uniform_to_index(uniform, jnp.sum(free_in_row))
    row, rank_in_row = _locate(free_in_row, rank)
    is_row = jnp.arange(free.shape[0]) == row
    column, _ = _locate(jnp.sum(free & is_row[:, None], axis=0), rank_in_row)
    return jnp.where(jnp.any(free), jnp.stack([row, column]), NO_CELL)


def _locate(
    counts: Int[Array, " n"], rank: Int[Array, ""]
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Return the group that holds the item of a given rank, and the item's rank in the group.

    Args:
        counts: Number of items in each group.
        rank: Rank of the item among the items of all groups.
    """
    index = jnp.arange(counts.shape[0])
    # All pairs rather than a cumulative sum, which is slow for a handful of numbers.
    before = jnp.sum(jnp.where(index[None] < index[:, None], counts[None], 0), axis=1)
    group = jnp.sum(before + counts <= rank)
    return group, rank - jnp.sum(jnp.where(index == group, before, 0))
