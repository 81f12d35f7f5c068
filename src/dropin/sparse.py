"""Work for those who need it alone.

In a batch every row is worked out, also those whose result is thrown away, and a loop goes on until
its slowest row is done. `where_needed` works out the rows that are needed, a few at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool

LEAST = 8
"""So many rows are always worked out at a time."""


def where_needed(
    function: Callable[[Any, Any], Any],
    needed: Bool[Array, ""],
    given: Any,
    shared: Any = (),
    *,
    block: int = LEAST,
) -> Any:
    """`function(given, shared)` if it is needed, else zeros of the same shapes.

    `vmap` it over `needed` and `given`; what is `shared` by all rows is not copied for each. Both
    are pytrees; leaves that are no arrays are the same for all. The function is one that can be
    hashed, and closes over no arrays. At most `block` rows are worked out at a time, fewer in
    small batches: products of matrices like many, loops few, since a block takes as long as its
    slowest row.
    """
    arrays, rest = eqx.partition((given, shared), eqx.is_array)
    leaves, structure = jax.tree.flatten(rest)
    whole = _traced_once(_Whole(function, tuple(leaves), structure))
    return _single(whole, block)(needed, *arrays)


@dataclass(frozen=True)
class _Whole:
    """A function that gets arrays alone, with what is not an array put back in."""

    function: Callable[[Any, Any], Any]
    leaves: tuple[Any, ...]
    structure: Any

    def __call__(self, given: Any, shared: Any) -> Any:
        rest = jax.tree.unflatten(self.structure, self.leaves)
        return self.function(*eqx.combine((given, shared), rest))


@lru_cache(512)
def _traced_once(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same; what it does alone, in a batch and to shapes is found out by one call of it."""
    return jax.jit(function, inline=True)


@lru_cache(512)
def _single(function: Callable[[Any, Any], Any], block: int) -> Callable[..., Any]:
    @custom_vmap
    def single(needed: Array, given: Any, shared: Any) -> Any:
        return jax.tree.map(
            lambda out: jnp.where(needed, out, jnp.zeros_like(out)), function(given, shared)
        )

    @single.def_vmap
    def batch(size: int, batched: Any, needed: Array, given: Any, shared: Any) -> Any:
        result = _batch(function, block, size, batched, needed, given, shared)
        return result, jax.tree.map(lambda _: True, result)

    return single


def _batch(
    function: Callable[[Any, Any], Any],
    block: int,
    size: int,
    batched: Any,
    needed: Array,
    given: Any,
    shared: Any,
) -> Any:
    """Many rows at once."""
    if any(jax.tree.leaves(batched[2])):  # It is not the same for all rows.
        joined = (batched[0], (batched[1], batched[2]), ())
        return _batch(_Joined(function), block, size, joined, needed, (given, shared), ())
    return _many(function, block)(*_rows(size, batched[:2], (needed, given)), shared)


@dataclass(frozen=True)
class _Joined:
    """A function that gets what was shared together with what is given."""

    function: Callable[[Any, Any], Any]

    def __call__(self, given: tuple[Any, Any], shared: tuple[()]) -> Any:
        del shared
        return self.function(*given)


@lru_cache(512)
def _many(function: Callable[[Any, Any], Any], block: int) -> Callable[..., Any]:
    @custom_vmap
    def many(needed: Array, given: Any, shared: Any) -> Any:
        return _in_blocks(function, block, needed, given, shared)

    @many.def_vmap
    def flat(size: int, batched: Any, needed: Array, given: Any, shared: Any) -> Any:
        rows = _rows(size, batched[:2], (needed, given))
        number, whole = rows[0].shape[1], many
        if any(jax.tree.leaves(batched[2])):  # Every row of a batch gets that of its batch.
            (own,) = _rows(size, batched[2:], (shared,))
            own = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], number, axis=1), own)
            rows, shared, whole = (rows[0], (rows[1], own)), (), _many(_Joined(function), block)
        joined = jax.tree.map(lambda leaf: leaf.reshape(size * number, *leaf.shape[2:]), rows)
        result = whole(*joined, shared)
        apart = jax.tree.map(lambda leaf: leaf.reshape(size, number, *leaf.shape[1:]), result)
        return apart, jax.tree.map(lambda _: True, apart)

    return many


def _rows(size: int, batched: Any, trees: Any) -> Any:
    """All leaves with a batch axis in front."""
    return jax.tree.map(
        lambda leaf, has: leaf if has else jnp.broadcast_to(leaf[None], (size, *leaf.shape)),
        trees,
        tuple(batched),
    )


def _in_blocks(
    function: Callable[..., Any], block: int, needed: Array, given: Any, shared: Any
) -> Any:
    number = len(needed)
    block = min(block, max(LEAST, number // 8))
    count = jnp.sum(needed)
    place = jnp.where(needed, jnp.cumsum(needed) - 1, number + block)
    index = jnp.zeros(number + block, jnp.int32).at[place].set(jnp.arange(number), mode="drop")
    some = jax.tree.map(lambda leaf: leaf[0], given)
    shapes = jax.eval_shape(function, some, shared)
    nothing = jax.tree.map(lambda each: jnp.zeros((number, *each.shape), each.dtype), shapes)

    def go_on(carry: tuple[Array, Any]) -> Array:
        return carry[0] < count

    def step(carry: tuple[Array, Any]) -> tuple[Array, Any]:
        first, results = carry
        rows = jax.lax.dynamic_slice(index, (first,), (block,))
        out = jax.vmap(function, in_axes=(0, None))(
            jax.tree.map(lambda leaf: leaf[rows], given), shared
        )
        at = jnp.where(first + jnp.arange(block) < count, rows, number)
        results = jax.tree.map(lambda all, new: all.at[at].set(new, mode="drop"), results, out)
        return first + block, results

    return jax.lax.while_loop(go_on, step, (jnp.int32(0), nothing))[1]
