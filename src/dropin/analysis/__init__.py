"""Analysis: what a trained agent makes of what it sees, as arrays.

Every function takes an agent and an environment. `measure` is for questions of one's own.
"""

from dropin.analysis.fortattack import pair_utilities, shooting_values
from dropin.analysis.measure import Thought, measure
from dropin.analysis.training import correlation, over_training
from dropin.analysis.wolfpack import capture_utilities, teammate_utilities

__all__ = [
    "Thought",
    "capture_utilities",
    "correlation",
    "measure",
    "over_training",
    "pair_utilities",
    "shooting_values",
    "teammate_utilities",
]
