"""Tapes of what layers computed, so that a gradient needs no second forward pass.

`record` calls a function and keeps the outputs of the layers in it. `replay` calls the function
again with the same inputs and weights: each layer returns its kept output without computing it, and
can be differentiated all the same. Rows that were recorded a few at a time can be replayed all
together, under `vmap`, so that the products of the gradient are few and large.
"""

from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import compress
from typing import TypeVar

import jax
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import get_opaque_trace_state
from jaxtyping import PyTree

__all__ = ["Tape", "keep", "layer", "record", "replay", "replayed"]

Result = TypeVar("Result")
Tape = tuple[PyTree, ...]
"""What was kept, in the order of the calls."""


class _Head:
    """Where a tape is being written or read.

    Args:
        tape: The tape to read; None to write a new one.
    """

    def __init__(self, tape: Tape | None):
        self.tape, self.kept, self.position = tape, [], 0
        self._level = get_opaque_trace_state()

    @property
    def is_here(self) -> bool:
        """Whether JAX is in the function itself and not in a `vmap`, `scan` or `jit` within it."""
        return get_opaque_trace_state() == self._level

    def read(self) -> PyTree:
        """Return what was kept next."""
        assert self.tape is not None
        self.position += 1
        return self.tape[self.position - 1]


_head: ContextVar[_Head | None] = ContextVar("tape", default=None)


@contextmanager
def _using(head: _Head | None):
    token = _head.set(head)
    try:
        yield head
    finally:
        _head.reset(token)


def record(function: Callable[..., Result], *args: PyTree) -> tuple[Result, Tape]:
    """Call a function and keep what its layers compute.

    Args:
        function: The function.
        *args: Its arguments.

    Returns:
        The result, and the tape.
    """
    head = _Head(None)
    with _using(head):
        return function(*args), tuple(head.kept)


def replay(tape: Tape, function: Callable[..., Result], *args: PyTree) -> Result:
    """Call a function again, with the outputs of its layers from a tape.

    Args:
        tape: What `record` kept of the same call.
        function: The function.
        *args: Its arguments, equal to those of the recorded call.

    Returns:
        The result: the same values, differentiable with respect to weights and arguments.
    """
    head = _Head(tape)
    with _using(head):
        result = function(*args)
    if head.position != len(tape):
        raise ValueError(f"{head.position} of the {len(tape)} recorded layers were replayed.")
    return result


def layer(function: Callable[..., Result], *args: PyTree) -> Result:
    """Compute the output of a layer; while a tape is replayed, take it from there.

    Layers under a `vmap`, `scan` or `jit` within the recorded function are not kept; they are
    computed again.

    Args:
        function: A differentiable function without side effects.
        *args: Its arguments, weights included.
    """
    head = _head.get()
    if head is None or not head.is_here:
        return function(*args)
    if head.tape is None:
        output = function(*args)
        head.kept.append(output)
        return output
    return _recorded(function, head.read(), *args)


def keep(value: PyTree) -> None:
    """Keep a value, while a tape is recorded, that `replayed` returns later."""
    head = _head.get()
    if head is not None and head.tape is None and head.is_here:
        head.kept.append(value)


def replayed() -> PyTree:
    """Return the value that was kept at this place, or None if no tape is being replayed."""
    head = _head.get()
    return None if head is None or head.tape is None else head.read()


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _recorded(function: Callable[..., Result], output: Result, *args: PyTree) -> Result:
    """Return a recorded output, with the derivative of the function that computed it."""
    del function, args
    return output


@partial(_recorded.defjvp, symbolic_zeros=True)
def _recorded_jvp(
    function: Callable[..., Result], primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]
) -> tuple[Result, Result]:
    leaves, structure = jax.tree.flatten(primals[1:])
    changes = jax.tree.leaves(tangents[1:], is_leaf=_is_zero)
    moving = [not _is_zero(change) for change in changes]

    def of_moving(*values: PyTree) -> Result:
        given = iter(values)
        all_leaves = [
            next(given) if moves else leaf for leaf, moves in zip(leaves, moving, strict=True)
        ]
        return function(*jax.tree.unflatten(structure, all_leaves))

    # The primal output of the JVP is not used, so the compiler leaves it out.
    _, change = jax.jvp(
        of_moving, tuple(compress(leaves, moving)), tuple(compress(changes, moving))
    )
    return primals[0], change


def _is_zero(tangent: PyTree) -> bool:
    """Return whether a tangent is known to be zero, since its primal is a constant."""
    return isinstance(tangent, SymbolicZero)
