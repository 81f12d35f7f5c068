"""Layers: linear, multilayer perceptron (MLP) and LSTM.

Weights have shape [input, output], so that a layer computes `x @ weight + bias`.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from dropin._xla.random import subkeys, uniform
from dropin._xla.rows import add_row, matmul_rows, sum_rows
from dropin.models import tape

__all__ = ["LSTM", "MLP", "LSTMState", "Linear", "affine", "init_weights"]


def init_weights(
    key: PRNGKeyArray, bound: float, input_size: int, output_size: int
) -> tuple[Float[Array, "input output"], Float[Array, " output"]]:
    """Draw the initial weight matrix and bias of a layer, uniform in [-bound, bound).

    The number of samples drawn is rounded up to a power of two and the surplus is dropped. This
    decides nothing but the bits that a seed gives.

    Args:
        key: A random key.
        bound: Largest absolute value.
        input_size: Number of inputs of the layer.
        output_size: Number of outputs of the layer.

    Returns:
        The weight matrix and the bias.
    """
    num_samples = 1 << ((input_size + 1) * output_size - 1).bit_length()
    samples = uniform(key, (num_samples,), minval=-bound, maxval=bound)
    used = (input_size + 1) * output_size
    if isinstance(samples, Tracer):
        rows = samples[:used].reshape(input_size + 1, output_size)
        return rows[:-1], rows[-1]
    # Cut out by NumPy: no program has to be compiled.
    rows = np.asarray(samples)[:used].reshape(input_size + 1, output_size)
    return jax.device_put(rows[:-1]), jax.device_put(rows[-1])


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
        return tape.layer(affine, x, self.weight, self.bias)


def affine(
    x: Float[Array, "*n input"], weight: Float[Array, "input output"], bias: Float[Array, " output"]
) -> Float[Array, "*n output"]:
    """Return `x @ weight + bias`.

    Args:
        x: Rows of inputs.
        weight: The weights.
        bias: The bias, one entry per output.
    """
    return add_row(matmul_rows(x, weight), bias)


class MLP(eqx.Module):
    """A multilayer perceptron: linear layers with a ReLU between them, and none after the last.

    Args:
        sizes: Number of inputs, then the number of outputs of each layer.
        key: A random key for the initial weights.
    """

    layers: tuple[Linear, ...]

    def __init__(self, sizes: Sequence[int], *, key: PRNGKeyArray):
        keys = subkeys(key, len(sizes) - 1)
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
        return self.after_first_layer(tape.layer(_affine_of_parts, tuple(parts), first))

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


def _affine_of_parts(
    parts: Sequence[Float[Array, "..."]], first: Linear
) -> Float[Array, "*n output"]:
    """Apply a layer to the concatenation of arrays, as the sum of a product for each."""
    products, start = [], 0
    for part in parts:
        products.append(matmul_rows(part, first.weight[start : start + part.shape[-1]]))
        start += part.shape[-1]
    return add_row(sum(products[1:], products[0]), first.bias)


class LSTMState(eqx.Module):
    """The recurrent state of an LSTM, one row per slot."""

    hidden: Float[Array, "*n slot hidden"]
    cell: Float[Array, "*n slot hidden"]

    def where_not(self, reset: Bool[Array, "*n slot"]) -> "LSTMState":
        """Return the state with zeros in the rows that are reset."""
        return jax.tree.map(lambda rows: jnp.where(reset[..., None], 0.0, rows), self)


class LSTMGates(eqx.Module):
    """The gates of an LSTM after their activation functions."""

    input: Float[Array, "*n slot hidden"]
    forget: Float[Array, "*n slot hidden"]
    candidate: Float[Array, "*n slot hidden"]
    output: Float[Array, "*n slot hidden"]

    @classmethod
    def of(cls, products: Float[Array, "*n slot gates"]) -> "LSTMGates":
        """Apply the activation functions to the product of inputs and weights."""
        input_gate, forget_gate, candidate, output_gate = jnp.split(products, 4, axis=-1)
        return cls(
            jax.nn.sigmoid(input_gate),
            jax.nn.sigmoid(forget_gate),
            jnp.tanh(candidate),
            jax.nn.sigmoid(output_gate),
        )

    def step(self, cell: Float[Array, "*n slot hidden"]) -> LSTMState:
        """Return the state that follows a cell state."""
        cell = self.forget * cell + self.input * self.candidate
        return LSTMState(self.output * jnp.tanh(cell), cell)


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
        gates = LSTMGates.of(inputs @ self.weight + self.bias[None])
        following = gates.step(state.cell)
        tape.keep((gates, following))
        return following

    def over_time(
        self,
        x: Float[Array, "time *n slot input"],
        state: LSTMState,
        reset: Bool[Array, "time *n slot"],
    ) -> tuple[Float[Array, "time *n slot hidden"], LSTMState]:
        """Return the hidden states of several time steps.

        The inputs of all steps are multiplied at once. If the steps have been recorded one by one,
        nothing is computed.

        Args:
            x: The inputs.
            state: The state before the first step.
            reset: Which rows are reset to zero before each step.

        Returns:
            The hidden states, and the state after the last step.
        """
        recorded = tape.replayed()
        if recorded is not None:
            gates, states = recorded
            hidden = _recorded_states(self.weight, self.bias, x, state, reset, gates, states)
            return hidden, jax.tree.map(lambda rows: rows[-1], states)
        size = x.shape[-1]
        products = affine(x, self.weight[:size], self.bias)

        def step(
            state: LSTMState, inputs: tuple[Float[Array, "*n slot gates"], Bool[Array, "*n slot"]]
        ) -> tuple[LSTMState, Float[Array, "*n slot hidden"]]:
            product, reset = inputs
            state = state.where_not(reset)
            following = LSTMGates.of(product + state.hidden @ self.weight[size:]).step(state.cell)
            return following, following.hidden

        state, hidden = jax.lax.scan(step, state, (products, reset), unroll=_unroll(len(x)))
        return hidden, state


def _unroll(steps: int) -> int:
    """Return how many steps of a recurrent loop to unroll: all, unless there are many."""
    return min(steps, 8)


@jax.custom_vjp
def _recorded_states(
    weight: Float[Array, "input_and_hidden gates"],
    bias: Float[Array, " gates"],
    x: Float[Array, "time *n slot input"],
    state: LSTMState,
    reset: Bool[Array, "time *n slot"],
    gates: LSTMGates,
    states: LSTMState,
) -> Float[Array, "time *n slot hidden"]:
    """Return recorded hidden states, with the derivative of the steps that computed them."""
    del weight, bias, x, state, reset, gates
    return states.hidden


def _recorded_states_forward(*args: PyTree) -> tuple[Float[Array, "time *n slot hidden"], PyTree]:
    return args[-1].hidden, args


def _recorded_states_backward(args: PyTree, hidden_bar: Float[Array, "..."]) -> tuple[PyTree, ...]:
    """Go back step by step for the states alone; then one product each for inputs and weights."""
    weight, bias, x, state, reset, gates, states = args
    size = x.shape[-1]
    before = jax.tree.map(
        lambda first, rows: jnp.concatenate([first[None], rows[:-1]]), state, states
    ).where_not(reset)

    def step(state_bar: LSTMState, row: PyTree) -> tuple[LSTMState, Float[Array, "*n slot gates"]]:
        hidden_bar, reset, gates, cell_before, cell = row
        i, f, g, o = gates.input, gates.forget, gates.candidate, gates.output
        tanh_cell, hidden_bar = jnp.tanh(cell), hidden_bar + state_bar.hidden
        cell_bar = state_bar.cell + hidden_bar * o * (1 - tanh_cell**2)
        products_bar = jnp.concatenate(
            [
                cell_bar * g * i * (1 - i),
                cell_bar * cell_before * f * (1 - f),
                cell_bar * i * (1 - g**2),
                hidden_bar * tanh_cell * o * (1 - o),
            ],
            axis=-1,
        )
        earlier = LSTMState(products_bar @ weight[size:].T, cell_bar * f)
        return earlier.where_not(reset), products_bar

    rows = (hidden_bar, reset, gates, before.cell, states.cell)
    last = jax.tree.map(jnp.zeros_like, state)
    state_bar, products_bar = jax.lax.scan(step, last, rows, reverse=True, unroll=_unroll(len(x)))
    products_bar = products_bar.reshape(-1, len(bias))
    inputs = jnp.concatenate([x, before.hidden], axis=-1).reshape(-1, len(weight))
    weight_bar, bias_bar = inputs.T @ products_bar, sum_rows(products_bar)
    x_bar = (products_bar @ weight[:size].T).reshape(x.shape)
    return weight_bar, bias_bar, x_bar, state_bar, None, None, None


_recorded_states.defvjp(_recorded_states_forward, _recorded_states_backward)
