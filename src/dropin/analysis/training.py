"""How measured values change during training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dropin.agents import Agent, load_agent
from dropin.core.errors import InputError
from dropin.training.run_directory import RunDirectory

__all__ = ["Correlation", "correlation", "over_training"]

Result = TypeVar("Result")


def over_training(
    run: str | Path, analyse: Callable[[Agent], Result], steps: Sequence[int] | None = None
) -> dict[int, Result]:
    """Apply an analysis to the agents of a run's checkpoints.

    Args:
        run: The run's directory.
        analyse: The analysis of one agent.
        steps: The steps of the checkpoints; by default all for which the agent is kept
            (`dropin train --keep agents` keeps all of them).

    Returns:
        The result of the analysis at each step.

    Raises:
        InputError: If there is no run, or no checkpoint of a step.
    """
    files = RunDirectory(run)
    files.config()
    agents = {step: files.agent_at(step) for step in (steps or files.steps_with_agent())}
    return {step: analyse(load_agent(path)) for step, path in agents.items()}


@dataclass(frozen=True)
class Correlation:
    """Pearson's correlation of two series."""

    r: float
    """The coefficient."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of its 95 % interval."""
    p: float
    """The p-value of the test against no correlation."""
    n: int
    """Number of pairs."""


def correlation(one: ArrayLike, two: ArrayLike) -> Correlation | None:
    """Return Pearson's correlation of two series of the same length.

    Args:
        one: The first series, of any shape.
        two: The second series.

    Returns:
        The correlation; None if there are fewer than three pairs or a series is constant.

    Raises:
        InputError: If the series are of different lengths.
    """
    from scipy import stats

    a, b = np.asarray(one, float).ravel(), np.asarray(two, float).ravel()
    if a.size != b.size:
        raise InputError(f"The series are of different lengths: {a.size} and {b.size}.")
    if a.size < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    found: Any = stats.pearsonr(a, b)
    interval = found.confidence_interval(0.95)
    return Correlation(
        r=float(found.statistic),
        low=float(interval.low),
        high=float(interval.high),
        p=float(found.pvalue),
        n=a.size,
    )
