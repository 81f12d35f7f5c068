"""JIT options for long-running programs."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, ParamSpec, TypeVar

from dropin._xla.memory import release_memory
from dropin.core.errors import InputError

__all__ = [
    "OPTIONS",
    "QUICK_OPTIONS",
    "Compiled",
    "check_precision",
    "compiled",
    "compiler_options",
]

P = ParamSpec("P")
Result = TypeVar("Result")

OPTIONS: Mapping[str, bool | str] = {
    # More threads gain little in networks of this size, and their number changes the last bits.
    "xla_cpu_multi_thread_eigen": False,
}
"""Compiler options of XLA; those that the installed version does not know are left out."""
QUICK_OPTIONS: Mapping[str, bool | str] = {
    **OPTIONS,
    # The older emitters compile in two thirds of the time and with half of the memory. The program
    # is slower, which does not matter if it runs for less time than it takes to compile.
    "xla_cpu_use_fusion_emitters": False,
}
"""Options for programs that run only for a short time."""


class Compiled(Generic[P, Result]):
    """A function that is compiled when it is first called; see `compiled`."""

    __name__: str

    def __init__(
        self,
        function: Callable[P, Result],
        donate: Literal["all", "all-except-first", "none"],
        *,
        quick: bool,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function, self._donate, self._quick = function, donate, quick

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        """Call the compiled function."""
        check_precision()
        before = self.compilations()
        result = self._jitted(*args, **kwargs)
        if self.compilations() > before:
            release_memory()
        return result

    def compilations(self) -> int:
        """Return how many programs have been compiled so far, one for each set of shapes."""
        return self._jitted._cached._cache_size()

    @functools.cached_property
    def _jitted(self) -> Any:
        import equinox as eqx

        return eqx.filter_jit(
            self._function,
            donate=self._donate,
            compiler_options=compiler_options(quick=self._quick),  # pyright: ignore[reportCallIssue]
        )


def compiled(
    function: Callable[P, Result],
    donate: Literal["all", "all-except-first", "none"] = "none",
    *,
    quick: bool = False,
) -> Compiled[P, Result]:
    """Return `equinox.filter_jit(function)` with options for training and evaluation.

    Arithmetic runs in one thread, so that results depend neither on the number of cores nor on
    what else runs. JAX is not imported before the first call. `benchmarks/xla.py` measures what
    each option gains.

    Args:
        function: The function to compile. Arrays among its arguments are traced, all else is
            static.
        donate: Which arguments may be overwritten by the results.
        quick: Whether to compile in less time, for programs that run only for a short time.

    Returns:
        The compiled function. Its method `compilations()` counts the programs compiled so far, for
        tests that nothing is compiled twice.
    """
    return Compiled(function, donate, quick=quick)


def check_precision() -> None:
    """Raise `InputError` if JAX computes with 64 bits, which would give other numbers."""
    import jax

    if jax.config.values["jax_enable_x64"]:
        raise InputError(
            "JAX is set to 64-bit numbers, and Dropin computes with 32-bit ones: unset"
            " JAX_ENABLE_X64, or call jax.config.update('jax_enable_x64', False)."
        )


@functools.cache
def compiler_options(*, quick: bool) -> dict[str, bool | str]:
    """Return those of the options that this version of XLA has.

    Args:
        quick: Whether to compile in less time, for programs that run only for a short time.
    """
    import jax

    known = {}
    for name, value in (QUICK_OPTIONS if quick else OPTIONS).items():
        try:
            jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
        except jax.errors.JaxRuntimeError:
            continue
        known[name] = value
    return known
