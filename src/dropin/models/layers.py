"""Layers: linear, multilayer perceptron (MLP) and LSTM.

Weights have shape [input, output], so that a layer computes `x @ weight + bias`.
"""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

__all__ = ["LSTM", "MLP", "LSTMState", "Linear", "init_weights"]


def init_weights(
    key: PRNGKeyArray, bound: float, input_size: int, output_size: int
) -> tuple[Float[Array, "input output"], Float[Array, " output"]]:
    """Draw the initial weight matrix and bias of a layer, uniform in [-bound, bound).

    The number of samples drawn is rounded up to a power of two and the surplus is dropped, so that
    networks with many different layer sizes compile only a few sampling programs.

    Args:
        key: A random key.
        bound: Largest absolute value.
        input_size: Number of inputs of the layer.
        output_size: Number of outputs of the layer.

    Returns:
        The weight matrix and the bias.
    """
    num_samples = 1 << ((input_size + 1) * output_size - 1).bit_length()
    samples = jax.random.uniform(key, (num_samples,), minval=-bound, maxval=bound)
    return _weight_and_bias(samples, input_size, output_size)


@partial(jax.jit, static_argnums=(1, 2))
def _weight_and_bias(
    samples: Float[Array, " sample"], input_size: int, output_size: int
) -> tuple[Float[Array, "input output"], Float[Array, " output"]]:
    """Cut the weight matrix and the bias out of a long vector, in one compiled program."""
    rows = samples[: (input_size + 1) * output_size].reshape(input_size + 1, output_size)
    return rows[:-1], rows[-1]


class Linear(eqx.Module):
    """An affine layer, `x @ weight + bias`.

    Weight and bias are initialised uniformly within 1 / sqrt(input_size).

    Args:
        input_size: Number of inputs.
        output_size: Number of outputs.
        key: A random key for the initial weights.
    """

    weight: Float[Array, "input output"]
    bias: Float[Array, " output"]

    def __init__(self, input_size: int, output_size: int, *, key: PRNGKeyArray):
        self.weight, self.bias = init_weights(key, input_size**-0.5, input_size, output_size)

    def __call__(self, x: Float[Array, "*n input"]) -> Float[Array, "*n output"]:
        """Apply the layer to the last axis of `x`."""
        return x @ self.weight + jnp.expand_dims(self.bias, range(x.ndim - 1))


class MLP(eqx.Module):
    """A multilayer perceptron: linear layers with a ReLU between them, and none after the last.

    Args:
        sizes: Number of inputs, then the number of outputs of each layer.
        key: A random key for the initial weights.
    """

    layers: tuple[Linear, ...]

    def __init__(self, sizes: Sequence[int], *, key: PRNGKeyArray):
        keys = jax.random.split(key, len(sizes) - 1)
        layer_sizes = zip(sizes[:-1], sizes[1:], keys, strict=True)
        self.layers = tuple(
            Linear(input_size, output_size, key=layer_key)
            for input_size, output_size, layer_key in layer_sizes
        )

    def __call__(self, x: Float[Array, "*n input"]) -> Float[Array, "*n output"]:
        """Apply the network to the last axis of `x`."""
        return self.after_first_layer(self.layers[0](x))

    def apply_to_parts(self, parts: Sequence[Float[Array, "..."]]) -> Float[Array, "..."]:
        """Apply the network to the concatenation of several arrays, without concatenating them.

        The first layer is applied to each part separately and the results are added. In a network
        over pairs of agents, each agent is then multiplied once, not once per partner.

        Args:
            parts: Arrays with the same number of axes. Their last axes add up to the input size;
                the other axes broadcast against one another.

        Returns:
            The output, with the broadcast leading axes of the parts.
        """
        first = self.layers[0]
        offsets = [0]
        for part in parts:
            offsets.append(offsets[-1] + part.shape[-1])
        total = jnp.expand_dims(first.bias, range(parts[0].ndim - 1))
        for part, start, end in zip(parts, offsets[:-1], offsets[1:], strict=True):
            total = total + part @ first.weight[start:end]
        return self.after_first_layer(total)

    def after_first_layer(self, x: Float[Array, "*n hidden"]) -> Float[Array, "*n output"]:
        """Apply all layers except the first.

        Args:
            x: Output of the first layer, before its ReLU.

        Returns:
            The output of the network.
        """
        for layer in self.layers[1:]:
            x = layer(jax.nn.relu(x))
        return x


class LSTMState(eqx.Module):
    """The recurrent state of an LSTM, one row per slot."""

    hidden: Float[Array, "slot hidden"]
    cell: Float[Array, "slot hidden"]


class LSTM(eqx.Module):
    """A standard LSTM cell with a forget gate.

    All four gates are computed by one matrix product of the concatenated input and hidden state.
    Weight and bias are initialised uniformly within 1 / sqrt(hidden_size).

    Args:
        input_size: Number of inputs.
        hidden_size: Size of the hidden state and of the cell state.
        key: A random key for the initial weights.
    """

    weight: Float[Array, "input_and_hidden gates"]
    """Rows: input, then hidden state. Columns: input gate, forget gate, candidate, output gate."""
    bias: Float[Array, " gates"]

    def __init__(self, input_size: int, hidden_size: int, *, key: PRNGKeyArray):
        self.weight, self.bias = init_weights(
            key, hidden_size**-0.5, input_size + hidden_size, 4 * hidden_size
        )

    def init_state(self, slots: int) -> LSTMState:
        """Return the state of agents that have just arrived: zeros.

        Args:
            slots: Number of slots.
        """
        zeros = jnp.zeros((slots, self.bias.shape[0] // 4), self.bias.dtype)
        return LSTMState(zeros, zeros)

    def __call__(self, x: Float[Array, "slot input"], state: LSTMState) -> LSTMState:
        """Return the state after one time step.

        Args:
            x: The input of each slot.
            state: The state before the step.
        """
        inputs = jnp.concatenate([x, state.hidden], axis=1)
        gates = inputs @ self.weight + self.bias[None]
        input_gate, forget_gate, candidate, output_gate = jnp.split(gates, 4, axis=1)
        remembered = jax.nn.sigmoid(forget_gate) * state.cell
        cell = remembered + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate)
        return LSTMState(jax.nn.sigmoid(output_gate) * jnp.tanh(cell), cell)
