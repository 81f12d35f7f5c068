"""Means with 95 % intervals, and how to compare learners over few runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dropin.errors import InputError, unknown

METHODS = ("t", "bootstrap")
LEAST_TO_DRAW = 5
"""A bootstrap of fewer values knows little more than their range, so it gives no interval."""
LEAST_TO_TRIM = 4
"""Of fewer values no quarter can be left out."""
LEVEL = 0.05
"""A difference is called significant if one as large has a chance below this without any."""


@dataclass(frozen=True)
class Estimate:
    """A mean, its 95 % interval, and from how many independent values."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return bool(np.isfinite(self.low))

    @property
    def interval(self) -> str:
        """The interval in words, if there is one."""
        return f"{self.low:.2f} to {self.high:.2f}" if self.known else "-"

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.interval})" if self.known else f"{self.mean:.2f}"


def estimate(values: ArrayLike, method: str = "t", seed: int = 0) -> Estimate:
    """The mean of independent values: by Student's t, or by the bias-corrected bootstrap.

    Too few values have no interval, its ends are not numbers: a single one, or fewer than
    `LEAST_TO_DRAW` in a bootstrap.
    """
    if method not in METHODS:
        raise unknown("interval", method, METHODS)
    if method == "bootstrap":
        return _bootstrapped(np.mean, values, seed)
    data = _row(values)
    mean, n = float(data.mean()), data.size
    if n < 2:
        return _without_interval(mean, n)
    if np.ptp(data) == 0:
        return Estimate(mean, mean, mean, n)
    # Of `scipy.stats`, which takes a second to import, training would need this alone.
    from scipy.special import stdtrit

    tail = (1 - 0.95) / 2
    low, high = mean + data.std(ddof=1) / np.sqrt(n) * stdtrit(n - 1, [tail, 1 - tail])
    return Estimate(mean, float(low), float(high), n)


def middle_mean(values: ArrayLike, seed: int = 0) -> Estimate:
    """The interquartile mean, which leaves out the best and the worst quarter; bootstrapped.

    With fewer than `LEAST_TO_TRIM` values nothing can be left out: it is their mean.
    """
    from scipy import stats

    def trimmed(data: np.ndarray, axis: int = -1) -> Any:
        return stats.trim_mean(data, 0.25, axis=axis)

    return _bootstrapped(trimmed, values, seed)


def improvement(ours: ArrayLike, theirs: ArrayLike, seed: int = 0) -> Estimate:
    """The chance that one of our runs is above one of theirs; equal ones count half.

    The interval is bootstrapped over the runs of both; n is the smaller number of them.
    """
    from scipy import stats

    one, two = _row(ours), _row(theirs)

    def chance(a: np.ndarray, b: np.ndarray, axis: int = -1) -> Any:
        found = stats.mannwhitneyu(a, b, axis=axis, method="asymptotic")
        return found.statistic / (a.shape[axis] * b.shape[axis])

    mean, n = float(chance(one, two)), min(one.size, two.size)
    if n < LEAST_TO_DRAW:
        return _without_interval(mean, n)
    generator = np.random.default_rng(seed)
    drawn = stats.bootstrap((one, two), chance, method="percentile", rng=generator)
    low, high = drawn.confidence_interval
    return Estimate(mean, float(low), float(high), n)


def chance_of_difference(ours: ArrayLike, theirs: ArrayLike) -> float:
    """The chance of a difference of means as large as this if there were none: Welch's t-test.

    It is not a number if one of them has a single run.
    """
    from scipy import stats

    one, two = _row(ours), _row(theirs)
    if min(one.size, two.size) < 2:
        return float("nan")
    if np.ptp(one) == 0 and np.ptp(two) == 0:
        return 0.0 if one[0] != two[0] else 1.0
    found: Any = stats.ttest_ind(one, two, equal_var=False)
    return float(found.pvalue)


def significantly_above(ours: ArrayLike, others: Mapping[str, ArrayLike]) -> bool:
    """Whether our mean is above that of each of the others, each time significantly."""
    mean = _row(ours).mean()
    return bool(others) and all(
        mean > _row(theirs).mean() and chance_of_difference(ours, theirs) < LEVEL
        for theirs in others.values()
    )


def profile(values: ArrayLike, levels: ArrayLike, seed: int = 0) -> list[Estimate]:
    """The performance profile: the share of runs above each level, with bootstrapped intervals."""
    data = _row(values)
    return [_bootstrapped(np.mean, (data > level).astype(float), seed) for level in _row(levels)]


def _bootstrapped(statistic: Callable[..., Any], values: ArrayLike, seed: int) -> Estimate:
    data = _row(values)
    found, n = float(statistic(data)), data.size
    if n < LEAST_TO_DRAW:
        return _without_interval(found, n)
    if np.ptp(data) == 0:
        return Estimate(found, found, found, n)
    from scipy import stats

    generator = np.random.default_rng(seed)
    drawn = stats.bootstrap((data,), statistic, rng=generator)
    low, high = drawn.confidence_interval
    return Estimate(found, float(low), float(high), n)


def _without_interval(mean: float, n: int) -> Estimate:
    """The estimate from too few values."""
    return Estimate(mean, float("nan"), float("nan"), n)


def _row(values: ArrayLike) -> np.ndarray:
    data = np.asarray(values, np.float64).ravel()
    if data.size == 0:
        raise InputError("There are no values to estimate from.")
    return data
