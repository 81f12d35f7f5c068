"""Means with 95 % intervals, and comparisons of learners over few runs.

Values are results of independent runs, one number each. An interval is given only where there are
enough of them; otherwise its ends are NaN.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dropin.core.errors import InputError, unknown

__all__ = [
    "MIN_BOOTSTRAP",
    "MIN_TRIMMED",
    "POOLED",
    "Estimate",
    "across_tasks",
    "estimate",
    "improvement_across_tasks",
    "interquartile_mean",
    "is_significantly_above",
    "optimality_gap",
    "performance_profile",
    "probability_of_improvement",
    "profile_across_tasks",
    "welch_p_value",
]

METHODS = ("t", "bootstrap")
POOLED = "pooled interquartile mean"
"""The interquartile mean of the runs of all tasks together."""
MIN_BOOTSTRAP = 5
"""Fewer values get no bootstrap interval: it would say little more than their range."""
MIN_TRIMMED = 4
"""Of fewer values no quarter can be left out."""
NUM_RESAMPLES = 9999
"""How often a profile is drawn anew, as `scipy.stats.bootstrap` does."""
SIGNIFICANCE_LEVEL = 0.05
"""A difference is called significant if its p-value is below this."""


@dataclass(frozen=True)
class Estimate:
    """A mean, its 95 % interval, and the number of independent values."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return bool(np.isfinite(self.low))

    @property
    def interval(self) -> str:
        """The interval as text; a dash if there is none."""
        return f"{self.low:.2f} to {self.high:.2f}" if self.has_interval else "-"

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.interval})" if self.has_interval else f"{self.mean:.2f}"


def estimate(values: ArrayLike, method: str = "t", seed: int = 0) -> Estimate:
    """Estimate the mean of independent values.

    Args:
        values: The values.
        method: `t` for Student's t, or `bootstrap` for the bias-corrected bootstrap.
        seed: Of the bootstrap.

    Returns:
        The mean with its 95 % interval. The ends of the interval are NaN for a single value, or for
        fewer than `MIN_BOOTSTRAP` values in a bootstrap.
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
    # `scipy.stats` takes a second to import, and training needs nothing else of it.
    from scipy.special import stdtrit

    tail = (1 - 0.95) / 2
    low, high = mean + data.std(ddof=1) / np.sqrt(n) * stdtrit(n - 1, [tail, 1 - tail])
    return Estimate(mean, float(low), float(high), n)


def interquartile_mean(values: ArrayLike, seed: int = 0) -> Estimate:
    """Return the interquartile mean, without the best and the worst quarter, bootstrapped.

    With fewer than `MIN_TRIMMED` values nothing can be left out: it is their mean.

    Args:
        values: The values.
        seed: Of the bootstrap.
    """
    return _bootstrapped(_trimmed_mean, values, seed)


def optimality_gap(values: ArrayLike, target: float = 1.0, seed: int = 0) -> Estimate:
    """Return by how much runs fall short of a target on average, bootstrapped.

    Runs above the target count as 0, so a good run does not make up for a bad one.

    Args:
        values: The values.
        target: The target.
        seed: Of the bootstrap.
    """
    return _bootstrapped(np.mean, np.maximum(target - _row(values), 0), seed)


def across_tasks(tasks: Sequence[ArrayLike], of: str = "mean", seed: int = 0) -> Estimate:
    """Return a statistic of each task, averaged over the tasks.

    All tasks have the same weight, whatever the number of their runs. The interval is by the
    stratified bootstrap: runs are drawn anew within each task. It is over runs, not over tasks,
    which are these and no others.

    Args:
        tasks: For each task the scores of its runs, on a scale that all tasks share.
        of: `mean`, `interquartile mean`, or `optimality gap` (the shortfall below 1), of each task
            and then averaged; or `pooled interquartile mean`, that of the runs of all tasks
            together, which leaves something out even if every task has few runs.
        seed: Of the bootstrap.

    Returns:
        The estimate; `n` is the number of runs of the task that has fewest.
    """
    if of not in (*_STATISTICS, POOLED):
        raise unknown("statistic", of, (*_STATISTICS, POOLED))
    data = _rows(tasks)

    def averaged(*samples: np.ndarray, axis: int = -1) -> Any:
        if of == POOLED:
            return _trimmed_mean(np.concatenate(samples, axis=axis), axis=axis)
        return np.mean([_STATISTICS[of](sample, axis=axis) for sample in samples], axis=0)

    found, n = float(averaged(*data)), min(row.size for row in data)
    if n < MIN_BOOTSTRAP:
        return _without_interval(found, n)
    if all(np.ptp(row) == 0 for row in data):
        return Estimate(found, found, found, n)
    return _drawn(data, averaged, found, n, seed)


def probability_of_improvement(ours: ArrayLike, theirs: ArrayLike, seed: int = 0) -> Estimate:
    """Return the probability that one of our runs is above one of theirs; ties count half.

    The interval is bootstrapped over the runs of both; `n` is the smaller number of runs.

    Args:
        ours: The results of our runs.
        theirs: The results of their runs.
        seed: Of the bootstrap.
    """
    return improvement_across_tasks([ours], [theirs], seed)


def improvement_across_tasks(
    ours: Sequence[ArrayLike], theirs: Sequence[ArrayLike], seed: int = 0
) -> Estimate:
    """Return the probability of improvement in each task, averaged over the tasks.

    The interval is by the bootstrap over the runs of both, stratified by task; `n` is the number of
    runs where they are fewest. Returns of different tasks need no common scale.

    Args:
        ours: For each task the results of our runs.
        theirs: For each task, in the same order, the results of their runs.
        seed: Of the bootstrap.
    """
    from scipy import stats

    data, num_tasks = [*_rows(ours), *_rows(theirs)], len(ours)
    if len(theirs) != num_tasks:
        raise InputError(f"There are {num_tasks} tasks of ours, but {len(theirs)} of theirs.")

    def chance(*samples: np.ndarray, axis: int = -1) -> Any:
        pairs = zip(samples[:num_tasks], samples[num_tasks:], strict=True)
        return np.mean(
            [
                stats.mannwhitneyu(a, b, axis=axis, method="asymptotic").statistic
                / (a.shape[axis] * b.shape[axis])
                for a, b in pairs
            ],
            axis=0,
        )

    mean, n = float(chance(*data)), min(row.size for row in data)
    if n < MIN_BOOTSTRAP:
        return _without_interval(mean, n)
    return _drawn(data, chance, mean, n, seed)


def welch_p_value(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Return the p-value of Welch's t-test; NaN if one of them has a single run.

    Args:
        ours: The results of our runs.
        theirs: The results of their runs.
    """
    from scipy import stats

    one, two = _row(ours), _row(theirs)
    if min(one.size, two.size) < 2:
        return float("nan")
    if np.ptp(one) == 0 and np.ptp(two) == 0:
        return 0.0 if one[0] != two[0] else 1.0
    found: Any = stats.ttest_ind(one, two, equal_var=False)
    return float(found.pvalue)


def is_significantly_above(ours: ArrayLike, others: Mapping[str, ArrayLike]) -> bool:
    """Return whether our mean is significantly above that of each of the others.

    Args:
        ours: The results of our runs.
        others: The results of the others' runs, by name.
    """
    mean = _row(ours).mean()
    return bool(others) and all(
        mean > _row(theirs).mean() and welch_p_value(ours, theirs) < SIGNIFICANCE_LEVEL
        for theirs in others.values()
    )


def performance_profile(values: ArrayLike, levels: ArrayLike) -> list[Estimate]:
    """Return the share of runs above each level, with exact binomial (Clopper-Pearson) intervals.

    Args:
        values: The results of the runs.
        levels: The levels.
    """
    from scipy import stats

    data = _row(values)
    n = data.size

    def share(count: int) -> Estimate:
        if n < MIN_BOOTSTRAP:
            return _without_interval(count / n, n)
        found = stats.binomtest(count, n).proportion_ci(method="exact")
        return Estimate(count / n, float(found.low), float(found.high), n)

    shares = [share(count) for count in range(n + 1)]
    return [shares[int((data > level).sum())] for level in _row(levels)]


def profile_across_tasks(
    tasks: Sequence[ArrayLike], levels: ArrayLike, seed: int = 0
) -> list[Estimate]:
    """Return the share of runs above each level, averaged over the tasks.

    Intervals are by the bootstrap over runs, stratified by task, for each level by itself.

    Args:
        tasks: For each task the scores of its runs, on a scale that all tasks share.
        levels: The levels.
        seed: Of the bootstrap.
    """
    above = [(row > _row(levels)[:, None]).astype(np.float64) for row in _rows(tasks)]
    shares = np.mean([each.mean(axis=1) for each in above], axis=0).tolist()
    n = min(each.shape[1] for each in above)
    if n < MIN_BOOTSTRAP:
        return [_without_interval(share, n) for share in shares]
    generator = np.random.default_rng(seed)
    drawn = np.zeros((NUM_RESAMPLES, len(shares)))
    for each in above:
        # How often each run is drawn is all that a share depends on.
        size = each.shape[1]
        times = generator.multinomial(size, np.full(size, 1 / size), NUM_RESAMPLES)
        drawn += times @ each.T / (size * len(above))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0).tolist()
    return [Estimate(*each, n) for each in zip(shares, low, high, strict=True)]


def _trimmed_mean(data: np.ndarray, axis: int = -1) -> Any:
    """Return the mean without the best and the worst quarter."""
    from scipy import stats

    return stats.trim_mean(data, 0.25, axis=axis)


def _mean_shortfall(data: np.ndarray, axis: int = -1) -> Any:
    """Return the mean shortfall below 1."""
    return np.mean(np.maximum(1 - data, 0), axis=axis)


_STATISTICS: Mapping[str, Callable[..., Any]] = {
    "mean": np.mean,
    "interquartile mean": _trimmed_mean,
    "optimality gap": _mean_shortfall,
}


def _drawn(
    data: Sequence[np.ndarray], statistic: Callable[..., Any], found: float, n: int, seed: int
) -> Estimate:
    """Return a statistic of several samples with its percentile interval; each is drawn anew."""
    from scipy import stats

    generator = np.random.default_rng(seed)
    drawn = stats.bootstrap(data, statistic, method="percentile", rng=generator)
    low, high = drawn.confidence_interval
    return Estimate(found, float(low), float(high), n)


def _bootstrapped(statistic: Callable[..., Any], values: ArrayLike, seed: int) -> Estimate:
    data = _row(values)
    found, n = float(statistic(data)), data.size
    if n < MIN_BOOTSTRAP:
        return _without_interval(found, n)
    if np.ptp(data) == 0:
        return Estimate(found, found, found, n)
    from scipy import stats

    generator = np.random.default_rng(seed)
    drawn = stats.bootstrap((data,), statistic, rng=generator)
    low, high = drawn.confidence_interval
    return Estimate(found, float(low), float(high), n)


def _without_interval(mean: float, n: int) -> Estimate:
    """Return an estimate without an interval."""
    return Estimate(mean, float("nan"), float("nan"), n)


def _rows(tasks: Sequence[ArrayLike]) -> list[np.ndarray]:
    if not len(tasks):
        raise InputError("There are no tasks to average over.")
    return [_row(values) for values in tasks]


def _row(values: ArrayLike) -> np.ndarray:
    data = np.asarray(values, np.float64).ravel()
    if data.size == 0:
        raise InputError("There are no values to estimate from.")
    return data
