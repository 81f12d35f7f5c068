"""Cells of a square grid, numbered row by row."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dropin.dice import scale
from dropin.settle import settle

NOWHERE = 2**20
"""A number above that of any cell."""


def position_of(cell: Int[Array, "*n"], size: int) -> Int[Array, "*n 2"]:
    """Row and column of each cell."""
    return jnp.stack([cell // size, cell % size], axis=-1)


def draw_cells(
    chance: Float[Array, " n"],
    wanted: Bool[Array, " n"],
    taken: Int[Array, " m"],
    total: Int[Array, ""],
) -> Int[Array, " n"]:
    """Distinct cells of 0..total-1 that are not taken, uniformly, for those who want one.

    `chance` holds uniform numbers in [0, 1). Each draw is a rank among the cells that are left,
    moved past those that are not: no cell is tried twice and nothing is sorted or counted over
    the grid. `taken` may name a cell twice and cells outside the range, which do not matter. Who
    finds nothing left gets NOWHERE.
    """
    index = jnp.arange(taken.shape[0])
    twice = jnp.any((taken[:, None] == taken[None]) & (index[:, None] > index[None]), axis=1)
    gone = jnp.where(twice | (taken < 0) | (taken >= total), NOWHERE, taken)
    rank = _draw_ranks(chance, wanted, total - jnp.sum(gone < NOWHERE))
    return settle(jnp.where(rank < NOWHERE, _past(gone, _below(gone), rank), NOWHERE))


def _draw_ranks(
    chance: Float[Array, " n"], wanted: Bool[Array, " n"], total: Int[Array, ""]
) -> Int[Array, " n"]:
    """Distinct numbers of 0..total-1, uniformly, for those who want one."""
    index = jnp.arange(chance.shape[0])
    earlier = jnp.sum(wanted[None] & (index[:, None] > index[None]), axis=1)
    left = total - earlier
    first = jnp.where(wanted & (left > 0), scale(chance, left), NOWHERE)
    ranks, below = jnp.full_like(index, NOWHERE), jnp.zeros_like(index)
    for k in range(chance.shape[0]):
        rank = _past(ranks, below, first[k : k + 1])
        below = jnp.where(
            index == k, jnp.sum(ranks < rank), below + (ranks > rank).astype(jnp.int32)
        )
        ranks = jnp.where(index == k, rank, ranks)
    return settle(ranks)


def _below(numbers: Int[Array, " n"]) -> Int[Array, " n"]:
    """How many of the numbers are smaller than each."""
    return jnp.sum(numbers[:, None] > numbers[None], axis=1)


def _past(
    gone: Int[Array, " m"], below: Int[Array, " m"], rank: Int[Array, " n"]
) -> Int[Array, " n"]:
    """The numbers that have these ranks among those that are not `gone`."""
    return rank + jnp.sum((gone - below)[None] <= rank[:, None], axis=1)


def draw_free(chance: Float[Array, ""], free: Bool[Array, "size size"]) -> Int[Array, " 2"]:
    """Row and column of a free cell, uniformly; (NOWHERE, NOWHERE) if there is none.

    First the row, by how many free cells come before it, then the column within the row.
    """
    in_row = jnp.sum(free, axis=1)
    rank = scale(chance, jnp.sum(in_row))
    row, rank = _locate(in_row, rank)
    here = jnp.arange(free.shape[0]) == row
    column, _ = _locate(jnp.sum(free & here[:, None], axis=0), rank)
    found = jnp.any(free)
    return jnp.where(found, jnp.stack([row, column]), NOWHERE)


def _locate(
    counts: Int[Array, " n"], rank: Int[Array, ""]
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """The part that holds the item of this rank, and the item's rank within the part."""
    index = jnp.arange(counts.shape[0])
    # All pairs rather than a cumulative sum, which is slow for a handful of numbers.
    before = jnp.sum(jnp.where(index[None] < index[:, None], counts[None], 0), axis=1)
    part = jnp.sum(before + counts <= rank)
    return part, rank - jnp.sum(jnp.where(index == part, before, 0))
