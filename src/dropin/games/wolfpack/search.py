"""Search for the first move of a path through a grid with obstacles.

`shortest_path_search` follows a shortest path. `reading_order_search` does what the authors'
program does: it is meant to be A*, but its queue is ordered by the coordinates of the cells. So
the first cell in reading order (row by row) is expanded first, and the path may be a detour.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, PyTree, UInt32

from dropin._xla.compute_where import compute_where
from dropin.games.wolfpack.state import DOWN, LEFT, MOVES, RIGHT, STAY, UP

__all__ = ["NO_PATH", "Search", "reading_order_search", "shortest_path_search"]

NO_PATH = -1
"""Returned by a search that finds no path."""

Bitmap = UInt32[Array, "size word"]
"""A set of cells as bits: the first column of a row is the lowest bit of the row's first word."""
WORD_BITS = 32

Cell = Int[Array, " 2"]
Search = Callable[[Cell, Cell, Int[Array, "obstacle 2"], int], Int[Array, ""]]
"""`(start, goal, obstacles, size of the grid) -> first move`. The move is `NO_PATH` if there is no
path, or if the goal is the start. The start itself may be among the obstacles, and obstacles may
be off the grid, where they have no effect."""


def _to_bitmap(cells: Int[Array, "n 2"], size: int) -> Bitmap:
    """Return the set of the given cells; those off the grid are left out."""
    words = -(-size // WORD_BITS)
    row, column = cells[:, 0, None, None], cells[:, 1, None, None]
    in_word = (row == jnp.arange(size)[None, :, None]) & (
        column // WORD_BITS == jnp.arange(words)[None, None]
    )
    bit = jnp.uint32(1) << (column % WORD_BITS).astype(jnp.uint32)
    return jax.lax.reduce(jnp.where(in_word, bit, 0), jnp.uint32(0), jax.lax.bitwise_or, (0,))


def _full_bitmap(size: int) -> np.ndarray:
    """Return the set of all cells of a grid."""
    columns = np.arange(-(-size // WORD_BITS) * WORD_BITS).reshape(-1, WORD_BITS)
    bits = np.where(columns < size, np.uint32(1) << (columns % WORD_BITS).astype(np.uint32), 0)
    return np.broadcast_to(bits.sum(axis=1, dtype=np.uint32), (size, len(columns)))


def shortest_path_search(
    start: Cell, goal: Cell, obstacles: Int[Array, "obstacle 2"], size: int
) -> Int[Array, ""]:
    """Return the first move of a shortest path; ties go to the action with the lower number.

    Args:
        start: The cell to start from; it may be among the obstacles.
        goal: The cell to reach.
        obstacles: Cells that the path must not enter.
        size: Rows and columns of the grid.

    Returns:
        The move, or `NO_PATH`.
    """
    wanted = jnp.any(start != goal)
    move = compute_where(_OnGrid(size, _breadth_first), wanted, (start, goal, obstacles), block=64)
    return jnp.where(wanted, move, NO_PATH)


@dataclass(frozen=True)
class _OnGrid:
    """Adapts a search over bitmaps to `compute_where`."""

    size: int
    search: Callable[[Cell, Cell, Bitmap], PyTree]

    def __call__(self, row: tuple[Cell, Cell, Array], shared: tuple[()]) -> PyTree:
        del shared
        start, goal, obstacles = row
        return self.search(start, goal, _to_bitmap(obstacles, self.size))


def _breadth_first(start: Cell, goal: Cell, obstacles: Bitmap) -> Int[Array, ""]:
    """Grow the set of cells within n steps of the goal until it contains the start."""
    size = obstacles.shape[0]
    start_bit, goal_bit = _to_bitmap(start[None], size), _to_bitmap(goal[None], size)
    free = (~obstacles & _full_bitmap(size)) | start_bit

    def grow(reached: Bitmap) -> Bitmap:
        grown = reached
        for move in range(STAY):
            grown = grown | _shift(reached, move)
        return grown & free

    def is_unfinished(carry: tuple[Bitmap, Bitmap]) -> Bool[Array, ""]:
        reached, grown = carry
        return ~jnp.any(grown & start_bit != 0) & jnp.any(grown != reached)

    def step(carry: tuple[Bitmap, Bitmap]) -> tuple[Bitmap, Bitmap]:
        _, grown = carry
        return grown, grow(grown)

    first = goal_bit & free
    reached, grown = jax.lax.while_loop(is_unfinished, step, (first, grow(first)))
    found = jnp.any(grown & start_bit != 0)
    action = jnp.int32(STAY)
    for move in reversed(range(STAY)):
        # Whether this move leads from the start into `reached`: shift `reached` the other way.
        leads_closer = jnp.any(_shift(reached, (move + 2) % 4) & start_bit != 0)
        action = jnp.where(leads_closer, move, action)
    return jnp.where(found, action, NO_PATH)


def _shift(cells: Bitmap, move: int) -> Bitmap:
    """Return the cells after a move.

    Cells that leave the grid are dropped, except at the right edge, beyond which there may be
    unused bits.
    """
    if move == UP:
        return jnp.pad(cells[1:], ((0, 1), (0, 0)))
    if move == DOWN:
        return jnp.pad(cells[:-1], ((1, 0), (0, 0)))
    one, last = jnp.uint32(1), jnp.uint32(WORD_BITS - 1)
    if move == RIGHT:
        return (cells << one) | (jnp.pad(cells[:, :-1], ((0, 0), (1, 0))) >> last)
    return (cells >> one) | (jnp.pad(cells[:, 1:], ((0, 0), (0, 1))) << last)


def reading_order_search(
    start: Cell, goal: Cell, obstacles: Int[Array, "obstacle 2"], size: int
) -> Int[Array, ""]:
    """Return the first move of the path that the search of the authors' program finds.

    Of the queued cells the first one in reading order is expanded: each neighbour that is reached
    by a shorter path than any before is queued, again if necessary. The search ends when the goal
    is expanded.

    Args:
        start: The cell to start from; it may be among the obstacles.
        goal: The cell to reach.
        obstacles: Cells that the path must not enter.
        size: Rows and columns of the grid.

    Returns:
        The move, or `NO_PATH`.
    """
    wanted = jnp.any(start != goal)
    row = (start, goal, obstacles)
    move, is_open = compute_where(_OnGrid(size, _shortcut), wanted, row, block=64)
    searched = compute_where(_OnGrid(size, _search_one), is_open, row)
    return jnp.where(wanted, jnp.where(is_open, searched, move), NO_PATH)


# The search keeps one integer per cell, from the lowest bit: whether the cell is queued (1 bit),
# the move that led to it (2 bits), its cost. Above these there is room for the index of the cell.
_MOVE_SHIFT, _COST_SHIFT, _CELL_SHIFT = 1, 3, 13
_UNSEEN = (1 << _CELL_SHIFT) - 2
"""Not queued, at the highest cost."""
_NOTHING = 2**30
"""Larger than the integer of any cell."""


@custom_vmap
def _search_one(start: Array, goal: Array, obstacles: Bitmap) -> Array:
    return _search_many(start[None], goal[None], obstacles[None])[0]


@_search_one.def_vmap
def _search_batch(size: int, batched: list[bool], *args: Array) -> tuple[Array, bool]:
    rows = [
        each if is_batched else jnp.broadcast_to(each[None], (size, *each.shape))
        for each, is_batched in zip(args, batched, strict=True)
    ]
    return _search_many(*rows), True


def _search_many(
    start: Int[Array, "n 2"], goal: Int[Array, "n 2"], obstacles: UInt32[Array, "n size word"]
) -> Int[Array, " n"]:
    """Run many searches side by side.

    They are batched by hand because `vmap` of a loop copies the carry of searches that are done.
    """
    size = obstacles.shape[1]
    cells = np.arange(size * size, dtype=np.int32)
    row, column = cells // size, cells % size
    index = jnp.asarray(cells)[None]
    bit_position = jnp.asarray(column % WORD_BITS, jnp.uint32)[None]
    bits = obstacles[:, row, column // WORD_BITS] >> bit_position
    free = bits & jnp.uint32(1) == 0
    strides = (MOVES[:STAY] @ np.array([size, 1])).tolist()
    # Which cells each move can lead to: a move to the right cannot lead to the first column, and a
    # move to the left cannot lead to the last one.
    reachable = [
        jnp.asarray(each)[None] for each in (cells >= 0, column > 0, cells >= 0, column < size - 1)
    ]
    start_index, goal_index = (cell[:, :1] * size + cell[:, 1:] for cell in (start, goal))

    def first_queued(marks: Int[Array, "n cell"]) -> Int[Array, "n 1"]:
        queued = jnp.where(marks & 1 == 1, (index << _CELL_SHIFT) | marks, _NOTHING)
        return jnp.min(queued, axis=1, keepdims=True)

    def is_unfinished(first: Int[Array, "n 1"]) -> Bool[Array, "n 1"]:
        return (first >> _CELL_SHIFT != goal_index) & (first < _NOTHING)

    def expand(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        marks, first = carry
        expanded = jnp.where(is_unfinished(first), first >> _CELL_SHIFT, _NOTHING)
        cost = (first & ((1 << _CELL_SHIFT) - 1)) >> _COST_SHIFT
        queued = (cost + 1 << _COST_SHIFT) | 1
        offers = jnp.full(marks.shape, _NOTHING)
        for move, stride in enumerate(strides):
            is_neighbour = (index == expanded + stride) & reachable[move]
            offers = jnp.where(is_neighbour, queued | (move << _MOVE_SHIFT), offers)
        remaining = jnp.where(index == expanded, marks & ~1, marks)
        is_shorter = offers >> _COST_SHIFT < remaining >> _COST_SHIFT
        marks = jnp.where(is_shorter, offers, remaining)
        return marks, first_queued(marks)

    marks = jnp.where(free, _UNSEEN, 0)
    marks = jnp.where(index == start_index, 1, marks)

    def expand_some(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        # Expanding once too often changes nothing, and testing whether to go on takes time.
        for _ in range(4):
            carry = expand(carry)
        return carry

    marks, first = jax.lax.while_loop(
        lambda carry: jnp.any(is_unfinished(carry[1])), expand_some, (marks, first_queued(marks))
    )

    def step_back(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        at, move = carry
        mark = jnp.sum(jnp.where(index == at, marks, 0), axis=1, keepdims=True)
        move = jnp.where(at == start_index, move, mark >> _MOVE_SHIFT & 3)
        is_move = jnp.arange(STAY)[None] == move
        stride = jnp.sum(jnp.where(is_move, jnp.array([strides]), 0), axis=1)
        return jnp.where(at == start_index, at, at - stride[:, None]), move

    at = jnp.where(first >> _CELL_SHIFT == goal_index, goal_index, start_index)
    carry = (at, jnp.full(at.shape, NO_PATH))
    _, move = jax.lax.while_loop(lambda carry: jnp.any(carry[0] != start_index), step_back, carry)
    return move[:, 0]


def _shortcut(start: Cell, goal: Cell, obstacles: Bitmap) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Return the result of the search in reading order where it follows without searching.

    Before the search expands a cell of a row, it has expanded all that can be reached in the rows
    above. Therefore:

    * It starts upwards to a goal that is above, or further to the left, if that leads to the goal.
    * To a goal below, it goes along its own row and then down, if these cells are free. If the
      cell above the goal is taken, it arrives from the left or, if that is taken, from the right.
    * To a goal on the right in the same row, it goes along the row; if that is blocked, it starts
      upwards if the row above is free. To a goal on the left, it moves left if the goal is
      adjacent or if there is no row above.
    * There is no path to a goal that is taken, or whose neighbours are all taken.

    Returns:
        The first move or `NO_PATH`, and whether a search is needed to find out.
    """
    size, words = obstacles.shape
    rows = jnp.arange(size)
    blocked = obstacles & ~_to_bitmap(start[None], size)
    row, column = start[0], start[1]
    gap = goal - start

    def is_taken(column: Array) -> Bool[Array, " size"]:
        """Return which cells of a column are blocked or off the grid."""
        bit = _columns_before(column + 1, words) & ~_columns_before(column, words)
        return jnp.any(blocked & bit[None] != 0, axis=1) | (column < 0) | (column >= size)

    def is_row_free(end: Array) -> Bool[Array, " size"]:
        """Return in which rows all cells from the start's column to column `end` are free."""
        low, high = jnp.minimum(column, end), jnp.maximum(column, end)
        between = _columns_before(high + 1, words) & ~_columns_before(low, words)
        return ~jnp.any(blocked & between[None] != 0, axis=1)

    def is_column_free(taken: Array, end: Array) -> Bool[Array, " size"]:
        """Return from which rows all cells of a column are free up to row `end`."""
        low, high = jnp.minimum(rows, end)[:, None], jnp.maximum(rows, end)[:, None]
        return ~jnp.any(taken[None] & (rows[None] >= low) & (rows[None] <= high), axis=1)

    def along_and_down(end: Array) -> tuple[Bool[Array, ""], Int[Array, ""]]:
        """Return whether the path along the own row and down column `end` is free; its start."""
        free = is_row_free(end) & is_column_free(is_taken(end), goal[0])
        sideways = jnp.where(end > column, RIGHT, LEFT)
        return jnp.any(free & (rows == row)), jnp.where(end == column, DOWN, sideways)

    in_column = is_taken(goal[1])
    # Paths up or down the own column to a row, along that row, and along the goal's column.
    via_row = (
        is_column_free(is_taken(column), row)
        & is_row_free(goal[1])
        & is_column_free(in_column, goal[0])
    )
    via_own_row = jnp.any(via_row & (rows == row))
    via_any_row_above = jnp.any(via_row & (rows < row))
    via_next_row_above = jnp.any(via_row & (rows == row - 1))

    goal_row, above_goal, below_goal = (rows == goal[0] + k for k in (0, -1, 1))
    left_taken, right_taken = (jnp.any(is_taken(goal[1] + k) & goal_row) for k in (-1, 1))
    above_taken, below_taken = (~jnp.any(~in_column & each) for each in (above_goal, below_goal))
    is_enclosed = left_taken & right_taken & above_taken & below_taken
    is_closed = jnp.any(in_column & goal_row) | is_enclosed
    from_side, side_move = along_and_down(goal[1] + jnp.where(left_taken, 1, -1))
    down = jnp.where(via_own_row, along_and_down(goal[1])[1], NO_PATH)
    down = jnp.where(above_taken & from_side, side_move, down)

    up = jnp.where(via_any_row_above, UP, NO_PATH)
    rightwards = jnp.where(via_own_row, RIGHT, jnp.where(via_next_row_above, UP, NO_PATH))
    is_plain_left = via_own_row & ((gap[1] == -1) | (row == 0))
    sideways = jnp.where(gap[1] > 0, rightwards, jnp.where(is_plain_left, LEFT, up))
    move = jnp.where(gap[0] < 0, up, jnp.where(gap[0] > 0, down, sideways))
    return jnp.where(is_closed, NO_PATH, move), ~is_closed & (move == NO_PATH)


def _columns_before(column: Int[Array, ""], words: int) -> UInt32[Array, " word"]:
    """Return the bits of all columns before the given one."""
    count = jnp.clip(column - WORD_BITS * jnp.arange(words), 0, WORD_BITS)
    partial = (jnp.uint32(1) << (count % WORD_BITS).astype(jnp.uint32)) - jnp.uint32(1)
    return jnp.where(count == WORD_BITS, jnp.uint32(2**32 - 1), partial)
