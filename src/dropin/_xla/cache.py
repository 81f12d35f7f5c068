"""The persistent compilation cache."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

__all__ = ["CACHE_VARIABLE", "use_cache"]

CACHE_VARIABLE = "DROPIN_CACHE"
"""Environment variable that names another directory for compiled programs, or is `off`."""
_OFF = ("off", "0", "no")
_MIN_COMPILE_SECONDS = 0.1
"""Programs that compile faster than this are not stored."""
_LOG_VARIABLE, _JAX_DEFAULT, _FATAL = "TF_CPP_MIN_LOG_LEVEL", "1", 3
"""The variable for the log level of XLA, the value that JAX gives it, and the highest level."""


def use_cache() -> Path | None:
    """Make JAX store compiled programs on disk, for later processes.

    The directory is `~/.cache/dropin` (or the one of `XDG_CACHE_HOME` or `DROPIN_CACHE`), with a
    subdirectory for each version of jaxlib and each machine type, since a compiled program fits
    only those. Nothing changes if the cache is switched off by `DROPIN_CACHE=off`, if JAX has a
    cache already, or if the directory cannot be made.

    With a cache, messages of XLA are not shown unless `TF_CPP_MIN_LOG_LEVEL` asks for them.

    Returns:
        The directory in use, or None if there is none.
    """
    import jax

    chosen = os.environ.get(CACHE_VARIABLE, "")
    if chosen.lower() in _OFF:
        return None
    configured = jax.config.values["jax_compilation_cache_dir"]
    if configured is not None:
        _mute_xla()
        return Path(configured)
    user_cache = os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache"
    root = Path(chosen) if chosen else Path(user_cache) / "dropin"
    directory = root / f"jaxlib-{version('jaxlib')}-{platform.machine()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _MIN_COMPILE_SECONDS)
    _mute_xla()
    return directory


def _mute_xla() -> None:
    """Hide the log lines of XLA; what really goes wrong in it is raised as an exception.

    On processors with AVX-512, XLA calls every program that it reads from the cache unfit for the
    machine, in two lines of a kilobyte each, and then uses it (openxla/xla issue 44565).
    """
    import jaxlib.utils

    set_level = getattr(jaxlib.utils, "absl_set_min_log_level", None)
    if set_level is not None and os.environ.get(_LOG_VARIABLE, _JAX_DEFAULT) == _JAX_DEFAULT:
        set_level(_FATAL)
