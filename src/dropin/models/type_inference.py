"""Type inference: what behaviour so far says about an agent (paper: section 4.2, appendix C)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from dropin.models.layers import LSTM, MLP, Linear, LSTMState

Recall = LSTMState | None
"""What a network of types remembers, if it has a memory."""


class TypeNetwork(eqx.Module):
    """Two layers, an LSTM and a layer, the same for every agent; the output is the type vector.

    Between the first two layers and after the LSTM there is a ReLU.
    """

    first: Linear
    second: Linear
    lstm: LSTM
    last: Linear

    def __init__(self, inputs: int, units: int, memory: int, outputs: int, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        self.first = Linear(inputs, units, key=keys[0])
        self.second = Linear(units, units, key=keys[1])
        self.lstm = LSTM(units, memory, key=keys[2])
        self.last = Linear(memory, outputs, key=keys[3])

    def start(self, slots: int) -> LSTMState:
        """The memory at the start of an episode."""
        return self.lstm.start(slots)

    def __call__(
        self,
        memory: Recall,
        agents: Float[Array, "slot feature"],
        shared: Float[Array, " shared"],
        arrived: Bool[Array, " slot"],
    ) -> tuple[Float[Array, "slot type"], LSTMState]:
        """Type vectors, and the memory afterwards; newcomers start from zero (Eq. 14)."""
        assert memory is not None
        kept = jax.tree.map(lambda rows: jnp.where(arrived[:, None], 0.0, rows), memory)
        x = self.second(jax.nn.relu(self.first(_together(agents, shared))))
        after = self.lstm(x, kept)
        return self.last(jax.nn.relu(after.hidden)), after


class Impression(eqx.Module):
    """The same without memory: a layer stands in the place of the LSTM.

    It serves those who train with partners of their own, of whom there is nothing to infer.
    """

    layers: MLP

    def __init__(self, inputs: int, units: int, memory: int, outputs: int, *, key: PRNGKeyArray):
        self.layers = MLP([inputs, units, units, memory, outputs], key=key)

    def start(self, slots: int) -> None:
        """There is no memory."""
        del slots

    def __call__(
        self,
        memory: Recall,
        agents: Float[Array, "slot feature"],
        shared: Float[Array, " shared"],
        arrived: Bool[Array, " slot"],
    ) -> tuple[Float[Array, "slot type"], None]:
        """Type vectors."""
        del memory, arrived
        return self.layers(_together(agents, shared)), None


def _together(
    agents: Float[Array, "slot feature"], shared: Float[Array, " shared"]
) -> Float[Array, "slot input"]:
    """What there is to see of each agent, and of all."""
    everybody = jnp.broadcast_to(shared[None], (agents.shape[0], shared.shape[0]))
    return jnp.concatenate([agents, everybody], axis=1)
