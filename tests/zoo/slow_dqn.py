"""Squared TD errors of the learned prey, wolves and hunters of Wolfpack, in plain NumPy."""

from dataclasses import dataclass

import numpy as np
from slow_networks import mlp

AHEAD = {0: (-1, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1)}
"""The step ahead, as (down, right), of a prey that faces up, right, down or left."""


@dataclass
class Board:
    """A state of the game."""

    hunters: list[tuple[int, int]]
    prey: list[tuple[int, int]]
    facing: list[int]
    captured: list[bool]


def patch(board: Board, me: int, size: int) -> np.ndarray:
    """Return what a prey sees: 9 rows ahead of it, its own included, 8 cells to each side.

    Three channels: whether there is a hunter, a prey, or no cell of the grid.
    """
    down, right = AHEAD[board.facing[me]]
    row, column = board.prey[me]
    seen = np.zeros((3, 9, 17))
    free = [cell for cell, captured in zip(board.prey, board.captured, strict=True) if not captured]
    for ahead in range(9):
        for aside in range(-8, 9):
            # Turning (down, right) to the right gives (right, -down).
            cell = (row + ahead * down + aside * right, column + ahead * right - aside * down)
            seen[0, ahead, aside + 8] = cell in board.hunters
            seen[1, ahead, aside + 8] = cell in free
            seen[2, ahead, aside + 8] = not (0 <= cell[0] < size and 0 <= cell[1] < size)
    return seen.ravel()


def wolf_inputs(board: Board, me: int) -> np.ndarray:
    """Return what a wolf sees: its cell, then the offsets of all prey and of the other wolves."""
    here = np.array(board.hunters[me])
    others = [cell for number, cell in enumerate(board.hunters) if number != me]
    offsets = [np.array(cell) - here for cell in (*board.prey, *others)]
    return np.concatenate([here, *offsets]) / 10


def prey_error(networks, targets, before, after, actions, discount, size=10) -> float:
    """Return the sum of the squared errors of all prey.

    A prey that is captured gets -1 and no more. One that had been captured before the step did not
    know where it was, so its action does not count.
    """
    total = 0.0
    for me, action in enumerate(actions):
        if before.captured[me]:
            continue
        value = mlp(networks[me], patch(before, me, size))[action]
        target = -1.0
        if not after.captured[me]:
            target = discount * max(mlp(targets[me], patch(after, me, size)))
        total += float(value - target) ** 2
    return total


def wolf_error(networks, targets, before, after, actions, rewards, discount) -> float:
    """Return the sum of the squared errors of all wolves."""
    total = 0.0
    for me, action in enumerate(actions):
        value = mlp(networks[me], wolf_inputs(before, me))[action]
        target = rewards[me] + discount * max(mlp(targets[me], wolf_inputs(after, me)))
        total += float(value - target) ** 2
    return total


def hunter_error(q_values, next_q_values, actions, rewards, present, discount) -> float:
    """Return the mean squared error of the hunters that are present."""
    errors = []
    for me in np.flatnonzero(present):
        target = rewards[me] + discount * max(next_q_values[me])
        errors.append((q_values[me][actions[me]] - target) ** 2)
    return float(np.mean(errors))
