"""Pytrees as named arrays, and back."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from dropin.core.errors import InputError

__all__ = [
    "IntScalar",
    "Mask",
    "array_paths",
    "as_bool",
    "as_float",
    "as_int",
    "from_arrays",
    "from_bits",
    "shape_of_bits",
    "shapes_of",
    "to_arrays",
    "to_bits",
    "zeros_like",
]

Tree = TypeVar("Tree")
IntScalar = Int[Array, ""] | Int[np.ndarray, ""]
"""An integer of JAX, or of NumPy where nothing is to be compiled."""
Mask = Bool[Array, " slot"] | Bool[np.ndarray, " slot"]
"""A boolean for each slot, likewise."""


def to_arrays(tree: PyTree) -> dict[str, np.ndarray]:
    """Return the arrays of a pytree by their paths; random keys become their bits."""
    return {name: np.asarray(to_bits(leaf)) for name, leaf in array_paths(tree)}


def from_arrays(template: Tree, arrays: Mapping[str, np.ndarray], source: object) -> Tree:
    """Return a pytree like the template, with these arrays in it.

    Args:
        template: A pytree of arrays, or of their shapes.
        arrays: The arrays by their paths, as `to_arrays` gives them.
        source: Where they come from, for messages.

    Raises:
        InputError: If an array is missing, unknown, or of another shape or type.
    """
    named = array_paths(template)
    expected, given = {name for name, _ in named}, set(arrays)
    if expected != given:
        odd = sorted(expected ^ given)[0]
        which = "lacks" if odd in expected else "has an unknown"
        raise InputError(f"{source} does not fit: it {which} array {odd!r}.")
    for name, leaf in named:
        bits, array = shape_of_bits(leaf), arrays[name]
        if (array.shape, array.dtype) != (bits.shape, bits.dtype):
            raise InputError(
                f"{source} does not fit: array {name!r} is {array.dtype} {array.shape}, not"
                f" {bits.dtype} {bits.shape}."
            )
    placed = jax.device_put([arrays[name] for name, _ in named])
    leaves = [from_bits(array, leaf) for array, (_, leaf) in zip(placed, named, strict=True)]
    dynamic, static = eqx.partition(template, _is_array)
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(dynamic), leaves), static)


def shapes_of(build: Callable[[], Tree]) -> Tree:
    """Return what a function builds, with shapes in the place of arrays.

    Args:
        build: Makes a pytree, such as a network with its first weights.
    """
    # Nobody sees the random numbers. This generator is one operation of XLA; ours is a hundred,
    # which takes several times as long to trace as all the rest of a network.
    with jax.default_prng_impl("unsafe_rbg"):
        shapes = eqx.filter_eval_shape(build)
    # The bits of a random key are other ones here.
    has_key = any(_is_key(leaf) for _, leaf in array_paths(shapes))
    return eqx.filter_eval_shape(build) if has_key else shapes


def zeros_like(template: Tree) -> Tree:
    """Return a pytree like the template, with zeros in it.

    Args:
        template: A pytree of arrays, or of their shapes.
    """

    def zeros(leaf: PyTree) -> PyTree:
        if not _is_array(leaf):
            return leaf
        bits = shape_of_bits(leaf)
        # From NumPy, by `device_put`: no program has to be compiled.
        return from_bits(jax.device_put(np.zeros(bits.shape, bits.dtype)), leaf)

    return jax.tree.map(zeros, template)


def as_int(value: object) -> Int[Array, "..."]:
    """Convert a setting to an array of 32-bit integers."""
    return _as_array(value, np.int32)


def as_bool(value: object) -> Bool[Array, "..."]:
    """Convert a setting to an array of booleans."""
    return _as_array(value, np.bool_)


def as_float(value: object) -> Float[Array, "..."]:
    """Convert a setting to an array of 32-bit floats."""
    return _as_array(value, np.float32)


def _as_array(value: object, dtype: type[np.generic]) -> Array:
    if isinstance(value, Array):
        return value.astype(dtype)
    return jax.device_put(np.asarray(value, dtype))  # Compiles no program, as `jnp` would.


def _is_array(leaf: PyTree) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def array_paths(tree: PyTree) -> list[tuple[str, PyTree]]:
    """Return the path and the leaf of every array of a pytree."""
    paths, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(tree, _is_array))
    return [(jax.tree_util.keystr(path).lstrip("."), leaf) for path, leaf in paths]


def _is_key(leaf: PyTree) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def to_bits(leaf: PyTree) -> PyTree:
    """Return an array as it is, or the bits of random keys."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def shape_of_bits(leaf: PyTree) -> PyTree:
    """Return the shape and type of `to_bits`, given an array or its shape.

    JAX traces it once only: it keeps something of everything that it traces.
    """
    given = jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    return _shape_of_key_bits(given) if _is_key(leaf) else given


@lru_cache
def _shape_of_key_bits(keys: jax.ShapeDtypeStruct) -> PyTree:
    return jax.eval_shape(jax.random.key_data, keys)


def from_bits(array: PyTree, like: PyTree) -> PyTree:
    """Return an array as it is, or the random keys that it has the bits of.

    Args:
        array: The result of `to_bits`.
        like: An array of the wanted kind, or its shape.
    """
    return jax.random.wrap_key_data(array) if _is_key(like) else array
