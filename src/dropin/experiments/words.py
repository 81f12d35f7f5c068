"""How numbers are put into the cells of tables, and what is said beside them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dropin.evaluation.statistics import Estimate, estimate
from dropin.published import Published

NOTHING = "–"
"""A cell for which there is no number."""
CHOICE = (
    "The checkpoint is the one with the best mean return in training over the runs of a learner,"
    " the same for all of them; the policy is greedy."
)
STARS = (
    "An asterisk: the mean is above that of each of QL, QL-AM, GNN and GNN-AM, and the chance of"
    " such a difference without any is below 0.05 each time (Welch's t-test over runs, not"
    " corrected for the number of comparisons). The paper does not name its test."
)
PICTURE = "The paper shows this as a picture, without numbers."


def cell(values: Sequence[float]) -> str:
    """A mean with its interval over runs and their number."""
    found = estimate(values)
    interval = f"{found.interval}; " if found.n > 1 else ""
    return f"{found.mean:.2f} ({interval}n = {found.n})"


def short(values: Sequence[float]) -> str:
    """A mean and half the width of its interval, as the paper's tables have it."""
    found = estimate(values)
    width = f" ± {(found.high - found.low) / 2:.2f}" if found.n > 1 else ""
    return f"{found.mean:.2f}{width}"


def theirs(found: Published | None) -> str:
    """What the paper says."""
    return NOTHING if found is None else str(found)


def joined(*words: str) -> str:
    """Those that are not empty."""
    return " ".join(filter(None, words))


def plain(found: Estimate | None) -> dict[str, Any] | None:
    """An estimate as plain values; what is not a number is none."""
    if found is None:
        return None
    low, high = finite(found.low), finite(found.high)
    return {"mean": found.mean, "low": low, "high": high, "n": found.n}


def finite(value: float | None) -> float | None:
    """None if it is not a number."""
    return value if value is not None and np.isfinite(value) else None
