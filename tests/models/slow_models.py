"""Networks computed with NumPy in double precision, one vector at a time."""

import numpy as np

from dropin.models.layers import MLP, Linear


def slow_relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def slow_linear(layer: Linear, x: np.ndarray) -> np.ndarray:
    return x @ np.asarray(layer.weight, float) + np.asarray(layer.bias, float)


def slow_mlp(network: MLP, *parts: np.ndarray) -> np.ndarray:
    """The output for the concatenation of `parts`."""
    x = np.concatenate([np.asarray(part, float) for part in parts])
    for number, layer in enumerate(network.layers):
        x = slow_linear(layer, slow_relu(x) if number else x)
    return x
