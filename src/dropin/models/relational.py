"""Message passing between all nodes of a graph, in small networks."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from dropin.models.layers import MLP


class Block(eqx.Module):
    """A block of a relational forward model.

    Every node gets the sum of a message from every other node, and from that and its own vector
    a new one.
    """

    message: MLP
    node: MLP

    def __init__(
        self, inputs: int, hidden: int, outputs: int, *, keys: tuple[PRNGKeyArray, PRNGKeyArray]
    ):
        self.message = MLP([2 * inputs, hidden, outputs], key=keys[0])
        self.node = MLP([inputs + outputs, hidden, outputs], key=keys[1])

    def __call__(
        self, nodes: Float[Array, "node input"], present: Bool[Array, " node"]
    ) -> Float[Array, "node output"]:
        """The new vector of each node; those who are not present send nothing."""
        return self.node.of_parts([nodes, self._received(nodes, present)])

    def _received(
        self, nodes: Float[Array, "node input"], present: Bool[Array, " node"]
    ) -> Float[Array, "node output"]:
        """The sum of the messages to each node.

        The last layer of the message is linear, so it is applied to the sum of its inputs and not
        to every message.
        """
        first, last = self.message.layers
        width = nodes.shape[1]
        sent = nodes @ first.weight[:width]
        heard = nodes @ first.weight[width:] + first.bias[None]
        hidden = jax.nn.relu(sent[None, :] + heard[:, None])  # [receiver, sender, hidden]
        senders = present[None, :] & ~jnp.eye(nodes.shape[0], dtype=bool)
        total = jnp.sum(jnp.where(senders[:, :, None], hidden, 0.0), axis=1)
        count = jnp.sum(senders, axis=1, dtype=nodes.dtype)
        return total @ last.weight + count[:, None] * last.bias[None]
