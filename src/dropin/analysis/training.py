"""How what is measured changes in training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dropin.agents import Agent, load_agent
from dropin.errors import InputError
from dropin.training.directory import RunDirectory

Answer = TypeVar("Answer")


def over_training(
    run: str | Path, analyse: Callable[[Agent], Answer], steps: Sequence[int] | None = None
) -> dict[int, Answer]:
    """What an analysis finds at the checkpoints of a run, by step; at all of which the agent is
    there if no steps are given (`dropin train --keep agents` keeps all)."""
    files = RunDirectory(run)
    files.config()
    agents = {step: files.agent_at(step) for step in (steps or files.steps_with_agent())}
    return {step: analyse(load_agent(path)) for step, path in agents.items()}


@dataclass(frozen=True)
class Correlation:
    """Pearson's, with its 95 % interval and the chance of one as large without any."""

    r: float
    low: float
    high: float
    p: float
    n: int


def correlation(one: ArrayLike, two: ArrayLike) -> Correlation | None:
    """How two series go together; None if there are too few numbers, or one never changes."""
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
