"""The agent model: what the others will do next (paper: section 4.2, Eq. 8)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from dropin.models.layers import MLP


class AgentModel(eqx.Module):
    """A relational forward model over the type vectors of all agents, the learner included.

    Every agent gets the sum of a message from every other agent, and from that and its own type
    vector an embedding, and from that the logits of its next action.
    """

    message: MLP
    node: MLP
    readout: MLP

    def __init__(
        self,
        types: int,
        hidden: int,
        embedding: int,
        readout: int,
        actions: int,
        *,
        key: PRNGKeyArray,
    ):
        one, two, three = jax.random.split(key, 3)
        self.message = MLP([2 * types, hidden, embedding], key=one)
        self.node = MLP([types + embedding, hidden, embedding], key=two)
        self.readout = MLP([embedding, readout, actions], key=three)

    def __call__(
        self, types: Float[Array, "slot type"], present: Bool[Array, " slot"]
    ) -> Float[Array, "slot action"]:
        """The logits of each agent's next action."""
        received = self._received(types, present)
        return self.readout(self.node.of_parts([types, received]))

    def _received(
        self, types: Float[Array, "slot type"], present: Bool[Array, " slot"]
    ) -> Float[Array, "slot embedding"]:
        """The sum of the messages to each agent.

        The last layer of the message is linear, so it is applied to the sum of its inputs and not
        to every message.
        """
        first, last = self.message.layers
        width = types.shape[1]
        sent = types @ first.weight[:width]
        heard = types @ first.weight[width:] + first.bias[None]
        hidden = jax.nn.relu(sent[None, :] + heard[:, None])  # [receiver, sender, hidden]
        senders = present[None, :] & ~jnp.eye(types.shape[0], dtype=bool)
        total = jnp.sum(jnp.where(senders[:, :, None], hidden, 0.0), axis=1)
        count = jnp.sum(senders, axis=1, dtype=types.dtype)
        return total @ last.weight + count[:, None] * last.bias[None]


def action_chances(logits: Float[Array, "slot action"]) -> Float[Array, "slot action"]:
    """q(a^j | s) for every agent; the joint probability is their product (Eq. 8)."""
    return jax.nn.softmax(logits, axis=-1)
