"""Our returns beside the paper's, as sentences that are computed from the numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from dropin.evaluation.published import PublishedMean
from dropin.evaluation.statistics import Estimate, estimate, probability_of_improvement
from dropin.experiments.runs import JOINT_LEARNERS, SINGLE_AGENT_BASELINES, Options

__all__ = [
    "MIN_RUNS",
    "Comparison",
    "agreement_sentence",
    "improvement",
    "join",
    "order_sentence",
    "strongest_baseline",
]

MIN_RUNS = 3
"""With fewer runs, agreement with the paper is not judged."""
MIN_ORDERED = 4
"""The order of fewer learners is not compared."""


@dataclass(frozen=True)
class Comparison:
    """The results of our runs, and the paper's mean."""

    name: str
    """What is compared, as `gpl-q` or `lbf gpl-q`."""
    ours: Sequence[float]
    paper: PublishedMean | None

    @property
    def mean(self) -> float:
        """Our mean."""
        return float(np.mean(self.ours))

    @property
    def difference(self) -> float:
        """Our mean minus the paper's, which has to exist."""
        assert self.paper is not None
        return self.mean - self.paper.mean

    @property
    def side(self) -> int:
        """-1 or 1 if our 95 % interval is below or above the paper's, 0 if they overlap."""
        assert self.paper is not None
        found, paper = estimate(self.ours), self.paper
        above = found.low > paper.mean + paper.half_width
        return int(above) - int(found.high < paper.mean - paper.half_width)

    def __str__(self) -> str:
        assert self.paper is not None
        return f"{self.name} ({self.mean:.2f} against {self.paper.mean:.2f})"


def agreement_sentence(comparisons: Sequence[Comparison], options: Options) -> str:
    """Say for which learners our interval overlaps the paper's, and which are above or below it.

    Args:
        comparisons: The learners; those without a number of the paper are left out.
        options: The options of the experiment; a small version is not compared.
    """
    if options.is_small:
        return "Runs as short as these are not compared with the paper's."
    known = [each for each in comparisons if each.paper is not None]
    judged = [each for each in known if len(each.ours) >= MIN_RUNS]
    if not known:
        return "The paper has no numbers to compare with."
    if not judged:
        ends = sorted(known, key=lambda each: each.difference)
        shown = ends if len(ends) == 1 else (ends[0], ends[-1])
        texts = [f"{each.difference:+.2f} ({each.name})" for each in shown]
        return (
            f"No learner has {MIN_RUNS} runs yet, so agreement with the paper is not judged; our"
            f" means minus the paper's are {' to '.join(texts)}."
        )
    num_overlapping = sum(each.side == 0 for each in judged)
    parts = [f"overlaps the paper's for {num_overlapping} of {len(judged)} learners"]
    for side, text in ((1, "is above it for"), (-1, "is below it for")):
        names = [str(each) for each in judged if each.side == side]
        parts += [f"{text} {join(names)}"] if names else []
    num_few = len(known) - len(judged)
    rest = f" With fewer than {MIN_RUNS} runs, {num_few} more cannot be judged." if num_few else ""
    return f"Our 95 % interval {'; it '.join(parts)}.{rest}"


def order_sentence(comparisons: Sequence[Comparison], options: Options) -> str:
    """Say who has the largest mean, in the paper too, and how far the order agrees.

    Args:
        comparisons: The learners. Those without a number of the paper take part in ours only.
        options: The options of the experiment; a small version is not compared.
    """
    best = max(comparisons, key=lambda each: each.mean)
    if len(comparisons) == 1:
        paper = "" if best.paper is None else f"; in the paper {best.paper.mean:.2f}"
        return f"Only {best.name} has runs ({best.mean:.2f}, n = {len(best.ours)}{paper})."
    text = f"The largest mean is that of {best.name} ({best.mean:.2f}, n = {len(best.ours)})"
    known = [(each, each.paper.mean) for each in comparisons if each.paper is not None]
    if not known or options.is_small:
        return f"{text}."
    theirs, mean = max(known, key=itemgetter(1))
    text += f", in the paper that of {theirs.name} ({mean:.2f})"
    if len(known) < MIN_ORDERED:
        return f"{text}."
    from scipy import stats

    found: Any = stats.kendalltau([each.mean for each, _ in known], [mean for _, mean in known])
    if np.isnan(found.statistic):  # All are equal.
        return f"{text}."
    tau = f"a Kendall correlation of {found.statistic:.2f} with the paper's"
    return f"{text}; over {len(known)} learners the order has {tau}."


def strongest_baseline(returns: Mapping[str, Sequence[float]]) -> str:
    """Return the single-agent baseline with the largest mean; nothing if there is none.

    Args:
        returns: By learner, the return of each run.
    """
    means = {
        name: float(np.mean(returns[name])) for name in SINGLE_AGENT_BASELINES if name in returns
    }
    return max(means, key=means.__getitem__, default="")


def improvement(learner: str, returns: Mapping[str, Sequence[float]]) -> Estimate | None:
    """Return the probability that a run of a learner is above one of the strongest baseline.

    Args:
        learner: The learner.
        returns: By learner, the return of each run.

    Returns:
        The estimate; None for baselines and jointly trained learners, or without a baseline.
    """
    strongest = strongest_baseline(returns)
    if not strongest or learner in (*SINGLE_AGENT_BASELINES, *JOINT_LEARNERS):
        return None
    return probability_of_improvement(returns[learner], returns[strongest])


def join(words: Sequence[str]) -> str:
    """Join words, as `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
