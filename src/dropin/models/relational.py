"""Message passing between all nodes of a graph, in small networks."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

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
        self,
        nodes: Float[Array, "node input"],
        present: Bool[Array, " node"],
        wanted: Int[Array, " wanted"] | None = None,
    ) -> Float[Array, "wanted output"]:
        """The new vector of each node, or of the wanted ones.

        Those who are not present send nothing.
        """
        number = jnp.arange(nodes.shape[0])
        who = number if wanted is None else wanted
        mine = nodes if wanted is None else nodes[wanted]
        senders = present[None, :] & (who[:, None] != number[None])
        return self.node.of_parts([mine, self._received(nodes, mine, senders)])

    def _received(
        self,
        nodes: Float[Array, "node input"],
        mine: Float[Array, "wanted input"],
        senders: Bool[Array, "wanted node"],
    ) -> Float[Array, "wanted output"]:
        """The sum of the messages to each node.

        The last layer of the message is linear, so it is applied to the sum of its inputs and not
        to every message.
        """
        first, last = self.message.layers
        width = nodes.shape[1]
        sent = nodes @ first.weight[:width]
        heard = mine @ first.weight[width:] + first.bias[None]
        total = jnp.zeros_like(heard)
        for sender in range(nodes.shape[0]):  # One after another: no array of all pairs is made.
            hidden = jax.nn.relu(sent[None, sender] + heard)
            total = total + jnp.where(senders[:, sender, None], hidden, 0.0)
        count = jnp.sum(senders, axis=1, dtype=nodes.dtype)
        return total @ last.weight + count[:, None] * last.bias[None]
