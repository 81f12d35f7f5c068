"""Type inference: a type vector for each agent (section 4.2 and appendix C of the paper)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from dropin._xla.random import subkeys
from dropin.models.layers import LSTM, MLP, Linear, LSTMState

__all__ = ["FeedforwardTypeNetwork", "TypeMemory", "TypeNetwork"]

TypeMemory = LSTMState | None
"""The memory of a type network; None if the network is not recurrent."""


class TypeNetwork(eqx.Module):
    """A recurrent network that infers the type of each agent from its behaviour so far.

    Two linear layers with a ReLU between them, an LSTM, a ReLU and another linear layer, whose
    output is the type vector. All slots share the weights, and each has a memory of its own.

    Args:
        input_size: Number of agent features plus number of shared features.
        hidden_size: Size of the two layers before the LSTM.
        lstm_size: Size of the hidden state of the LSTM.
        output_size: Size of a type vector.
        key: A random key for the initial weights.
    """

    first: Linear
    second: Linear
    lstm: LSTM
    last: Linear

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        lstm_size: int,
        output_size: int,
        *,
        key: PRNGKeyArray,
    ):
        keys = subkeys(key, 4)
        self.first = Linear(input_size, hidden_size, key=keys[0])
        self.second = Linear(hidden_size, hidden_size, key=keys[1])
        self.lstm = LSTM(hidden_size, lstm_size, key=keys[2])
        self.last = Linear(lstm_size, output_size, key=keys[3])

    def init_memory(self, slots: int) -> LSTMState:
        """Return the memory at the start of an episode: zeros.

        Args:
            slots: Number of slots.
        """
        return self.lstm.init_state(slots)

    def __call__(
        self,
        memory: TypeMemory,
        agents: Float[Array, "slot feature"],
        shared: Float[Array, " shared"],
        arrived: Bool[Array, " slot"],
    ) -> tuple[Float[Array, "slot type"], LSTMState]:
        """Return the type vectors after one more observation.

        Args:
            memory: The memory after the previous observation, or that of `init_memory`.
            agents: The features x of each agent.
            shared: The shared features u.
            arrived: Which agents have just arrived. Their memory is reset to zero before it is
                used (Eq. 15, appendix C); nothing else resets it.

        Returns:
            The type vectors, and the memory to pass in with the next observation.
        """
        assert memory is not None
        x = self.second(jax.nn.relu(self.first(_append_shared(agents, shared))))
        state = self.lstm(x, memory.where_not(arrived))
        return self.last(jax.nn.relu(state.hidden)), state

    def over_time(
        self,
        memory: TypeMemory,
        agents: Float[Array, "time *n slot feature"],
        shared: Float[Array, "time *n shared"],
        arrived: Bool[Array, "time *n slot"],
    ) -> tuple[Float[Array, "time *n slot type"], LSTMState]:
        """Return the type vectors after each of several observations.

        Only the LSTM goes step by step; the other layers are applied to all steps at once.

        Args:
            memory: The memory before the first observation.
            agents: The features x of each agent.
            shared: The shared features u.
            arrived: Which agents have just arrived.

        Returns:
            The type vectors, and the memory after the last observation.
        """
        assert memory is not None
        x = self.second(jax.nn.relu(self.first(_append_shared(agents, shared))))
        hidden, memory = self.lstm.over_time(x, memory, arrived)
        return self.last(jax.nn.relu(hidden)), memory


class FeedforwardTypeNetwork(eqx.Module):
    """A type network without memory: the LSTM is replaced by a linear layer and a ReLU.

    For learners that train together with partners of their own, whose types need no inference. It
    is called in the same way as `TypeNetwork`.

    Args:
        input_size: Number of agent features plus number of shared features.
        hidden_size: Size of the first two layers.
        lstm_size: Size of the layer that replaces the LSTM.
        output_size: Size of a type vector.
        key: A random key for the initial weights.
    """

    layers: MLP

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        lstm_size: int,
        output_size: int,
        *,
        key: PRNGKeyArray,
    ):
        self.layers = MLP([input_size, hidden_size, hidden_size, lstm_size, output_size], key=key)

    def init_memory(self, slots: int) -> None:
        """Return None: there is no memory."""
        del slots

    def __call__(
        self,
        memory: TypeMemory,
        agents: Float[Array, "slot feature"],
        shared: Float[Array, " shared"],
        arrived: Bool[Array, " slot"],
    ) -> tuple[Float[Array, "slot type"], None]:
        """Return the type vectors for one observation.

        Args:
            memory: Not used.
            agents: The features x of each agent.
            shared: The shared features u.
            arrived: Not used.

        Returns:
            The type vectors, and None in place of a memory.
        """
        del memory, arrived
        return self.layers(_append_shared(agents, shared)), None

    def over_time(
        self,
        memory: TypeMemory,
        agents: Float[Array, "time *n slot feature"],
        shared: Float[Array, "time *n shared"],
        arrived: Bool[Array, "time *n slot"],
    ) -> tuple[Float[Array, "time *n slot type"], None]:
        """Return the type vectors for several observations.

        Args:
            memory: Not used.
            agents: The features x of each agent, at each step.
            shared: The shared features u, at each step.
            arrived: Not used.

        Returns:
            The type vectors, and None in place of a memory.
        """
        del memory, arrived
        return self.layers(_append_shared(agents, shared)), None


def _append_shared(
    agents: Float[Array, "*n slot feature"], shared: Float[Array, "*n shared"]
) -> Float[Array, "*n slot input"]:
    """Append the shared features to the features of each agent."""
    repeated = jnp.broadcast_to(shared[..., None, :], (*agents.shape[:-1], shared.shape[-1]))
    return jnp.concatenate([agents, repeated], axis=-1)
