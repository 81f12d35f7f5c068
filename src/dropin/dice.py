"""The random numbers of a step, drawn at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
TAG = 0x64696365
"""Keeps the numbers apart from those that `jax.random` makes of the same key."""


def threefry(
    key: UInt32[Array, " 2"], x: UInt32[Array, " n"], y: UInt32[Array, " n"]
) -> UInt32[Array, "2 n"]:
    """Threefry-2x32 with 20 rounds (Salmon et al., 2011) of the counters (x, y).

    The same function as behind `jax.random`, which on the CPU runs it as a loop over arrays.
    Written out in a straight line it is one pass without intermediate arrays, and much faster.
    """
    keys = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY))
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x = x + y
            y = ((y << rotation) | (y >> (32 - rotation))) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return jnp.stack([x, y])


class Dice:
    """Hands out random numbers of one key, in the order they are asked for.

    Every call of a `jax.random` function costs far more than the numbers it gives when these are
    few, so a block is drawn at once and this object counts what has been used of it. It lives
    only while a function is traced: make it from a key inside the function that needs it.

    >>> dice = Dice(jax.random.key(0))
    >>> dice.uniform(2, 3).shape
    (2, 3)
    """

    def __init__(self, key: PRNGKeyArray, block: int = 64, used: int = 0):
        self._key = key
        self._block = block + block % 2
        self._blocks: list[UInt32[Array, " block"]] = []
        self._used = used

    def key(self) -> PRNGKeyArray:
        """A key that nothing else is drawn from."""
        return jax.random.wrap_key_data(self.bits(2))

    def again(self) -> "Dice":
        """Dice that give the numbers to come a second time.

        For two computations of which only one is used in the end.
        """
        copy = Dice(self._key, self._block)
        copy._blocks, copy._used = self._blocks, self._used  # blocks, once drawn, are shared
        return copy

    @property
    def used(self) -> int:
        """How many numbers have been handed out."""
        return self._used

    def bits(self, *shape: int) -> UInt32[Array, "..."]:
        """Uniform 32-bit numbers."""
        number = 1
        for length in shape:
            number *= length
        first, self._used = self._used, self._used + number
        while len(self._blocks) * self._block < self._used:
            self._blocks.append(self._draw(len(self._blocks)))
        drawn = self._blocks[0] if len(self._blocks) == 1 else jnp.concatenate(self._blocks)
        return drawn[first : self._used].reshape(shape)

    def _draw(self, number: int) -> UInt32[Array, " block"]:
        half = self._block // 2
        count = jnp.arange(half, dtype=jnp.uint32) + jnp.uint32(number * half)
        key = jax.random.key_data(self._key)
        return threefry(key, count, jnp.full_like(count, TAG)).reshape(-1)

    def uniform(self, *shape: int) -> Float[Array, "..."]:
        """Uniform on [0, 1)."""
        return (self.bits(*shape) >> 8).astype(jnp.int32).astype(jnp.float32) * jnp.float32(2**-24)

    def integers(
        self, low: int | Int[Array, ""], high: int | Int[Array, ""], *shape: int
    ) -> Int[Array, "..."]:
        """Uniform on low..high, both included."""
        return low + scale(self.uniform(*shape), jnp.asarray(high - low + 1, jnp.int32))


def scale(chance: Float[Array, "*n"], number: Int[Array, "*#n"]) -> Int[Array, "*n"]:
    """A uniform number in [0, 1) as one of 0..number-1."""
    return (chance * number.astype(jnp.float32)).astype(jnp.int32)


def pick(chances: Float[Array, "*n option"], chance: Float[Array, "*n"]) -> Int[Array, "*n"]:
    """One of several options with these chances, by a uniform number in [0, 1)."""
    up_to = jnp.zeros_like(chance)
    picked = last = jnp.zeros(chance.shape, jnp.int32)
    for option in range(chances.shape[-1]):
        up_to = up_to + chances[..., option]
        picked = picked + (up_to <= chance).astype(jnp.int32)
        # The chances may add up to a little less than one.
        last = jnp.where(chances[..., option] > 0, option, last)
    return jnp.minimum(picked, last)
