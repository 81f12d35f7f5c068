"""What a run was made with: versions, flags and the machine."""

import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import jax

from dropin import __version__

__all__ = ["machine", "processor", "versions"]

_PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "safetensors")
_PROCESSOR_INFO = Path("/proc/cpuinfo")


def versions() -> dict[str, str]:
    """Return the versions of everything that the bits of a run depend on."""
    own = {"dropin": __version__, "python": platform.python_version()}
    flags = {"XLA_FLAGS": os.environ.get("XLA_FLAGS", "")}
    precision = jax.config.values["jax_default_matmul_precision"]
    # Not in the files of most runs: None is JAX's own default.
    if precision is not None:
        flags["JAX_DEFAULT_MATMUL_PRECISION"] = str(precision)
    return own | _packages() | flags


@cache
def _packages() -> dict[str, str]:
    return {name: version(name) for name in _PACKAGES}


def processor() -> str:
    """Return the name of the processor."""
    lines = _PROCESSOR_INFO.read_text().splitlines() if _PROCESSOR_INFO.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def machine() -> str:
    """Return the name of the processor and the number of cores, as `AMD EPYC, 2 cores`."""
    return f"{processor()}, {os.cpu_count()} cores"
