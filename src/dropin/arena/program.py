"""Compiled functions of one signature, and functions that are traced once."""

import threading
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

import jax

from dropin._xla.compile import compiler_options

__all__ = ["Program", "trace_once"]

Args = ParamSpec("Args")
Result = TypeVar("Result")


class Program(Generic[Result]):
    """A compiled function of arrays, which all calls have the same shapes of.

    It can be compiled before there is anything to call it with, and so beside other programs.

    Args:
        function: The function.
        quick: Whether to compile in half the time. Results may then differ in the last bits of
            floats from those of other programs, never from those of this one.
    """

    def __init__(self, function: Callable[..., Result], *, quick: bool = False):
        # Not by Equinox, whose calls take several times as long as these programs.
        self._jitted = jax.jit(function, compiler_options=compiler_options(quick=quick))
        self._lock = threading.Lock()
        self.compiled: Callable[..., Result] | None = None
        """The compiled program, if there is one already."""

    def compile(self, *args: Any) -> Callable[..., Result]:
        """Compile the program, unless that has been done; whoever needs it meanwhile waits.

        Args:
            *args: The arguments of a call, or their shapes.
        """
        with self._lock:
            if self.compiled is None:
                self.compiled = self._jitted.lower(*args).compile()
            return self.compiled

    def __call__(self, *args: Any) -> Result:
        """Call the program.

        Args:
            *args: The arguments.
        """
        compiled = self.compiled or self.compile(*args)
        return compiled(*args)


def trace_once(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Return a function whose trace is kept, so that it serves for its shapes and for a program.

    Args:
        function: A function of arrays.
    """
    return jax.jit(function, inline=True)
