"""The networks that PPO trains for the guards or attackers of FortAttack."""

from functools import partial
from typing import TypeVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from dropin.games.fortattack.learned import FighterNetwork, NetworkInput, encode_view
from dropin.games.fortattack.observer import View

__all__ = ["ActorCritic"]

Tree = TypeVar("Tree")


class ActorCritic(eqx.Module):
    """The policy and the value function that agents in neighbouring slots share."""

    actor: FighterNetwork
    """Returns the logits of the actions."""
    critic: FighterNetwork
    """Returns the value, a single output."""
    slots: range = eqx.field(static=True)
    """The slots of the agents, all of one side."""

    @classmethod
    def init(cls, slots: range, key: PRNGKeyArray) -> "ActorCritic":
        """Initialise the networks of some agents.

        Args:
            slots: The slots of the agents.
            key: A random key for the initial weights.
        """
        actor_key, critic_key = jax.random.split(key)
        return cls(FighterNetwork(key=actor_key), FighterNetwork(1, key=critic_key), slots)

    def value(self, inputs: NetworkInput) -> Float[Array, "*n"]:
        """Return the value of what each agent sees."""
        return self.critic(inputs)[..., 0]

    def rows(self, tree: Tree) -> Tree:
        """Return the rows of the agents, from arrays with leading axes [env, slot]."""
        first, last = self.slots.start, self.slots.stop
        return jax.tree.map(lambda leaf: jax.lax.slice_in_dim(leaf, first, last, axis=1), tree)

    def inputs(self, views: View, sides: tuple[int, ...]) -> NetworkInput:
        """Return the inputs of the networks for each agent.

        Args:
            views: The views of all agents, with leading axes [env, slot].
            sides: The side of every slot.

        Returns:
            The inputs, with leading axes [env, agent].
        """
        encode = partial(encode_view, sides=sides, side=sides[self.slots.start])
        return jax.vmap(jax.vmap(encode))(self.rows(views))
