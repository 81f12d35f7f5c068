"""A replay buffer that is written and sampled inside compiled code."""

from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

__all__ = ["ReplayBuffer"]

Row = TypeVar("Row")

Indices = tuple[Int[Array, " batch"], Int[Array, " batch"]]
"""Rows and environments."""


class ReplayBuffer(eqx.Module, Generic[Row]):
    """A ring of rows, one for each step of all environments."""

    rows: Row
    """A pytree whose leaves have leading axes [row, env]."""
    added: Int[Array, ""]
    """Number of rows written so far."""
    capacity: int = eqx.field(static=True)
    """Number of rows that can be sampled: the newest ones."""

    @classmethod
    def create(cls, example: Row, capacity: int, spare_rows: int = 0) -> "ReplayBuffer[Row]":
        """Create an empty buffer.

        Args:
            example: A row [env, ...], as all that will be written; its values are kept in the last
                row, the one before the first.
            capacity: Number of rows that can be sampled.
            spare_rows: Rows that are kept besides, so that the row before the oldest is still there
                after a block of this many rows has been written.
        """

        def leaf(one: PyTree) -> Array:
            empty = jnp.zeros((capacity + spare_rows, *one.shape), one.dtype)
            return empty if isinstance(one, jax.ShapeDtypeStruct) else empty.at[-1].set(one)

        return cls(jax.tree.map(leaf, example), jnp.int32(0), capacity)

    @property
    def num_rows(self) -> int:
        """Number of rows, spare ones included."""
        return jax.tree.leaves(self.rows)[0].shape[0]

    @property
    def num_envs(self) -> int:
        """Number of environments in a row."""
        return jax.tree.leaves(self.rows)[0].shape[1]

    @property
    def num_bytes(self) -> int:
        """Size of all leaves in bytes."""
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.rows))

    @property
    def size(self) -> Int[Array, ""]:
        """Number of rows that can be sampled so far."""
        return jnp.minimum(self.added, self.capacity)

    def add(self, block: Row) -> "ReplayBuffer[Row]":
        """Write a block of rows [row, env, ...] in place of the oldest ones.

        The number of rows of a block has to divide the number of rows of the buffer.
        """
        number = jax.tree.leaves(block)[0].shape[0]
        first = self.added % self.num_rows
        rows = jax.tree.map(
            lambda ring, new: jax.lax.dynamic_update_slice_in_dim(ring, new, first, 0),
            self.rows,
            block,
        )
        return ReplayBuffer(rows, self.added + number, self.capacity)

    def sample_indices(self, key: PRNGKeyArray, batch_size: int) -> Indices:
        """Draw rows and environments uniformly among those that can be sampled.

        Args:
            key: A random key, used for nothing else.
            batch_size: Number of indices.
        """
        row_key, env_key = jax.random.split(key)
        age = jax.random.randint(row_key, (batch_size,), 1, self.size + 1)
        env = jax.random.randint(env_key, (batch_size,), 0, self.num_envs)
        return (self.added - age) % self.num_rows, env

    def sample(self, key: PRNGKeyArray, batch_size: int) -> Row:
        """Draw entries uniformly; leaves of the result have a leading axis [batch].

        Args:
            key: A random key, used for nothing else.
            batch_size: Number of entries.
        """
        return self[self.sample_indices(key, batch_size)]

    def sample_sequences(self, key: PRNGKeyArray, batch_size: int, length: int) -> Row:
        """Draw sequences of consecutive rows of one environment each.

        While the buffer holds fewer rows than a sequence has, sequences start with empty rows.

        Args:
            key: A random key, used for nothing else.
            batch_size: Number of sequences.
            length: Number of rows of a sequence.

        Returns:
            Entries with leading axes [batch, time], the oldest first.
        """
        age_key, env_key = jax.random.split(key)
        last = jnp.maximum(self.size, length) + 1
        age = jax.random.randint(age_key, (batch_size, 1), length, last)
        env = jax.random.randint(env_key, (batch_size, 1), 0, self.num_envs)
        row = (self.added - age + jnp.arange(length)[None]) % self.num_rows
        return jax.tree.map(lambda leaf: leaf[row, env], self.rows)

    def __getitem__(self, indices: Indices) -> Row:
        """Return the entries at these rows and environments."""
        return jax.tree.map(lambda leaf: leaf[indices], self.rows)
