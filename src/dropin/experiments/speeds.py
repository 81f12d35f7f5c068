"""About how long a run takes, for plans."""

from dropin.learners import find
from dropin.training.config import RunConfig

STEPS_A_SECOND: dict[str, dict[str, float]] = {
    "lbf": {
        "gpl-q": 5700, "gpl-spi": 5500, "ql": 27700, "ql-am": 9300, "gnn": 6100, "gnn-am": 4100,
        "dgn": 4000, "maddpg": 3900,
    },
}  # fmt: skip
"""Of training, one process on one core of an AMD EPYC: other machines differ."""
OTHERS = {"lbf": 1.0, "wolfpack": 0.9, "fortattack": 0.3}
EPISODE = {"lbf": 30, "wolfpack": 200, "fortattack": 60}
"""Steps of an episode, about."""
PLAYING = 4.0
"""So many steps of an evaluation take as long as one of training."""
START = 40.0
"""Seconds until the first update, compilation included."""


def seconds(config: RunConfig) -> float:
    """About how long a whole run takes on one core."""
    rate = _rate(config)
    entry = find(config.learner)
    how = config.evaluation
    ways = (1 + len(how.team_limits)) * (2 if entry.joint else 1)
    ways *= 2 if config.settings.soft else 1
    played = how.envs * how.episodes * EPISODE.get(config.game, 100) * ways
    times = 1 + config.steps / config.checkpoint_every
    return START + config.steps / rate + times * played / (PLAYING * rate)


def _rate(config: RunConfig) -> float:
    learners = STEPS_A_SECOND.get(config.game)
    if learners and config.learner in learners:
        return learners[config.learner]
    usual = STEPS_A_SECOND["lbf"].get(config.learner, 4000)
    return usual * OTHERS.get(config.game, 0.5)
