"""Compiled programs are kept between runs."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

CACHE = "DROPIN_CACHE"
"""Environment variable: another directory for compiled programs, or `off`."""

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


def one_thread() -> None:
    """Let JAX use one thread for the arithmetic; call it before JAX is imported.

    More threads give little in networks of this size, and their number changes the last bits.
    """
    flags = os.environ.get("XLA_FLAGS", "").split()
    if ONE_THREAD not in flags:
        os.environ["XLA_FLAGS"] = " ".join([*flags, ONE_THREAD])


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
