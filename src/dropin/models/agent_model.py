"""The agent model: predictions of the agents' next actions (section 4.2 of the paper, Eq. 8)."""

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from dropin._xla.random import subkeys
from dropin.models.layers import MLP
from dropin.models.relational import GraphKind, RelationalBlock

__all__ = ["AgentModel", "action_probs"]


class AgentModel(eqx.Module):
    """A relational forward model over the type vectors of all agents, the learner included.

    A relational block computes an embedding of each agent, and the readout network turns each
    embedding into the logits of that agent's next action.

    Args:
        type_size: Size of a type vector.
        hidden_size: Size of the hidden layers of the relational block.
        embedding_size: Size of an embedding.
        readout_size: Size of the hidden layer of the readout network.
        num_actions: Number of actions.
        graph: Which agents send messages to one another.
        key: A random key for the initial weights.
    """

    block: RelationalBlock
    readout: MLP

    def __init__(
        self,
        type_size: int,
        hidden_size: int,
        embedding_size: int,
        readout_size: int,
        num_actions: int,
        graph: GraphKind = "complete",
        *,
        key: PRNGKeyArray,
    ):
        message_key, node_key, readout_key = subkeys(key, 3)
        self.block = RelationalBlock(
            type_size, hidden_size, embedding_size, keys=(message_key, node_key), graph=graph
        )
        self.readout = MLP([embedding_size, readout_size, num_actions], key=readout_key)

    def __call__(
        self, type_vectors: Float[Array, "slot type"], present: Bool[Array, " slot"]
    ) -> Float[Array, "slot action"]:
        """Return the logits of each agent's next action.

        Args:
            type_vectors: The type vector of each slot.
            present: Which slots hold an agent. Empty slots influence no other slot, and their own
                logits mean nothing.
        """
        return self.readout(self.block(type_vectors, present))


def action_probs(logits: Float[Array, "slot action"]) -> Float[Array, "slot action"]:
    """Return the action probabilities q(a^j | s) of each agent j (Eq. 8).

    The model assumes that agents choose independently: the probability of a joint action is the
    product over agents.

    Args:
        logits: Output of the agent model.
    """
    return jax.nn.softmax(logits, axis=-1)
