"""How long programs are compiled, and that they are kept between runs."""

import functools
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

CACHE = "DROPIN_CACHE"
"""Environment variable: another directory for compiled programs, or `off`."""

_OPTIONS = {
    # More threads give little in networks of this size, and their number changes the last bits.
    "xla_cpu_multi_thread_eigen": False,
    # The newer emitters need more than twice the memory to compile and hardly run faster.
    "xla_cpu_use_fusion_emitters": False,
}


def compiled(
    function: Callable[P, Result],
    donate: Literal["all", "all-except-first", "none"] = "none",
) -> Callable[P, Result]:
    """`equinox.filter_jit` for the long programs of training and evaluation.

    The arithmetic has one thread, so that the bits depend on neither the number of cores nor on
    what else runs. Nothing is set up before the first call.
    """

    @functools.cache
    def build() -> Any:
        import equinox as eqx

        options = {"compiler_options": _known_options()}
        return eqx.filter_jit(function, donate=donate, **options)  # pyright: ignore

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Result:
        return build()(*args, **kwargs)

    def compilations() -> int:
        return build()._cached._cache_size()

    call.compilations = compilations  # pyright: ignore
    return call


@functools.cache
def _known_options() -> dict[str, bool]:
    """Those of the options that this version of XLA has."""
    import jax

    known = {}
    for name, value in _OPTIONS.items():
        try:
            jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
        except jax.errors.JaxRuntimeError:
            continue
        known[name] = value
    return known


def use_cache() -> Path | None:
    """Keep compiled programs in the user's cache directory, apart for every version of jaxlib.

    Nothing happens where it is switched off or JAX has a cache already. Returns the directory.
    """
    import jax

    chosen = os.environ.get(CACHE, "")
    if chosen.lower() in ("off", "0", "no"):
        return None
    there = jax.config.values["jax_compilation_cache_dir"]
    if there is not None:
        return Path(there)
    home = os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache"
    root = Path(chosen) if chosen else Path(home) / "dropin"
    directory = root / f"jaxlib-{version('jaxlib')}-{platform.machine()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    return directory
