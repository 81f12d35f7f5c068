"""How long a run takes, before anything is known of the machine."""

from dropin.core import registry
from dropin.training.config import RunConfig

__all__ = ["estimate_seconds"]

STARTUP_SECONDS = 20.0
"""Time until the first update, compilation included."""
EVALUATION_SPEEDUP = 4.0
"""How many steps of evaluation take as long as one step of training."""


def estimate_seconds(config: RunConfig) -> float:
    """Estimate how long a whole run takes on one core.

    The rates are those of one core of an AMD EPYC, see `LearnerSpec.steps_per_second` and
    `GameSpec.relative_cost`: other machines differ.
    """
    game, learner = registry.games[config.game], registry.learners[config.learner]
    steps_per_second = learner.steps_per_second / game.relative_cost
    evaluation = config.evaluation
    modes = 2 if getattr(config.settings, "is_boltzmann", False) else 1
    ways = (1 + len(evaluation.team_limits)) * len(evaluation.teammates) * modes
    steps = evaluation.num_envs * evaluation.episodes * game.episode_length * ways
    checkpoints = 1 + config.steps / config.checkpoint_every
    evaluating = checkpoints * steps / (EVALUATION_SPEEDUP * steps_per_second)
    return STARTUP_SECONDS + config.steps / steps_per_second + evaluating
