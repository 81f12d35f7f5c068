"""The state of Wolfpack, and the actions of hunters and prey."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

__all__ = [
    "ABSENT_CELL",
    "DIRECTIONS",
    "DOWN",
    "LEFT",
    "MOVES",
    "NUM_ACTIONS",
    "NUM_PREY_ACTIONS",
    "RIGHT",
    "STAY",
    "TURN_LEFT",
    "TURN_RIGHT",
    "UP",
    "State",
    "StepEvents",
    "manhattan_distance",
]

UP, RIGHT, DOWN, LEFT, STAY = range(5)
NUM_ACTIONS = 5
"""Number of actions of a hunter."""
MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1], [0, 0]], np.int32)
"""What each action of a hunter adds to its row and column."""
DIRECTIONS = ("up", "right", "down", "left")

TURN_LEFT, TURN_RIGHT = 5, 6
NUM_PREY_ACTIONS = 7
"""Number of actions of a prey: a step ahead, to its right, back or to its left, all relative to
the direction it faces; stay; turn left; turn right."""

ABSENT_CELL = np.array([[-1, -1]], np.int32)
"""Row and column of an absent hunter."""


class State(eqx.Module):
    """A state of the game.

    A cell is (row, column), with (0, 0) at the top left. No two hunters or prey share a cell.
    """

    hunters: Int[Array, "slot 2"]
    """The cell of each hunter; (-1, -1) for an absent one."""
    prey: Int[Array, "prey 2"]
    """The cell of each prey."""
    facing: Int[Array, " prey"]
    """The direction each prey faces: 0 up, 1 right, 2 down, 3 left."""
    captured: Bool[Array, " prey"]
    """Which prey were captured in the previous step. They keep their cell in this state and
    reappear elsewhere in the next step."""
    time: Int[Array, ""]
    """Number of steps taken in this episode."""
    memory: PyTree
    """The memory of the prey, a pytree that their policy defines."""

    @property
    def present(self) -> Bool[Array, " slot"]:
        """Which slots hold a hunter."""
        return self.hunters[..., 0] >= 0


class StepEvents(eqx.Module):
    """The game's record of a step."""

    captured: Bool[Array, "slot prey"]
    """Which hunters took part in capturing which prey."""


def manhattan_distance(
    cells: Int[Array, "*#n 2"], others: Int[Array, "*#n 2"]
) -> Int[Array, "*#n"]:
    """Return the Manhattan distance between cells; leading axes broadcast.

    Args:
        cells: Rows and columns.
        others: Rows and columns of the other cells.
    """
    return jnp.sum(jnp.abs(cells - others), axis=-1)
