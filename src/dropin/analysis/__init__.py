"""Analysis: what a trained agent predicts in the states it meets, as arrays.

Every function takes an agent and an environment. `measure` is for measurements of your own.
"""

from dropin.analysis.fortattack import pair_utilities, shooting_values
from dropin.analysis.measure import AgentStep, measure
from dropin.analysis.training import correlation, over_training
from dropin.analysis.wolfpack import capture_utilities, teammate_utilities

__all__ = [
    "AgentStep",
    "capture_utilities",
    "correlation",
    "measure",
    "over_training",
    "pair_utilities",
    "shooting_values",
    "teammate_utilities",
]
