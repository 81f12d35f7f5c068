"""Message passing between the nodes of a graph: complete, or a star around the learner."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin._xla.rows import matmul_rows
from dropin.models import tape
from dropin.models.layers import MLP, Linear, affine

__all__ = ["GraphKind", "RelationalBlock"]

GraphKind = Literal["complete", "star"]
"""Which nodes are joined: all of them, or each one with node 0, the learner."""


class RelationalBlock(eqx.Module):
    """A block of a relational forward model (Tacchetti et al., 2019).

    Each node receives a message from every node that it is joined with. The sum of the messages and
    the node's own vector give its new vector.

    Args:
        input_size: Size of the vector of a node.
        hidden_size: Size of the hidden layer of both networks.
        output_size: Size of a message and of the new vector of a node.
        keys: Random keys for the initial weights of the message and the node network.
        graph: Which nodes are joined.
    """

    message: MLP
    """From the vectors of sender and receiver, in this order, to a message."""
    node: MLP
    """From the vector of a node and the sum of its messages to its new vector."""
    graph: GraphKind = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        output_size: int,
        *,
        keys: tuple[PRNGKeyArray, PRNGKeyArray],
        graph: GraphKind = "complete",
    ):
        self.message = MLP([2 * input_size, hidden_size, output_size], key=keys[0])
        self.node = MLP([input_size + output_size, hidden_size, output_size], key=keys[1])
        self.graph = graph

    def __call__(
        self,
        nodes: Float[Array, "node input"],
        present: Bool[Array, " node"],
        receivers: Int[Array, " receiver"] | None = None,
    ) -> Float[Array, "receiver output"]:
        """Return the new vectors of the nodes.

        Args:
            nodes: The vector of each node.
            present: Which nodes send messages.
            receivers: Indices of the nodes whose new vectors are computed; all nodes by default.

        Returns:
            One row per receiver, in the order of `receivers`. A node that is not present gets a
            row as well, computed from the messages of the nodes that are.
        """
        indices = jnp.arange(nodes.shape[0])
        receiver_indices = indices if receivers is None else receivers
        receiver_nodes = nodes if receivers is None else nodes[receivers]
        sends = present[None, :] & (receiver_indices[:, None] != indices[None])
        if self.graph == "star":
            sends = sends & ((receiver_indices == 0)[:, None] | (indices == 0)[None])
        is_star = self.graph == "star" and receivers is None
        messages = self._sum_messages(nodes, receiver_nodes, sends, is_star=is_star)
        return self.node.apply_to_parts([receiver_nodes, messages])

    def _sum_messages(
        self,
        nodes: Float[Array, "node input"],
        receiver_nodes: Float[Array, "receiver input"],
        sends: Bool[Array, "receiver node"],
        *,
        is_star: bool,
    ) -> Float[Array, "receiver output"]:
        """Return the sum of the messages to each receiver.

        The last layer of the message network is linear, so it is applied once to the sum of the
        hidden vectors and not to every message. In a star of all nodes the sums take as many
        operations as there are nodes.
        """
        first, last = self.message.layers
        size = nodes.shape[1]
        from_sender = tape.layer(matmul_rows, nodes, first.weight[:size])
        from_receiver = tape.layer(affine, receiver_nodes, first.weight[size:], first.bias)
        total = jnp.zeros_like(from_receiver)
        senders = range(nodes.shape[0])
        if is_star:
            # Node 0 receives from all others; they receive from node 0 alone, below.
            hidden = jax.nn.relu(from_sender + from_receiver[:1])
            to_learner = jnp.sum(jnp.where(sends[0, :, None], hidden, 0.0), axis=0)
            total, senders = total.at[0].set(to_learner), [0]
        for sender in senders:  # One at a time: no array of all pairs is made.
            hidden = jax.nn.relu(from_sender[None, sender] + from_receiver)
            total = total + jnp.where(sends[:, sender, None], hidden, 0.0)
        num_messages = jnp.sum(sends, axis=1, dtype=nodes.dtype)
        return tape.layer(_sum_of_outputs, total, num_messages, last)


def _sum_of_outputs(
    total: Float[Array, "receiver hidden"], count: Float[Array, " receiver"], last: Linear
) -> Float[Array, "receiver output"]:
    """Return the sum of a layer's outputs, given the sum and the number of its inputs."""
    return matmul_rows(total, last.weight) + matmul_rows(count[:, None], last.bias[None])
