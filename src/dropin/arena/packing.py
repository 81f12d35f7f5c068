"""Pytrees as few arrays: one vector for all leaves of a dtype.

A call of a compiled program and the transfer of its results cost a few microseconds for each array.
A state has dozens of small ones, so they are kept side by side, and many moments of an episode can
be kept in little memory.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree, Shaped

from dropin.core.arrays import from_bits, shape_of_bits, to_bits

__all__ = ["Packed", "Packing"]

Tree = TypeVar("Tree")
Packed = tuple[Shaped[Array, " n"] | Shaped[np.ndarray, " n"], ...]
"""One vector per dtype."""


@dataclass(frozen=True)
class _Place:
    """Where a leaf is."""

    vector: int
    start: int
    stop: int
    shape: tuple[int, ...]
    template: Any
    """The leaf, or its shape: random keys are kept as their bits."""


class Packing(Generic[Tree]):
    """Converts pytrees of one structure to vectors and back.

    Args:
        template: A pytree of arrays or of their shapes.
    """

    def __init__(self, template: Tree):
        self.template = template
        leaves, self._structure = jax.tree.flatten(template)
        names, lengths = list[str](), list[int]()
        self._places: list[_Place] = []
        for leaf in leaves:
            bits = shape_of_bits(leaf)
            if str(bits.dtype) not in names:
                names.append(str(bits.dtype))
                lengths.append(0)
            vector = names.index(str(bits.dtype))
            start = lengths[vector]
            lengths[vector] += bits.size
            self._places.append(_Place(vector, start, lengths[vector], bits.shape, leaf))
        self._vectors = len(names)

    def pack(self, tree: Tree) -> Packed:
        """Return the leaves of a pytree side by side; for compiled functions."""
        parts: list[list[Array]] = [[] for _ in range(self._vectors)]
        for place, leaf in zip(self._places, jax.tree.leaves(tree), strict=True):
            parts[place.vector].append(to_bits(leaf).reshape(-1))
        return tuple(jnp.concatenate(each) for each in parts)

    def unpack(self, packed: Packed) -> Tree:
        """Return the pytree; with NumPy vectors its leaves are views, and random keys are bits."""
        leaves: list[PyTree] = []
        is_jax = any(isinstance(vector, Array) for vector in packed)
        for place in self._places:
            leaf = packed[place.vector][place.start : place.stop].reshape(place.shape)
            leaves.append(from_bits(leaf, place.template) if is_jax else leaf)
        return jax.tree.unflatten(self._structure, leaves)
