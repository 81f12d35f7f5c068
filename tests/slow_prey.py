"""What prey see, and the network of those with memory, in plain NumPy and double precision."""

from dataclasses import dataclass

import numpy as np

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


def convolve(image: np.ndarray, weight: np.ndarray, bias: np.ndarray, kernel: int) -> np.ndarray:
    """Return a convolution with stride 1 and no padding of an image [row, column, channel]."""
    rows, columns = image.shape[0] - kernel + 1, image.shape[1] - kernel + 1
    weight = weight.reshape(kernel, kernel, image.shape[2], -1)
    result = np.zeros((rows, columns, len(bias)))
    for row in range(rows):
        for column in range(columns):
            for out in range(len(bias)):
                seen = image[row : row + kernel, column : column + kernel]
                result[row, column, out] = np.sum(seen * weight[..., out]) + bias[out]
    return result


def max_pool(image: np.ndarray, kernel: int) -> np.ndarray:
    """Return the largest value of each channel under a square kernel with stride 1."""
    rows, columns = image.shape[0] - kernel + 1, image.shape[1] - kernel + 1
    return np.array(
        [
            [
                image[row : row + kernel, column : column + kernel].max(axis=(0, 1))
                for column in range(columns)
            ]
            for row in range(rows)
        ]
    )


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def lstm(weight: np.ndarray, bias: np.ndarray, inputs: list[np.ndarray]) -> np.ndarray:
    """Return the hidden state after some inputs, from a zero state."""
    size = len(bias) // 4
    hidden, cell = np.zeros(size), np.zeros(size)
    for x in inputs:
        gates = np.concatenate([x, hidden]) @ weight + bias
        enter, forget, candidate, out = (gates[k * size : (k + 1) * size] for k in range(4))
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(candidate)
        hidden = sigmoid(out) * np.tanh(cell)
    return hidden


def q_values(network, frames: list[np.ndarray]) -> np.ndarray:
    """Return the action values of one prey.

    Args:
        network: Its network.
        frames: The last five frames, the oldest first, each [channel, 9, 17] as one row.
    """
    arrays = {
        name: (np.asarray(layer.weight, np.float64), np.asarray(layer.bias, np.float64))
        for name, layer in vars(network).items()
    }
    features = []
    for frame in frames:
        image = np.moveaxis(frame.reshape(3, 9, 17), 0, -1)
        image = max_pool(np.maximum(convolve(image, *arrays["first"], 4), 0), 3)
        image = max_pool(np.maximum(convolve(image, *arrays["second"], 2), 0), 2)
        features.append(image.ravel())
    weight, bias = arrays["readout"]
    return lstm(*arrays["lstm"], features) @ weight + bias
