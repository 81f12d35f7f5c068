"""The first step of a way through a grid with obstacles.

`shortest` takes a shortest way. `in_reading_order` does what the authors' program does: it means to
be A*, but its queue is ordered by the cells' coordinates, so that the cell that comes first (row by
row) is looked at first, and the way it finds may be a detour.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, UInt32

from dropin.games.wolfpack.game import DOWN, LEFT, MOVES, RIGHT, STAY, UP
from dropin.sparse import where_needed

NO_WAY = -1

Rows = UInt32[Array, "size word"]
"""Cells of a grid as bits: the first column of a row is the lowest bit of its first word."""
BITS = 32

Cell = Int[Array, " 2"]
Search = Callable[[Cell, Cell, Int[Array, "taken 2"], int], Int[Array, ""]]
"""(start, goal, cells that are taken, size of the grid) -> the first move, or NO_WAY; it is not
looked for where the goal is the start, which itself may be taken."""


def marked(cells: Int[Array, "n 2"], size: int) -> Rows:
    """The grid with bits at these cells; those off the grid are left out."""
    words = -(-size // BITS)
    row, column = cells[:, 0, None, None], cells[:, 1, None, None]
    here = (row == jnp.arange(size)[None, :, None]) & (
        column // BITS == jnp.arange(words)[None, None]
    )
    bit = jnp.uint32(1) << (column % BITS).astype(jnp.uint32)
    return jax.lax.reduce(jnp.where(here, bit, 0), jnp.uint32(0), jax.lax.bitwise_or, (0,))


def _whole(size: int) -> np.ndarray:
    """All cells of a grid."""
    columns = np.arange(-(-size // BITS) * BITS).reshape(-1, BITS)
    bits = np.where(columns < size, np.uint32(1) << (columns % BITS).astype(np.uint32), 0)
    return np.broadcast_to(bits.sum(axis=1, dtype=np.uint32), (size, len(columns)))


def shortest(start: Cell, goal: Cell, taken: Int[Array, "taken 2"], size: int) -> Int[Array, ""]:
    """The first move of a shortest way; of several the first in the order of the actions."""
    wanted = jnp.any(start != goal)
    move = where_needed(_On(size, _spread), wanted, (start, goal, taken), block=64)
    return jnp.where(wanted, move, NO_WAY)


@dataclass(frozen=True)
class _On:
    """Something that is found on a grid of this size, given cells that are taken."""

    size: int
    find: Callable[[Cell, Cell, Rows], Any]

    def __call__(self, given: tuple[Cell, Cell, Array], shared: tuple[()]) -> Any:
        del shared
        start, goal, taken = given
        return self.find(start, goal, marked(taken, self.size))


def _spread(start: Cell, goal: Cell, obstacles: Rows) -> Int[Array, ""]:
    """The cells within n steps of the goal spread until they meet the start."""
    size = obstacles.shape[0]
    at_start, at_goal = marked(start[None], size), marked(goal[None], size)
    free = (~obstacles & _whole(size)) | at_start

    def spread(reached: Rows) -> Rows:
        grown = reached
        for move in range(STAY):
            grown = grown | _shifted(reached, move)
        return grown & free

    def go_on(reach: tuple[Rows, Rows]) -> Bool[Array, ""]:
        reached, grown = reach
        return ~jnp.any(grown & at_start != 0) & jnp.any(grown != reached)

    def step(reach: tuple[Rows, Rows]) -> tuple[Rows, Rows]:
        _, grown = reach
        return grown, spread(grown)

    here = at_goal & free
    reached, grown = jax.lax.while_loop(go_on, step, (here, spread(here)))
    found = jnp.any(grown & at_start != 0)
    action = jnp.int32(STAY)
    for move in reversed(range(STAY)):
        # From the start this move leads into `reached`.
        leads = jnp.any(_shifted(reached, (move + 2) % 4) & at_start != 0)
        action = jnp.where(leads, move, action)
    return jnp.where(found, action, NO_WAY)


def _shifted(rows: Rows, move: int) -> Rows:
    """The cells after a move; those that leave the grid are gone, but for the right edge."""
    if move == UP:
        return jnp.pad(rows[1:], ((0, 1), (0, 0)))
    if move == DOWN:
        return jnp.pad(rows[:-1], ((1, 0), (0, 0)))
    one, last = jnp.uint32(1), jnp.uint32(BITS - 1)
    if move == RIGHT:
        return (rows << one) | (jnp.pad(rows[:, :-1], ((0, 0), (1, 0))) >> last)
    return (rows >> one) | (jnp.pad(rows[:, 1:], ((0, 0), (0, 1))) << last)


def in_reading_order(
    start: Cell, goal: Cell, taken: Int[Array, "taken 2"], size: int
) -> Int[Array, ""]:
    """The first move of the way that the search of the authors' program finds.

    Of the queued cells the first one (row by row) is taken out; each neighbour to which the way
    over it is shorter than any before is queued (again). It ends when the goal is taken out.
    """
    wanted = jnp.any(start != goal)
    given = (start, goal, taken)
    move, unknown = where_needed(_On(size, _without_search), wanted, given, block=64)
    found = where_needed(_On(size, _search_one), unknown, given)
    return jnp.where(wanted, jnp.where(unknown, found, move), NO_WAY)


# The search keeps one number a cell: its cost, the move that led to it, and whether it is queued.
_COST, _MOVE = 3, 1
_UNSEEN = (1 << 13) - 2
_CELL = 13
"""Above these bits there is room for the number of a cell."""
_NOTHING = 2**30


@custom_vmap
def _search_one(start: Array, goal: Array, obstacles: Rows) -> Array:
    return _search_many(start[None], goal[None], obstacles[None])[0]


@_search_one.def_vmap
def _search_batch(size: int, batched: list[bool], *given: Array) -> tuple[Array, bool]:
    rows = [
        each if has else jnp.broadcast_to(each[None], (size, *each.shape))
        for each, has in zip(given, batched, strict=True)
    ]
    return _search_many(*rows), True


def _search_many(
    start: Int[Array, "n 2"], goal: Int[Array, "n 2"], obstacles: UInt32[Array, "n size word"]
) -> Int[Array, " n"]:
    """Many searches side by side, by hand: `vmap` of a loop keeps a copy for those who are done."""
    size = obstacles.shape[1]
    cells = np.arange(size * size, dtype=np.int32)
    row, column = cells // size, cells % size
    number = jnp.asarray(cells)[None]
    bits = obstacles[:, row, column // BITS] >> jnp.asarray(column % BITS, jnp.uint32)[None]
    free = bits & jnp.uint32(1) == 0
    steps = (MOVES[:STAY] @ np.array([size, 1])).tolist()
    # Whoever comes from the left cannot be in the first column, and so on.
    reachable = [
        jnp.asarray(each)[None] for each in (cells >= 0, column > 0, cells >= 0, column < size - 1)
    ]
    origin, target = (cell[:, :1] * size + cell[:, 1:] for cell in (start, goal))

    def first_queued(marks: Int[Array, "n cell"]) -> Int[Array, "n 1"]:
        queued = jnp.where(marks & 1 == 1, (number << _CELL) | marks, _NOTHING)
        return jnp.min(queued, axis=1, keepdims=True)

    def goes_on(first: Int[Array, "n 1"]) -> Bool[Array, "n 1"]:
        return (first >> _CELL != target) & (first < _NOTHING)

    def step(search: tuple[Array, Array]) -> tuple[Array, Array]:
        marks, first = search
        taken = jnp.where(goes_on(first), first >> _CELL, _NOTHING)
        offered = (((first & ((1 << _CELL) - 1)) >> _COST) + 1 << _COST) | 1
        offers = jnp.full(marks.shape, _NOTHING)
        for move, ahead in enumerate(steps):
            here = (number == taken + ahead) & reachable[move]
            offers = jnp.where(here, offered | (move << _MOVE), offers)
        left = jnp.where(number == taken, marks & ~1, marks)
        marks = jnp.where(offers >> _COST < left >> _COST, offers, left)
        return marks, first_queued(marks)

    marks = jnp.where(free, _UNSEEN, 0)
    marks = jnp.where(number == origin, 1, marks)

    def some_steps(search: tuple[Array, Array]) -> tuple[Array, Array]:
        for _ in range(4):  # One too many changes nothing; asking whether to go on takes time.
            search = step(search)
        return search

    marks, first = jax.lax.while_loop(
        lambda search: jnp.any(goes_on(search[1])), some_steps, (marks, first_queued(marks))
    )

    def back(way: tuple[Array, Array]) -> tuple[Array, Array]:
        at, move = way
        here = jnp.sum(jnp.where(number == at, marks, 0), axis=1, keepdims=True) >> _MOVE & 3
        move = jnp.where(at == origin, move, here)
        ahead = jnp.sum(jnp.where(jnp.arange(STAY)[None] == move, jnp.array([steps]), 0), axis=1)
        return jnp.where(at == origin, at, at - ahead[:, None]), move

    at = jnp.where(first >> _CELL == target, target, origin)
    way = (at, jnp.full(at.shape, NO_WAY))
    return jax.lax.while_loop(lambda way: jnp.any(way[0] != origin), back, way)[1][:, 0]


def _without_search(
    start: Cell, goal: Cell, obstacles: Rows
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """The answer of the search in reading order where it is plain, and whether it is not.

    Before it looks at a row, the search is done with all rows above: with what can be reached
    there from the cell over the start. So

    * to a goal above, or further to the left, it starts upwards if the goal can be reached so;
    * to a goal below, it goes along its own row and then down, if these cells are free. If the
      cell over the goal is not, it gets there from the left, or from the right if it must;
    * to a goal to the right it goes along its own row, or else starts upwards if it can go along
      the row above; and to the left if the goal is next to it, or there is no row above;
    * there is no way to a goal that is taken, or whose neighbours all are.
    """
    size, words = obstacles.shape
    rows = jnp.arange(size)
    blocked = obstacles & ~marked(start[None], size)
    row, column = start[0], start[1]
    gap = goal - start

    def taken(column: Array) -> Bool[Array, " size"]:
        """Which cells of a column are, or are not on the grid."""
        one = _below(column + 1, words) & ~_below(column, words)
        return jnp.any(blocked & one[None] != 0, axis=1) | (column < 0) | (column >= size)

    def along(end: Array) -> Bool[Array, " size"]:
        """In which rows all cells from the start's column to another are free."""
        low, high = jnp.minimum(column, end), jnp.maximum(column, end)
        between = _below(high + 1, words) & ~_below(low, words)
        return ~jnp.any(blocked & between[None] != 0, axis=1)

    def upright(taken: Array, end: Array) -> Bool[Array, " size"]:
        """From which rows all cells of a column are free up to the row of its end."""
        low, high = jnp.minimum(rows, end)[:, None], jnp.maximum(rows, end)[:, None]
        return ~jnp.any(taken[None] & (rows[None] >= low) & (rows[None] <= high), axis=1)

    def below(end: Array) -> tuple[Bool[Array, ""], Int[Array, ""]]:
        """Whether the way along the own row and then down to this column is free, and its start."""
        free = along(end) & upright(taken(end), goal[0])
        sideways = jnp.where(end > column, RIGHT, LEFT)
        return jnp.any(free & (rows == row)), jnp.where(end == column, DOWN, sideways)

    in_column = taken(goal[1])
    ways = upright(taken(column), row) & along(goal[1]) & upright(in_column, goal[0])
    straight = jnp.any(ways & (rows == row))
    over = jnp.any(ways & (rows < row))
    just_over = jnp.any(ways & (rows == row - 1))

    at, over_it, under_it = (rows == goal[0] + k for k in (0, -1, 1))
    left, right = (jnp.any(taken(goal[1] + k) & at) for k in (-1, 1))
    roof, floor = (~jnp.any(~in_column & row) for row in (over_it, under_it))
    closed = jnp.any(in_column & at) | (left & right & roof & floor)
    from_side, side_move = below(goal[1] + jnp.where(left, 1, -1))
    down = jnp.where(straight, below(goal[1])[1], NO_WAY)
    down = jnp.where(roof & from_side, side_move, down)

    up = jnp.where(over, UP, NO_WAY)
    rightwards = jnp.where(straight, RIGHT, jnp.where(just_over, UP, NO_WAY))
    plain_left = straight & ((gap[1] == -1) | (row == 0))
    sideways = jnp.where(gap[1] > 0, rightwards, jnp.where(plain_left, LEFT, up))
    move = jnp.where(gap[0] < 0, up, jnp.where(gap[0] > 0, down, sideways))
    return jnp.where(closed, NO_WAY, move), ~closed & (move == NO_WAY)


def _below(column: Int[Array, ""], words: int) -> UInt32[Array, " word"]:
    """The bits of all columns before this one."""
    more = jnp.clip(column - BITS * jnp.arange(words), 0, BITS)
    some = (jnp.uint32(1) << (more % BITS).astype(jnp.uint32)) - jnp.uint32(1)
    return jnp.where(more == BITS, jnp.uint32(2**32 - 1), some)
