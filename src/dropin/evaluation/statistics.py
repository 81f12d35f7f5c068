"""Means with 95 % intervals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dropin.errors import unknown

METHODS = ("t", "bootstrap")


@dataclass(frozen=True)
class Estimate:
    """A mean, its 95 % interval, and from how many independent values."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def interval(self) -> str:
        """The interval in words; none for a single value."""
        return f"{self.low:.2f} to {self.high:.2f}" if self.n > 1 else "-"

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.interval})" if self.n > 1 else f"{self.mean:.2f}"


def estimate(values: ArrayLike, method: str = "t", seed: int = 0) -> Estimate:
    """The mean of independent values: by Student's t, or by the bias-corrected bootstrap.

    A single value has no interval: its ends are not numbers.
    """
    if method not in METHODS:
        raise unknown("interval", method, METHODS)
    data = np.asarray(values, np.float64).ravel()
    mean, n = float(data.mean()), data.size
    if n < 2:
        return Estimate(mean, float("nan"), float("nan"), n)
    if np.ptp(data) == 0:
        return Estimate(mean, mean, mean, n)
    from scipy import stats

    if method == "t":
        low, high = stats.t.interval(0.95, n - 1, loc=mean, scale=stats.sem(data))
    else:
        generator = np.random.default_rng(seed)
        low, high = stats.bootstrap((data,), np.mean, rng=generator).confidence_interval
    return Estimate(mean, float(low), float(high), n)
