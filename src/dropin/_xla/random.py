"""The random numbers of one environment step, drawn in one block."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

__all__ = ["StepRNG", "sample_categorical", "threefry", "uniform_to_index"]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_COUNTER_TAG = 0x64696365
"""Keeps the numbers distinct from those that `jax.random` draws from the same key."""


def threefry(
    key: UInt32[Array, " 2"], x: UInt32[Array, " n"], y: UInt32[Array, " n"]
) -> UInt32[Array, "2 n"]:
    """Return Threefry-2x32 with 20 rounds (Salmon et al., 2011) of the counters (x, y).

    `jax.random` uses the same function, but on the CPU runs it as a loop over arrays. Unrolled, it
    is a single pass without intermediate arrays, and much faster.

    Args:
        key: The two words of the key.
        x: The first word of each counter.
        y: The second word of each counter.
    """
    keys = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << rotation) | (y >> (32 - rotation))) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return jnp.stack([x, y])


class StepRNG:
    """A source of random numbers from one key, which hands out each number once.

    A call of a `jax.random` function costs far more than the few numbers that a step needs from
    it. This class draws a block of numbers at once and counts how many of them have been used.
    `benchmarks/xla.py` measures the gain. An instance exists only while a function is traced:
    create it from a key inside the function that uses it.

    Args:
        key: A random key, used for nothing else.
        block: How many numbers to draw at a time, rounded up to an even number.
        used: How many of the first numbers to skip.

    >>> rng = StepRNG(jax.random.key(0))
    >>> rng.uniform(2, 3).shape
    (2, 3)
    >>> rng.used
    6
    """

    def __init__(self, key: PRNGKeyArray, block: int = 64, used: int = 0):
        self._key = key
        self._block = block + block % 2
        self._blocks: list[UInt32[Array, " block"]] = []
        self._used = used

    @property
    def used(self) -> int:
        """How many numbers have been handed out."""
        return self._used

    def fork(self) -> "StepRNG":
        """Return a copy that hands out the same numbers from here on.

        Use it for two computations of which only one result is kept.
        """
        copy = StepRNG(self._key, self._block)
        copy._blocks, copy._used = self._blocks, self._used  # Both add to the same blocks.
        return copy

    def bits(self, *shape: int) -> UInt32[Array, "..."]:
        """Draw uniform 32-bit numbers of this shape."""
        first, self._used = self._used, self._used + math.prod(shape)
        while not self._blocks or len(self._blocks) * self._block < self._used:
            self._blocks.append(self._draw_block(len(self._blocks)))
        drawn = self._blocks[0] if len(self._blocks) == 1 else jnp.concatenate(self._blocks)
        return drawn[first : self._used].reshape(shape)

    def uniform(self, *shape: int) -> Float[Array, "..."]:
        """Draw floats of this shape that are uniform on [0, 1)."""
        return (self.bits(*shape) >> 8).astype(jnp.int32).astype(jnp.float32) * jnp.float32(2**-24)

    def integers(
        self, low: int | Int[Array, ""], high: int | Int[Array, ""], *shape: int
    ) -> Int[Array, "..."]:
        """Draw integers of this shape that are uniform on low, ..., high, both included."""
        return low + uniform_to_index(self.uniform(*shape), jnp.asarray(high - low + 1, jnp.int32))

    def key(self) -> PRNGKeyArray:
        """Draw a key for `jax.random` functions or another `StepRNG`."""
        return jax.random.wrap_key_data(self.bits(2))

    def _draw_block(self, number: int) -> UInt32[Array, " block"]:
        half = self._block // 2
        count = jnp.arange(half, dtype=jnp.uint32) + jnp.uint32(number * half)
        key = jax.random.key_data(self._key)
        return threefry(key, count, jnp.full_like(count, _COUNTER_TAG)).reshape(-1)


def uniform_to_index(uniform: Float[Array, "*n"], number: Int[Array, "*#n"]) -> Int[Array, "*n"]:
    """Map uniform floats to uniform integers.

    Args:
        uniform: Floats that are uniform on [0, 1).
        number: How many integers there are.

    Returns:
        Integers that are uniform on 0, ..., number - 1.
    """
    return (uniform * number.astype(jnp.float32)).astype(jnp.int32)


def sample_categorical(
    probs: Float[Array, "*n option"], uniform: Float[Array, "*n"]
) -> Int[Array, "*n"]:
    """Draw one of several options, each with its probability.

    Args:
        probs: The probability of each option. An option of probability 0 is never drawn, even if
            rounding makes the sum a little less than 1.
        uniform: Floats that are uniform on [0, 1).

    Returns:
        The indices of the options drawn.
    """
    cumulative = jnp.zeros_like(uniform)
    index = last = jnp.zeros(uniform.shape, jnp.int32)
    for option in range(probs.shape[-1]):
        cumulative = cumulative + probs[..., option]
        index = index + (cumulative <= uniform).astype(jnp.int32)
        last = jnp.where(probs[..., option] > 0, option, last)
    return jnp.minimum(index, last)
