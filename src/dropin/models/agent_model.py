"""The agent model: what the others will do next (paper: section 4.2, Eq. 8)."""

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from dropin.models.layers import MLP
from dropin.models.relational import Block


class AgentModel(eqx.Module):
    """A relational forward model over the type vectors of all agents, the learner included.

    A block gives each agent an embedding, and from that come the logits of its next action.
    """

    block: Block
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
        self.block = Block(types, hidden, embedding, keys=(one, two))
        self.readout = MLP([embedding, readout, actions], key=three)

    def __call__(
        self, types: Float[Array, "slot type"], present: Bool[Array, " slot"]
    ) -> Float[Array, "slot action"]:
        """The logits of each agent's next action."""
        return self.readout(self.block(types, present))


def action_chances(logits: Float[Array, "slot action"]) -> Float[Array, "slot action"]:
    """q(a^j | s) for every agent; the joint probability is their product (Eq. 8)."""
    return jax.nn.softmax(logits, axis=-1)
