"""What was lived through lately, to learn from again."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray


class Replay(eqx.Module):
    """The last so many steps of many environments."""

    rows: Any
    """A pytree; leaves are [time, env, ...]."""
    added: Int[Array, ""]
    """How many steps were added so far."""

    @classmethod
    def like(cls, row: Any, length: int) -> "Replay":
        """An empty one for rows like this, whose leaves are [env, ...]."""
        return cls(
            jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), row),
            jnp.int32(0),
        )

    @property
    def length(self) -> int:
        """How many steps it holds."""
        return jax.tree.leaves(self.rows)[0].shape[0]

    def add(self, row: Any) -> "Replay":
        """With one more step of all environments, in place of the oldest."""
        place = self.added % self.length
        rows = jax.tree.map(
            lambda kept, new: jax.lax.dynamic_update_index_in_dim(kept, new, place, 0),
            self.rows,
            row,
        )
        return Replay(rows, self.added + 1)

    def sample(self, key: PRNGKeyArray, number: int) -> Any:
        """So many rows, uniformly; leaves are [number, ...]."""
        envs = jax.tree.leaves(self.rows)[0].shape[1]
        times, which = jax.random.split(key)
        time = jax.random.randint(times, (number,), 0, jnp.minimum(self.added, self.length))
        env = jax.random.randint(which, (number,), 0, envs)
        return jax.tree.map(lambda leaf: leaf[time, env], self.rows)
