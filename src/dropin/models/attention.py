"""Multi-head attention over agents (Vaswani et al., 2017)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from dropin._xla.random import subkeys
from dropin.models.layers import MLP

__all__ = ["Attention", "masked_softmax"]


class Attention(eqx.Module):
    """Scaled dot-product attention with several heads.

    Queries, keys and values come from networks with one hidden layer, which the heads share.

    Args:
        input_size: Size of the vector of a node.
        hidden_size: Size of the hidden layer of each of the three networks.
        head_size: Size of the queries, keys and values of one head.
        num_heads: Number of heads.
        key: A random key for the initial weights.
    """

    query: MLP
    key: MLP
    value: MLP
    num_heads: int = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        head_size: int,
        num_heads: int,
        *,
        key: PRNGKeyArray,
    ):
        self.query, self.key, self.value = (
            MLP([input_size, hidden_size, num_heads * head_size], key=network_key)
            for network_key in subkeys(key, 3)
        )
        self.num_heads = num_heads

    def __call__(
        self,
        query_nodes: Float[Array, "query input"],
        nodes: Float[Array, "node input"],
        present: Bool[Array, " node"],
    ) -> tuple[Float[Array, "query output"], Float[Array, "head query node"]]:
        """Attend from the query nodes to all nodes that are present.

        Args:
            query_nodes: The vectors of the nodes that attend.
            nodes: The vectors of the nodes that are attended to.
            present: Which of `nodes` are attended to; the others have no influence.

        Returns:
            For each query node the weighted mean of the values, the heads concatenated (zeros if
            no node is present), and the attention weights.
        """
        query, key, value = (
            network(rows).reshape(len(rows), self.num_heads, -1)
            for network, rows in (
                (self.query, query_nodes),
                (self.key, nodes),
                (self.value, nodes),
            )
        )
        scores = jnp.einsum("qhs,nhs->hqn", query, key) * query.shape[2] ** -0.5
        weights = masked_softmax(scores, present)
        # A weight of zero is not enough: the value of an absent node need not be finite.
        value = jnp.where(present[:, None, None], value, 0.0)
        output = jnp.einsum("hqn,nhs->qhs", weights, value).reshape(len(query_nodes), -1)
        return output, weights


def masked_softmax(
    scores: Float[Array, "*n node"], present: Bool[Array, " node"]
) -> Float[Array, "*n node"]:
    """Return the softmax over the nodes that are present, and 0 for all others.

    Values and gradients are finite whatever the scores of absent nodes are.

    Args:
        scores: Scores, with nodes on the last axis.
        present: Which nodes are present; if none is, the result is all zeros.

    >>> masked_softmax(jnp.zeros(3), jnp.array([True, False, True])).tolist()
    [0.5, 0.0, 0.5]
    """
    mask = jnp.expand_dims(present, range(scores.ndim - 1))
    scores = jnp.where(mask, scores, -jnp.inf)
    maximum = jnp.max(scores, axis=-1, keepdims=True)
    maximum = jax.lax.stop_gradient(jnp.where(jnp.isfinite(maximum), maximum, 0.0))
    exponentials = jnp.where(mask, jnp.exp(jnp.where(mask, scores, 0.0) - maximum), 0.0)
    total = jnp.sum(exponentials, axis=-1, keepdims=True)
    return exponentials / jnp.where(total > 0, total, 1.0)
