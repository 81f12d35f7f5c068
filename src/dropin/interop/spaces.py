"""Observations and actions as Gymnasium spaces."""

from typing import Any

import numpy as np

from dropin.adhoc import AdHoc, Observation
from dropin.errors import InputError, MissingExtraError
from dropin.games.base import Feature

try:
    from gymnasium import spaces
except ImportError:
    raise MissingExtraError("The view for other tools", "envs") from None


def observation_space(env: AdHoc) -> spaces.Space[Any]:
    """A dictionary of the fields of `Observation`; sides only where there are two."""
    slots = env.slots
    agents, shared = env.game.features(slots)
    low, high = _bounds(agents)
    fields: dict[str, spaces.Space[Any]] = {
        "agents": spaces.Box(np.tile(low, (slots, 1)), np.tile(high, (slots, 1))),
        "shared": spaces.Box(*_bounds(shared)),
        "present": spaces.MultiBinary(slots),
        "arrived": spaces.MultiBinary(slots),
    }
    if any(env.sides):
        fields["sides"] = spaces.MultiBinary(slots)
    return spaces.Dict(fields)


def _bounds(features: Any) -> tuple[np.ndarray, np.ndarray]:
    def lowest(each: Feature) -> float:
        return min(each.low, each.absent)

    low = np.array([lowest(each) for each in features], np.float32)
    high = np.array([max(each.high, each.absent) for each in features], np.float32)
    return low, high


def action_space(env: AdHoc) -> spaces.Space[Any]:
    """The numbers of the game's actions."""
    return spaces.Discrete(len(env.game.actions))


def as_dict(observation: Observation) -> dict[str, np.ndarray]:
    """An observation as the dictionary that the space describes."""
    fields = {
        "agents": np.asarray(observation.agents),
        "shared": np.asarray(observation.shared),
        "present": np.asarray(observation.present, np.int8),
        "arrived": np.asarray(observation.arrived, np.int8),
    }
    if any(observation.sides):
        fields["sides"] = np.asarray(observation.sides, np.int8)
    return fields


def check_action(env: AdHoc, action: Any) -> int:
    """The action as a number, or `InputError`."""
    names = env.game.actions
    number = np.asarray(action)
    if number.shape != () or not np.issubdtype(number.dtype, np.integer):
        raise InputError(f"Action {action!r} is not a whole number.")
    if not 0 <= number < len(names):
        raise InputError(
            f"Action {int(number)} is out of range: it can be 0 ({names[0]}) to"
            f" {len(names) - 1} ({names[-1]})."
        )
    return int(number)
