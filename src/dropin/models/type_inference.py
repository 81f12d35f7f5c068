"""Type inference: what behaviour so far says about an agent (paper: section 4.2, appendix C)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from dropin.models.layers import LSTM, Linear, LSTMState


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
        memory: LSTMState,
        agents: Float[Array, "slot feature"],
        shared: Float[Array, " shared"],
        arrived: Bool[Array, " slot"],
    ) -> tuple[Float[Array, "slot type"], LSTMState]:
        """Type vectors, and the memory afterwards; newcomers start from zero (Eq. 14)."""
        memory = jax.tree.map(lambda rows: jnp.where(arrived[:, None], 0.0, rows), memory)
        everybody = jnp.broadcast_to(shared[None], (agents.shape[0], shared.shape[0]))
        x = jnp.concatenate([agents, everybody], axis=1)
        memory = self.lstm(self.second(jax.nn.relu(self.first(x))), memory)
        return self.last(jax.nn.relu(memory.hidden)), memory
