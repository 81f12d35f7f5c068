"""Runs that take a second, once they are compiled."""

from dropin.training.config import EvaluationConfig, TrainConfig
from dropin.training.loop import train

NETWORKS = (
    "type_hidden_size",
    "type_lstm_size",
    "type_vector_size",
    "message_hidden_size",
    "embedding_size",
    "readout_hidden_size",
)
SIZES = dict.fromkeys(NETWORKS, 4)
"""Settings of every learner."""
SETTINGS = {**SIZES, "utility_hidden_size": 4, "rank": 2}
TRAINING = TrainConfig(num_envs=2, rollout_length=2)
EVALUATION = EvaluationConfig(num_envs=2, episodes=1, team_limits=(4,))
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
    "log_every=20", "training.num_envs=2", "training.rollout_length=2", "evaluation.num_envs=2",
    "evaluation.episodes=1", *(f"settings.{name}={value}" for name, value in SETTINGS.items()),
]  # fmt: skip
"""The same run as options of `dropin train`."""


def run(directory, learner="gpl-q", **changes):
    """Train in level-based foraging."""
    return train("lbf", learner, directory=directory, **(RUN | changes))
