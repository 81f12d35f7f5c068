"""Layers."""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


def draw_weights(
    key: PRNGKeyArray, bound: float, inputs: int, outputs: int
) -> tuple[Float[Array, "input output"], Float[Array, " output"]]:
    """Weights and a bias that are uniform within a bound.

    As many numbers as a power of two are drawn, of which the first are used, so that a network with
    many sizes of layers compiles few programs.
    """
    enough = 1 << ((inputs + 1) * outputs - 1).bit_length()
    drawn = jax.random.uniform(key, (enough,), minval=-bound, maxval=bound)
    return _cut(drawn, inputs, outputs)


@partial(jax.jit, static_argnums=(1, 2))
def _cut(
    drawn: Float[Array, " number"], inputs: int, outputs: int
) -> tuple[Float[Array, "input output"], Float[Array, " output"]]:
    rows = drawn[: (inputs + 1) * outputs].reshape(inputs + 1, outputs)
    return rows[:-1], rows[-1]


class Linear(eqx.Module):
    """x W + b, with W and b uniform within 1 / sqrt(inputs) at the start."""

    weight: Float[Array, "input output"]
    bias: Float[Array, " output"]

    def __init__(self, inputs: int, outputs: int, *, key: PRNGKeyArray):
        self.weight, self.bias = draw_weights(key, inputs**-0.5, inputs, outputs)

    def __call__(self, x: Float[Array, "*n input"]) -> Float[Array, "*n output"]:
        """The layer's output."""
        return x @ self.weight + jnp.expand_dims(self.bias, range(x.ndim - 1))


class MLP(eqx.Module):
    """Linear layers with a ReLU between them."""

    layers: tuple[Linear, ...]

    def __init__(self, sizes: Sequence[int], *, key: PRNGKeyArray):
        keys = jax.random.split(key, len(sizes) - 1)
        pairs = zip(sizes[:-1], sizes[1:], keys, strict=True)
        self.layers = tuple(Linear(inputs, outputs, key=k) for inputs, outputs, k in pairs)

    def __call__(self, x: Float[Array, "*n input"]) -> Float[Array, "*n output"]:
        """The last layer's output."""
        return self.after_first(self.layers[0](x))

    def of_parts(self, parts: Sequence[Float[Array, "..."]]) -> Float[Array, "..."]:
        """The output for the concatenation of `parts`, which may broadcast against one another.

        The first layer is applied to each part alone and the results are added: in a network over
        pairs of agents every agent is multiplied once, not once a partner.
        """
        first = self.layers[0]
        ends = [0]
        for part in parts:
            ends.append(ends[-1] + part.shape[-1])
        total = jnp.expand_dims(first.bias, range(parts[0].ndim - 1))
        for part, start, end in zip(parts, ends[:-1], ends[1:], strict=True):
            total = total + part @ first.weight[start:end]
        return self.after_first(total)

    def after_first(self, x: Float[Array, "*n hidden"]) -> Float[Array, "*n output"]:
        """The layers that follow the first one, given its output."""
        for layer in self.layers[1:]:
            x = layer(jax.nn.relu(x))
        return x


class LSTMState(eqx.Module):
    """Hidden and cell state, one row a slot."""

    hidden: Float[Array, "slot unit"]
    cell: Float[Array, "slot unit"]


class LSTM(eqx.Module):
    """The standard LSTM with a forget gate; input and hidden state go through one product."""

    weight: Float[Array, "both gates"]
    bias: Float[Array, " gates"]

    def __init__(self, inputs: int, units: int, *, key: PRNGKeyArray):
        self.weight, self.bias = draw_weights(key, units**-0.5, inputs + units, 4 * units)

    def start(self, slots: int) -> LSTMState:
        """The state of those who have just arrived: zero."""
        zero = jnp.zeros((slots, self.bias.shape[0] // 4), self.bias.dtype)
        return LSTMState(zero, zero)

    def __call__(self, x: Float[Array, "slot input"], state: LSTMState) -> LSTMState:
        """One step."""
        both = jnp.concatenate([x, state.hidden], axis=1)
        gates = both @ self.weight + self.bias[None]
        enter, forget, new, show = jnp.split(gates, 4, axis=1)
        cell = jax.nn.sigmoid(forget) * state.cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
        return LSTMState(jax.nn.sigmoid(show) * jnp.tanh(cell), cell)
