"""Runs that take a second, once they are compiled."""

from dropin.training.chunk import TrainConfig
from dropin.training.config import EvaluationConfig
from dropin.training.loop import train

NETWORKS = ("type_units", "type_memory", "type_size", "message_units", "embedding", "readout_units")
SIZES = dict.fromkeys(NETWORKS, 4)
"""Of every learner."""
SETTINGS = {**SIZES, "graph_units": 4, "rank": 2}
TRAINING = TrainConfig(envs=2, period=2)
EVALUATION = EvaluationConfig(envs=2, episodes=1, team_limits=(4,))
RUN = {
    "types": ["H6"],
    "steps": 120,
    "log_every": 20,
    "checkpoint_every": 40,
    "report": "none",
    "training": TRAINING,
    "evaluation": EVALUATION,
    **SETTINGS,
}

ARGUMENTS = [
    "--types", "H6", "--steps", "120", "--checkpoint-every", "40", "--test-limits", "4", "--set",
    "log_every=20", "training.envs=2", "training.period=2", "evaluation.envs=2",
    "evaluation.episodes=1", *(f"settings.{name}={value}" for name, value in SETTINGS.items()),
]  # fmt: skip
"""The same run as options of `dropin train`."""


def run(directory, learner="gpl-q", **changes):
    return train("lbf", learner, directory=directory, **(RUN | changes))
