"""Evaluation of a function on those rows of a batch whose result is used."""

import math
from collections.abc import Callable
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, PyTree

__all__ = ["MIN_BLOCK", "compute_where"]

MIN_BLOCK = 8
"""The smallest number of rows that are computed at a time."""


def compute_where(
    function: Callable[[PyTree, PyTree], PyTree],
    where: Bool[Array, ""],
    given: PyTree,
    shared: PyTree = (),
    *,
    block: int = MIN_BLOCK,
) -> PyTree:
    """Return `function(given, shared)` if `where` is true, else zeros of the same shapes.

    Apply `jax.vmap` to it, once or several times. Under `vmap`, `cond` and `jnp.where` compute
    every row, including those whose result is thrown away, and a loop runs until the slowest row
    is done. This function has a batching rule of its own: the rows of all batch axes form one list,
    and only the rows where `where` is true are computed, a block at a time. `benchmarks/xla.py`
    measures the gain. There is no gradient through it.

    Args:
        function: Called as `function(given, shared)`. It has to be hashable and must not close
            over arrays.
        where: Whether the result is needed.
        given: A pytree, as a rule one that differs from row to row.
        shared: A pytree, as a rule one that all rows share. The batching rule finds out which
            leaves of both pytrees are shared, and does not copy those for each row. Leaves that
            are not arrays have to be hashable.
        block: The most rows to compute at a time; small batches have smaller blocks. Matrix
            products are faster in large blocks, loops in small ones, since a block takes as long
            as its slowest row.

    Returns:
        The result of the function, with the batch axes of `where` and all arguments.
    """
    arrays, static = eqx.partition((given, shared), eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    static_leaves, static_structure = jax.tree.flatten(static)
    flat = _flatten(function, structure, tuple(static_leaves), static_structure)
    return _batchable(flat, block, ((),) * len(leaves))(where, *leaves)


@lru_cache(512)
def _flatten(
    function: Callable[[PyTree, PyTree], PyTree],
    structure: PyTree,
    static_leaves: tuple[PyTree, ...],
    static_structure: PyTree,
) -> Callable[..., PyTree]:
    """Return a function of two pytrees as a function of the arrays in them.

    It is traced once for each set of shapes: the batching rules below evaluate it for one row and
    for a block, at every level of nested `vmap`, and tracing it again each time would take most of
    the time of lowering.
    """

    def call(*leaves: Array) -> PyTree:
        arrays = jax.tree.unflatten(structure, leaves)
        static = jax.tree.unflatten(static_structure, static_leaves)
        return function(*eqx.combine(arrays, static))

    return jax.jit(call, inline=True)


Axes = tuple[bool, ...]
"""Which of the batch axes an array has, the outermost axis first."""


@lru_cache(512)
def _batchable(
    function: Callable[..., PyTree], block: int, axes: tuple[Axes, ...]
) -> Callable[..., PyTree]:
    """Return a function of `where` and arrays to which `vmap` can add batch axes.

    Args:
        function: A function of the arrays of one row.
        block: The most rows to compute at a time.
        axes: The batch axes of each array so far. `where` has all of them.
    """

    @custom_vmap
    def compute(where: Array, *leaves: Array) -> PyTree:
        if where.ndim:
            return _compute_in_blocks(function, block, axes, where, leaves)
        return jax.tree.map(
            lambda out: jnp.where(where, out, jnp.zeros_like(out)), function(*leaves)
        )

    @compute.def_vmap
    def add_axis(size: int, batched: list[bool], where: Array, *leaves: Array) -> PyTree:
        if not batched[0]:
            where = jnp.broadcast_to(where, (size, *where.shape))
        with_axis = tuple((new, *old) for new, old in zip(batched[1:], axes, strict=True))
        results = _batchable(function, block, with_axis)(where, *leaves)
        return results, jax.tree.map(lambda _: True, results)

    return compute


def _compute_in_blocks(
    function: Callable[..., PyTree],
    block: int,
    axes: tuple[Axes, ...],
    where: Bool[Array, "*batch"],
    leaves: tuple[Array, ...],
) -> PyTree:
    """Compute the rows where `where` is true; the results have all batch axes, zeros elsewhere."""
    shape, number = where.shape, where.size
    block = min(block, max(MIN_BLOCK, number // 8))
    in_axes = [0 if any(each) else None for each in axes]
    rows_of = [_as_rows(leaf, each, shape) for leaf, each in zip(leaves, axes, strict=True)]

    def take(rows: int | Int[Array, " block"]) -> list[Array]:
        """Return the arguments for these rows."""
        pairs = zip(rows_of, in_axes, strict=True)
        return [leaf if axis is None else leaf[rows] for leaf, axis in pairs]

    where = where.reshape(number)
    count = jnp.sum(where)
    position = jnp.where(where, jnp.cumsum(where) - 1, number + block)
    needed = jnp.zeros(number + block, jnp.int32).at[position].set(jnp.arange(number), mode="drop")
    # The rest of the last block repeats a row, which takes no longer than that row does.
    needed = jnp.where(jnp.arange(number + block) < count, needed, needed[0])

    def compute_block(carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        first, results = carry
        rows = jax.lax.dynamic_slice(needed, (first,), (block,))
        out = jax.vmap(function, in_axes=in_axes, axis_size=block)(*take(rows))
        at = jnp.where(first + jnp.arange(block) < count, rows, number)
        results = jax.tree.map(lambda old, new: old.at[at].set(new, mode="drop"), results, out)
        return first + block, results

    row = jax.eval_shape(function, *take(0))
    zeros = jax.tree.map(lambda out: jnp.zeros((number, *out.shape), out.dtype), row)
    _, results = jax.lax.while_loop(
        lambda carry: carry[0] < count, compute_block, (jnp.int32(0), zeros)
    )
    return jax.tree.map(lambda out: out.reshape(*shape, *out.shape[1:]), results)


def _as_rows(leaf: Array, axes: Axes, shape: tuple[int, ...]) -> Array:
    """Return an array with the batch axes joined to one, or unchanged if it has none of them."""
    if not any(axes):
        return leaf
    rest = leaf.shape[sum(axes) :]
    lengths = (size if has_axis else 1 for has_axis, size in zip(axes, shape, strict=True))
    of_all = jnp.broadcast_to(leaf.reshape(*lengths, *rest), (*shape, *rest))
    return of_all.reshape(math.prod(shape), *rest)
