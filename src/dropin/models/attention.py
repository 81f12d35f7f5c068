"""Multi-head attention over agents (Vaswani et al., 2017)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from dropin.models.layers import MLP


class Attention(eqx.Module):
    """Every asker gets, for each head, the mean of what all who are present have to say.

    How much each of them counts is the softmax of the scaled products of the asker's query and
    their keys. Queries, keys and values come from networks of two layers; the first is shared by
    the heads.
    """

    query: MLP
    key: MLP
    value: MLP
    heads: int = eqx.field(static=True)

    def __init__(self, inputs: int, units: int, size: int, heads: int, *, key: PRNGKeyArray):
        self.query, self.key, self.value = (
            MLP([inputs, units, heads * size], key=each) for each in jax.random.split(key, 3)
        )
        self.heads = heads

    def __call__(
        self,
        askers: Float[Array, "asker input"],
        nodes: Float[Array, "node input"],
        present: Bool[Array, " node"],
    ) -> tuple[Float[Array, "asker output"], Float[Array, "head asker node"]]:
        """What the askers get, the heads one after another; and how much each node counts."""
        query, key, value = (
            net(rows).reshape(len(rows), self.heads, -1)
            for net, rows in ((self.query, askers), (self.key, nodes), (self.value, nodes))
        )
        scores = jnp.einsum("ahs,nhs->han", query, key) * query.shape[2] ** -0.5
        weights = masked_softmax(scores, present)
        # What the absent hold is of no account, whatever it is.
        value = jnp.where(present[:, None, None], value, 0.0)
        return jnp.einsum("han,nhs->ahs", weights, value).reshape(len(askers), -1), weights


def masked_softmax(
    scores: Float[Array, "*n node"], present: Bool[Array, " node"]
) -> Float[Array, "*n node"]:
    """The softmax among those present; the others count nothing. Zeros if there is nobody."""
    here = jnp.expand_dims(present, range(scores.ndim - 1))
    scores = jnp.where(here, scores, -jnp.inf)
    most = jnp.max(scores, axis=-1, keepdims=True)
    most = jax.lax.stop_gradient(jnp.where(jnp.isfinite(most), most, 0.0))
    shares = jnp.where(here, jnp.exp(jnp.where(here, scores, 0.0) - most), 0.0)
    total = jnp.sum(shares, axis=-1, keepdims=True)
    return shares / jnp.where(total > 0, total, 1.0)
