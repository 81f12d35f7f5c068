"""Random numbers: those of `jax.random`, faster on the CPU, and those of one step in one block."""

import math
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, UInt32

__all__ = [
    "StepRNG",
    "categorical",
    "sample_categorical",
    "split",
    "subkeys",
    "threefry",
    "uniform",
    "uniform_to_index",
]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_COUNTER_TAG = 0x64696365
"""Keeps the numbers distinct from those that `jax.random` draws from the same key."""


Words = TypeVar("Words", np.ndarray, Array)
"""An array of 32-bit words, of NumPy or of JAX."""


def threefry(key: Words, x: Words, y: Words) -> Words:
    """Return Threefry-2x32 with 20 rounds (Salmon et al., 2011) of the counters (x, y).

    `jax.random` uses the same function, but on the CPU runs it as a loop over arrays. Unrolled, it
    is a single pass without intermediate arrays, and much faster.

    Args:
        key: The two words of the key.
        x: The first word of each counter.
        y: The second word of each counter.

    Returns:
        The two words for each counter, [2, n], by NumPy if the arguments are NumPy arrays.
    """
    xp: Any = np if isinstance(x, np.ndarray) else jnp
    k: Any = key
    keys = (k[0], k[1], k[0] ^ k[1] ^ xp.uint32(_PARITY))
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << rotation) | (y >> (32 - rotation))) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + (keys[(group + 2) % 3] + xp.uint32(group + 1))
    return xp.stack([x, y])


def split(key: PRNGKeyArray, shape: int | tuple[int, ...] = 2) -> Key[Array, "..."]:
    """Return the keys that `jax.random.split` returns.

    On the CPU, JAX runs Threefry as a loop of many small operations; see `threefry`. Outside of
    compiled functions NumPy computes the keys, so that no program has to be compiled (`device_put`
    compiles none, `jnp.asarray` one for every shape).

    Args:
        key: A random key, used for nothing else.
        shape: How many keys, or the shape of the array of keys.
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if not _is_threefry(key):
        return jax.random.split(key, shape)
    words = _threefry_of_shape(key, shape)
    if isinstance(words, np.ndarray):
        data = jax.device_put(np.moveaxis(words, 0, -1))
    else:
        data = jnp.moveaxis(words, 0, -1)
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(key))


def subkeys(key: PRNGKeyArray, number: int = 2) -> tuple[PRNGKeyArray, ...]:
    """Return the keys that `jax.random.split` returns, one by one.

    Outside of compiled functions, taking a row of an array compiles a program. So functions that
    give each key to something else, such as a layer, call this and not `split`.

    Args:
        key: A random key, used for nothing else.
        number: How many keys.
    """
    if not _is_threefry(key) or isinstance(jax.random.key_data(key), Tracer):
        return tuple(split(key, number))
    words = np.asarray(_threefry_of_shape(key, (number,)))
    impl = jax.random.key_impl(key)
    return tuple(jax.random.wrap_key_data(jax.device_put(row), impl=impl) for row in words.T)


def uniform(
    key: PRNGKeyArray, shape: tuple[int, ...] = (), minval: float = 0.0, maxval: float = 1.0
) -> Float[Array, "..."]:
    """Return the 32-bit floats that `jax.random.uniform` returns.

    Outside of compiled functions NumPy computes them, and rounds as a compiled program does.

    Args:
        key: A random key, used for nothing else.
        shape: The shape of the result.
        minval: The smallest value.
        maxval: The upper bound, which is not reached.
    """
    if not _is_threefry(key):
        return jax.random.uniform(key, shape, minval=minval, maxval=maxval)
    words = _threefry_of_shape(key, shape)
    low, high = np.float32(minval), np.float32(maxval)
    if isinstance(words, np.ndarray):
        bits = ((words[0] ^ words[1]) >> 9) | np.uint32(0x3F800000)
        # A product and a sum are rounded once.
        scaled = (bits.view(np.float32) - np.float32(1)).astype(np.float64) * (high - low) + low
        return jax.device_put(np.maximum(low, scaled.astype(np.float32)))
    bits = ((words[0] ^ words[1]) >> 9) | jnp.uint32(0x3F800000)
    floats = jax.lax.bitcast_convert_type(bits, jnp.float32) - 1.0
    return jnp.maximum(low, floats * (high - low) + low)


def categorical(key: PRNGKeyArray, logits: Float[Array, "*n option"]) -> Int[Array, "*n"]:
    """Return what `jax.random.categorical` returns: options drawn with probability softmax(logits).

    Args:
        key: A random key, used for nothing else.
        logits: The logits of the options.
    """
    noise = uniform(key, logits.shape, minval=float(np.finfo(np.float32).tiny))
    return jnp.argmax(logits - jnp.log(-jnp.log(noise)), axis=-1)


def _is_threefry(key: PRNGKeyArray) -> bool:
    """Return whether keys and numbers are those of JAX's default generator."""
    is_default = str(jax.random.key_impl(key)) == "threefry2x32"
    return is_default and jax.config.values["jax_threefry_partitionable"]


def _threefry_of_shape(key: PRNGKeyArray, shape: tuple[int, ...]) -> np.ndarray | Array:
    """Return Threefry of the counters 0, 1, ... in an array of this shape, as [2, *shape]."""
    data = jax.random.key_data(key)
    if isinstance(data, Tracer):
        count = jnp.arange(math.prod(shape), dtype=jnp.uint32)
        return threefry(data, jnp.zeros_like(count), count).reshape(2, *shape)
    count = np.arange(math.prod(shape), dtype=np.uint32)
    with np.errstate(over="ignore"):
        return threefry(np.asarray(data), np.zeros_like(count), count).reshape(2, *shape)


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
