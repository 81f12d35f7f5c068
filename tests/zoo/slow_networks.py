"""Small pieces of neural networks and optimisers in plain NumPy, in double precision."""

from collections.abc import Callable

import numpy as np


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return the probabilities of one row of logits."""
    weights = np.exp(logits - np.max(logits))
    return weights / np.sum(weights)


def entropy(logits: np.ndarray) -> float:
    """Return the entropy of one row of logits."""
    return -sum(p * np.log(p) for p in softmax(logits))


def mlp(layers: list[tuple[np.ndarray, np.ndarray]], x: np.ndarray) -> np.ndarray:
    """Apply layers (weight, bias) to one row, with ReLU between them."""
    for number, (weight, bias) in enumerate(layers):
        x = np.maximum(x, 0) if number else x
        x = np.array([x @ column for column in weight.T]) + bias
    return x


def layers_of(network, index: int | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the layers of an MLP, or of one of several that are stacked."""
    pick = slice(None) if index is None else index
    return [
        (np.asarray(layer.weight, np.float64)[pick], np.asarray(layer.bias, np.float64)[pick])
        for layer in network.layers
    ]


def gradient(loss: Callable[[np.ndarray], float], x: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """Return the gradient of a function of a vector, by central differences."""
    result = np.zeros_like(x)
    for index in range(x.size):
        high, low = x.copy(), x.copy()
        high[index] += eps
        low[index] -= eps
        result[index] = (loss(high) - loss(low)) / (2 * eps)
    return result


class Adam:
    """Adam (Kingma and Ba 2015) with clipped gradients and a learning rate along a cosine.

    The learning rate goes from `first` to `last` in `decay` steps.
    """

    def __init__(self, first: float, last: float, decay: int, max_norm: float):
        self.first, self.last, self.decay, self.max_norm = first, last, decay, max_norm
        self.steps, self.mean, self.square = 0, 0.0, 0.0
        self.norms: list[float] = []

    def step(self, x: np.ndarray, gradients: np.ndarray) -> np.ndarray:
        """Return the weights after a step."""
        norm = float(np.sqrt(np.sum(gradients * gradients)))
        self.norms.append(norm)
        if norm > self.max_norm:
            gradients = gradients * (self.max_norm / norm)
        phase = min(self.steps, self.decay) / self.decay
        rate = self.last + (self.first - self.last) * (1 + np.cos(np.pi * phase)) / 2
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradients
        self.square = 0.999 * self.square + 0.001 * gradients**2
        mean = self.mean / (1 - 0.9**self.steps)
        square = self.square / (1 - 0.999**self.steps)
        return x - rate * mean / (np.sqrt(square) + 1e-8)
