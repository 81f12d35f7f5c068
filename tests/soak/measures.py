"""What a process holds, and whether that grows."""

import gc
import os
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.stats import theilslopes

from dropin._xla.memory import release_memory

__all__ = ["EXACT", "FEWEST", "Reading", "Slope", "fit_slope", "judge_end", "judge_slope", "read"]

EXACT = ("handles", "threads", "children", "files", "arrays")
"""What has to be at the end what it was when everything had been done once."""
FEWEST = 8
"""Readings that a slope is fitted to at least."""
_PROC = Path("/proc/self")


@dataclass(frozen=True)
class Reading:
    """What the process holds between two cycles."""

    memory: int
    """Resident memory in KiB."""
    maps: int
    """Memory maps; a compiled program has several."""
    handles: int
    """Open files and sockets."""
    threads: int
    children: int
    """Processes that it has started and that still run."""
    files: int
    """Files and directories in the directory for temporary files."""
    arrays: int
    """Arrays of JAX that are in use."""

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the columns."""
        return [each.name for each in fields(cls)]

    def values(self) -> tuple[int, ...]:
        """Return the numbers in the order of the names."""
        return astuple(self)


def read() -> Reading:
    """Return what this process holds, once all that nobody uses has been given back."""
    gc.collect()
    release_memory()
    temporary = Path(tempfile.gettempdir())
    return Reading(
        memory=int((_PROC / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024,
        maps=len((_PROC / "maps").read_text().splitlines()),
        handles=len(os.listdir(_PROC / "fd")) - 1,  # One is that of the directory itself.
        threads=threading.active_count(),
        children=sum(
            len((each / "children").read_text().split()) for each in (_PROC / "task").iterdir()
        ),
        files=sum(1 for _ in temporary.rglob("*")),
        arrays=len(jax.live_arrays()),
    )


@dataclass(frozen=True)
class Slope:
    """By how much something grows in a cycle, with a 95 % interval."""

    value: float
    low: float
    high: float
    cycles: int
    """Number of readings that it was fitted to."""

    def __str__(self) -> str:
        return f"{self.value:+.1f} ({self.low:+.1f} to {self.high:+.1f}, {self.cycles} cycles)"


def fit_slope(values: Sequence[float]) -> Slope:
    """Return the slope over the second half of the readings, by Theil and Sen.

    It is the median of the slopes between all pairs of readings, so single readings that are far
    off do not move it. In the first half caches fill up.

    Args:
        values: The readings, one for each cycle.
    """
    half = np.asarray(values[len(values) // 2 :], float)
    if len(half) < 2:
        return Slope(0.0, -np.inf, np.inf, len(half))
    found: Any = theilslopes(half, alpha=0.95)
    return Slope(float(found.slope), float(found.low_slope), float(found.high_slope), len(half))


def judge_slope(slope: Slope, limit: float) -> str:
    """Return `kept` if all of the interval is below the limit, `broken` if all of it is above.

    In between, and with few cycles, it is `open`: more cycles would tell.
    """
    if slope.cycles < FEWEST:
        return "open"
    return "broken" if slope.low > limit else "kept" if slope.high < limit else "open"


def judge_end(name: str, first: Reading, last: Reading) -> str:
    """Return `kept` if there is no more of something at the end than there was at first."""
    return "kept" if getattr(last, name) <= getattr(first, name) else "broken"
