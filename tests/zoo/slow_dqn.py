"""Squared TD errors of the learned prey, wolves and hunters of Wolfpack, in plain NumPy."""

import numpy as np
from slow_networks import mlp
from slow_prey import Board, patch, q_values


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


def recurrent_prey_error(networks, targets, rows, discount, size=10) -> float:
    """Return the sum of the squared errors of all prey with memory over a sequence of steps.

    Args:
        networks: The network of each prey.
        targets: The target network of each prey.
        rows: For each step the board, its time, the actions and the rewards of the prey. The first
            four steps are only remembered and the last is only what follows.
        discount: gamma.
        size: Rows and columns of the grid.
    """

    def values(network, me: int, last: int) -> np.ndarray:
        time = rows[last][1]
        frames = [
            patch(rows[last - back][0], me, size) if back <= time else np.zeros(3 * 9 * 17)
            for back in (4, 3, 2, 1, 0)
        ]
        return q_values(network, frames)

    total = 0.0
    for step in range(4, len(rows) - 1):
        board, _, actions, rewards = rows[step]
        following, next_time, _, _ = rows[step + 1]
        for me, action in enumerate(actions):
            # A new episode has started, or the prey did not know where it was.
            if next_time == 0 or board.captured[me]:
                continue
            target = rewards[me]
            if not following.captured[me]:
                target += discount * max(values(targets[me], me, step + 1))
            total += float(values(networks[me], me, step)[action] - target) ** 2
    return total
