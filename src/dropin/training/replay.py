"""A replay of the newest transitions, written and drawn from inside compiled code."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.learners.base import Sight
from dropin.learners.joint import Transition

Tree = TypeVar("Tree")


class Moment(eqx.Module):
    """What is kept of a step: what was done, what that led to, and what was seen after it."""

    actions: Int[Array, "*n controlled"]
    rewards: Float[Array, "*n controlled"]
    out: Bool[Array, "*n controlled"]
    """Whom the game took out."""
    over: Bool[Array, "*n"]
    """Whether the episode is over."""
    after: Sight
    """What was seen next; if the episode is over, the first of the next one."""


class Replay(eqx.Module):
    """A ring of moments, a row for each step of all environments.

    What was seen before a step is what was seen after the one before it, in the row above, so that
    every observation is kept once.
    """

    moments: Moment
    """Leaves are [row, env, ...]."""
    rows: Int[Array, ""]
    """How many have been written."""
    capacity: int = eqx.field(static=True)
    """Rows of moments that can be drawn."""

    @classmethod
    def empty(cls, first: Moment, transitions: int, block: int) -> "Replay":
        """Room for at least so many transitions, of which a block of rows is written at a time.

        `first` [env, ...] is like all that will be written, and says what was seen at the start.
        """
        envs = first.over.shape[0]
        capacity = block * -(-transitions // (envs * block))
        rows = capacity + block

        def leaf(one: Array) -> Array:
            # The row above the first one is the last.
            return jnp.zeros((rows, *one.shape), one.dtype).at[-1].set(one)

        return cls(jax.tree.map(leaf, first), jnp.int32(0), capacity)

    @property
    def bytes(self) -> int:
        """Memory of it all."""
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.moments))

    @property
    def known(self) -> Int[Array, ""]:
        """Rows that can be drawn."""
        return jnp.minimum(self.rows, self.capacity)

    def add(self, block: Moment) -> "Replay":
        """The same with a block of rows [row, env, ...] more."""
        total, number = self.moments.over.shape[0], block.over.shape[0]
        here = self.rows % total
        moments = jax.tree.map(
            lambda ring, new: jax.lax.dynamic_update_slice_in_dim(ring, new, here, 0),
            self.moments,
            block,
        )
        return Replay(moments, self.rows + number, self.capacity)

    def sample(self, key: PRNGKeyArray, number: int) -> Transition:
        """So many transitions [number, ...]; each that is known has the same chance."""
        total, envs = self.moments.over.shape
        one, two = jax.random.split(key)
        back = jax.random.randint(one, (number,), 1, self.known + 1)
        row = (self.rows - back) % total
        env = jax.random.randint(two, (number,), 0, envs)
        moments = _drawn(self.moments, row, env)
        return Transition(
            before=_drawn(self.moments.after, (row - 1) % total, env),
            actions=moments.actions,
            rewards=moments.rewards,
            ended=moments.over[:, None] | moments.out,
            over=moments.over,
            after=moments.after,
        )


def _drawn(ring: Tree, row: Int[Array, " n"], env: Int[Array, " n"]) -> Tree:
    """Some rows of some environments."""
    return jax.tree.map(lambda leaf: leaf[row, env], ring)
