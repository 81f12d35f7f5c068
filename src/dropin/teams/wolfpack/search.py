"""The first step of a way through a grid with obstacles.

`shortest` takes a shortest way. `in_reading_order` does what the authors' program does: it means to
be A*, but its queue is ordered by the cells' coordinates, so that the cell that comes first (row by
row) is looked at first, and the way it finds may be a detour.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from dropin.games.wolfpack.game import DOWN, LEFT, MOVES, RIGHT, STAY, UP

NO_WAY = -1

Search = Callable[[Int[Array, " 2"], Int[Array, " 2"], Bool[Array, "size size"]], Int[Array, ""]]
"""(start, goal, open cells) -> the first move, or NO_WAY. The start itself need not be open."""


def shortest(
    start: Int[Array, " 2"], goal: Int[Array, " 2"], free: Bool[Array, "size size"]
) -> Int[Array, ""]:
    """The first move of a shortest way; of several the first in the order of the actions.

    The cells within n steps of the goal spread until they meet the start.
    """
    size = free.shape[0]
    at_start, at_goal = _at(start, size), _at(goal, size)
    free = free | at_start

    def spread(reached: Bool[Array, "size size"]) -> Bool[Array, "size size"]:
        grown = reached
        for move in range(STAY):
            grown = grown | _shifted(reached, move)
        return grown & free

    def go_on(reach: tuple[Array, Array]) -> Array:
        reached, grown = reach
        return ~jnp.any(grown & at_start) & jnp.any(grown & ~reached)

    def step(reach: tuple[Array, Array]) -> tuple[Array, Array]:
        _, grown = reach
        return grown, spread(grown)

    here = at_goal & free
    reached, grown = jax.lax.while_loop(go_on, step, (here, spread(here)))
    found = jnp.any(grown & at_start) & ~jnp.any(at_start & at_goal)
    action = jnp.int32(STAY)
    for move in reversed(range(STAY)):
        # From the start this move leads into `reached`.
        action = jnp.where(jnp.any(_shifted(reached, (move + 2) % 4) & at_start), move, action)
    return jnp.where(found, action, NO_WAY)


def _at(cell: Int[Array, " 2"], size: int) -> Bool[Array, "size size"]:
    index = jnp.arange(size)
    return (index == cell[0])[:, None] & (index == cell[1])[None, :]


def _shifted(cells: Bool[Array, "size size"], move: int) -> Bool[Array, "size size"]:
    """The cells after a move; those that leave the grid are gone."""
    down, right = MOVES[move]
    padded = jnp.pad(cells, ((max(down, 0), max(-down, 0)), (max(right, 0), max(-right, 0))))
    size = cells.shape[0]
    return padded[max(-down, 0) :, max(-right, 0) :][:size, :size]


# The search keeps one number a cell: its cost, the move that led to it, and whether it is queued.
_COST, _MOVE = 3, 1
_UNSEEN = (1 << 13) - 2
_CELL = 13
"""Above these bits there is room for the number of a cell."""
_NOTHING = 2**30


def in_reading_order(
    start: Int[Array, " 2"], goal: Int[Array, " 2"], free: Bool[Array, "size size"]
) -> Int[Array, ""]:
    """The first move of the way that the search of the authors' program finds.

    Of the queued cells the first one (row by row) is taken out; each neighbour to which the way
    over it is shorter than any before is queued (again). It ends when the goal is taken out.
    """
    size = free.shape[0]
    cells = np.arange(size * size, dtype=np.int32)
    number, column = jnp.asarray(cells), cells % size
    steps = (MOVES[:STAY] @ np.array([size, 1])).tolist()
    # Whoever comes from the left cannot be in the first column, and so on.
    reachable = [
        jnp.asarray(each) for each in (cells >= 0, column > 0, cells >= 0, column < size - 1)
    ]
    origin, target = start[0] * size + start[1], goal[0] * size + goal[1]
    quick = _without_search(start, goal, free)

    def go_on(search: tuple[Array, Array]) -> Array:
        _, taken = search
        return (taken != target) & (taken >= 0)

    def step(search: tuple[Array, Array]) -> tuple[Array, Array]:
        marks, _ = search
        first = jnp.min(jnp.where(marks & 1 == 1, (number << _CELL) | marks, _NOTHING))
        taken, cost = first >> _CELL, ((first & ((1 << _CELL) - 1)) >> _COST) + 1
        offered = (cost << _COST) | 1
        offers = jnp.full(marks.shape, _NOTHING)
        for move, ahead in enumerate(steps):
            here = (number == taken + ahead) & reachable[move]
            offers = jnp.where(here, offered | (move << _MOVE), offers)
        left = jnp.where(number == taken, marks & ~1, marks)
        marks = jnp.where(offers >> _COST < left >> _COST, offers, left)
        return marks, jnp.where(first < _NOTHING, taken, NO_WAY)

    marks = jnp.where(free.reshape(-1), _UNSEEN, 0)
    marks = jnp.where(number == origin, 1, marks)
    first = jnp.where((origin == target) | (quick != NO_WAY), target, size * size)
    marks, taken = jax.lax.while_loop(go_on, step, (marks, first))

    def back(way: tuple[Array, Array]) -> tuple[Array, Array]:
        at, _ = way
        move = (jnp.sum(jnp.where(number == at, marks, 0)) >> _MOVE) & 3
        ahead = jnp.sum(jnp.where(jnp.arange(STAY) == move, jnp.array(steps), 0))
        return at - ahead, move

    found = (taken == target) & (quick == NO_WAY)
    return jax.lax.while_loop(
        lambda way: way[0] != origin, back, (jnp.where(found, target, origin), quick)
    )[1]


def _without_search(
    start: Int[Array, " 2"], goal: Int[Array, " 2"], free: Bool[Array, "size size"]
) -> Int[Array, ""]:
    """The answer of the search in reading order where it is plain, else NO_WAY.

    Before it looks at a row, the search is done with all rows above. So

    * to a goal below, it first goes along its own row and then down, if these cells are free;
    * to a goal above, it starts upwards if it can get to the goal's row and along it;
    * to a goal in its own row, it goes right if the cells between are free. To the left it looks at
      the goal as soon as it gets there from the row above, so it starts upwards if it can go along
      that row; only to the next cell, and in the first row, it goes left.
    """
    size = free.shape[0]
    row, column = jnp.arange(size)[:, None], jnp.arange(size)[None]
    blocked = ~(free | _at(start, size))
    low, high = jnp.minimum(start, goal), jnp.maximum(start, goal)
    across, down = (column >= low[1]) & (column <= high[1]), (row >= low[0]) & (row <= high[0])

    def clear(cells: Bool[Array, "size size"]) -> Bool[Array, ""]:
        return ~jnp.any(blocked & cells)

    gap = goal - start
    above, beside = gap[0] < 0, gap[0] == 0
    # The row of the start, of the goal, or the one above both; and the column at its end.
    over = beside & (gap[1] < -1) & (start[0] > 0)
    along = jnp.where(above, goal[0], start[0] - over.astype(jnp.int32))
    at = jnp.where(above, start[1], goal[1])
    open_way = clear((across & (row == along)) | (down & (column == at)))
    sideways = jnp.where(gap[1] > 0, RIGHT, LEFT)
    move = jnp.where(above | over, UP, jnp.where(gap[1] == 0, DOWN, sideways))
    return jnp.where(open_way & jnp.any(gap != 0), move, NO_WAY)
