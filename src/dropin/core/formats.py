"""Format numbers of files, and how files of format 1 (version 0.1) are brought up to date.

Format 1 has no number in its files. All knowledge of old names is in this module.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import InputError, shown

__all__ = [
    "AGENT_FORMAT",
    "RUN_FORMAT",
    "check_format",
    "upgrade_agent",
    "upgrade_columns",
    "upgrade_run_config",
]

RUN_FORMAT = 2
"""Of `run.json` and the tables beside it."""
AGENT_FORMAT = 2
"""Of agent files and checkpoints."""

_SETTINGS = {
    "type_units": "type_hidden_size",
    "type_memory": "type_lstm_size",
    "type_size": "type_vector_size",
    "message_units": "message_hidden_size",
    "embedding": "embedding_size",
    "readout_units": "readout_hidden_size",
    "first_units": "first_hidden_size",
    "second_units": "second_hidden_size",
    "graph_units": "utility_hidden_size",
    "teammates": "teammate_actions",
    "samples": "num_samples",
    "places": "max_agents_per_side",
    "heads": "num_heads",
    "replay": "replay_capacity",
    "batch": "batch_size",
    "steadiness": "attention_regularization",
    "relaxation": "gumbel_temperature",
    "logit_price": "logit_penalty",
}
"""Settings of learners: old name -> new name."""
_RUN = {"changes": "game_settings", "own_environment": "custom_env"}
_TRAINING = {"envs": "num_envs", "period": "rollout_length", "target_rate": "target_update_rate"}
_SCHEDULE = {"first": "initial", "last": "final", "steps": "num_steps", "every": "update_every"}
_EVALUATION = {"envs": "num_envs"}
_GAMES: dict[str, dict[str, str]] = {
    "wolfpack": {
        "prey": "num_prey",
        "instinct": "prey_policy",
        "share": "capture_reward",
        "penalty": "lone_penalty",
        "shaping": "shaping_weight",
    },
    "fortattack": {
        "attackers": "num_attackers",
        "fewer": "fewer_attackers",
        "heading": "heading_encoding",
        "fort": "fort_radius",
        "band": "spawn_depth",
        "spread": "guard_spawn_half_width",
        "radius": "agent_radius",
        "top_speed": "max_speed",
        "turn": "turn_angle",
        "laser": "laser_length",
        "hit": "hit_reward",
        "shot": "shot_cost",
        "victory": "victory_reward",
    },
}
"""Settings of games: old name -> new name."""
_MAKE = {"alike": "shared_type"}
_INTERFACE = {
    "agents": "agent_features",
    "shared": "shared_features",
    "absent": "absent_values",
    "sides": "num_sides",
}
_COLUMNS = {
    "policy": "mode",
    "among": "teammates",
    "mean": "mean_return",
    "low": "ci_low",
    "high": "ci_high",
    "legacy": "legacy_mean_return",
    "unshaped": "unshaped_mean_return",
    "accuracy": "prediction_accuracy",
    "extra_loss": "auxiliary_loss",
}
"""Columns of `evaluation.csv` and `metrics.csv`: old name -> new name."""
_ARRAYS = (
    (r"^learner\.", "network."),
    (r"\.types\.", ".type_network."),
)
"""Paths of an agent's arrays: old pattern -> new text."""
_PARTNERS = ("dgn", "maddpg")
"""Learners of format 1 that were evaluated among partners too."""


def check_format(found: object, newest: int, what: object) -> int:
    """Return the format number of a file.

    Args:
        found: The number in the file; None is format 1.
        newest: The newest format that can be read.
        what: The file, for messages.

    Raises:
        InputError: If it is no number, or one of a later version.
    """
    number = 1 if found is None else found
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InputError(f"{what} has the format {shown(number)}, which is no format of Dropin.")
    if number > newest:
        raise InputError(
            f"{what} has format {number}, but this version of Dropin reads formats 1 to {newest}:"
            " install a newer version."
        )
    return number


def _renamed(values: Any, names: Mapping[str, str]) -> Any:
    """Rename the keys of a mapping; anything else is returned as it is."""
    if not isinstance(values, Mapping):
        return values
    return {names.get(name, name): value for name, value in values.items()}


def upgrade_run_config(values: PlainMapping, found: object, what: object) -> PlainDict:
    """Return the settings of a run in the present format.

    Args:
        values: The settings as they were written.
        found: The format number in the file; None is format 1.
        what: The file, for messages.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{what} has settings that are no group of settings.")
    if check_format(found, RUN_FORMAT, what) == RUN_FORMAT:
        return dict(values)
    config = _renamed(values, _RUN)
    config["settings"] = _renamed(config.get("settings"), _SETTINGS)
    game = str(config.get("game"))
    config["game_settings"] = _renamed(
        config.get("game_settings", {}), {**_GAMES.get(game, {}), **_MAKE}
    )
    if "training" in config:
        training = _renamed(config["training"], _TRAINING)
        for name in ("epsilon", "temperature"):
            if name in training:
                training[name] = _renamed(training[name], _SCHEDULE)
        config["training"] = training
    evaluation = _renamed(config.get("evaluation", {}), _EVALUATION)
    if config.get("learner") in _PARTNERS:
        evaluation["teammates"] = ["strangers", "partners"]
    config["evaluation"] = evaluation
    return config


def upgrade_columns(row: Mapping[str, str]) -> dict[str, str]:
    """Return a row of `evaluation.csv` or `metrics.csv` with the present names of its columns."""
    renamed = _renamed(row, _COLUMNS)
    if "mode" in renamed:
        renamed.setdefault("teammates", "strangers")
    elif "unshaped_mean_return" in renamed:
        renamed["unshaped_return"] = renamed.pop("unshaped_mean_return")
    return renamed


def upgrade_agent(
    arrays: PlainMapping, about: PlainMapping, what: object
) -> tuple[PlainDict, PlainDict]:
    """Return the arrays and the description of an agent in the present format.

    Args:
        arrays: The arrays by their paths.
        about: The description in the file.
        what: The file, for messages.
    """
    if check_format(about.get("format"), AGENT_FORMAT, what) == AGENT_FORMAT:
        return dict(arrays), dict(about)
    new = _renamed(about, {"meets": "interface", "config": "settings"})
    new["settings"] = _renamed(new.get("settings"), _SETTINGS)
    new["interface"] = _renamed(new.get("interface"), _INTERFACE)
    new["format"] = AGENT_FORMAT
    if new.get("kind") == "checkpoint":
        arrays = {name: each for name, each in arrays.items() if name.startswith("learner.")}
        temperature = about.get("temperature", 1.0)
        if isinstance(temperature, bool) or not isinstance(temperature, int | float):
            raise InputError(f"{what} has a temperature that is no number: {shown(temperature)}.")
        arrays["temperature"] = np.array(temperature, np.float32)
    upgraded = {_array_path(name): each for name, each in arrays.items()}
    if len(upgraded) < len(arrays):
        raise InputError(f"{what} is damaged: it has an array under an old and a new name.")
    new["policy_arrays"] = {name: name for name in upgraded}
    return upgraded, new


def _array_path(path: str) -> str:
    for pattern, text in _ARRAYS:
        path = re.sub(pattern, text, path)
    return path
