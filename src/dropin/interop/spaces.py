"""What the views for other libraries share: spaces, observations as dictionaries, checks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dropin.core.config import PlainMapping
from dropin.core.errors import InputError, MissingExtraError
from dropin.core.observation import Feature, Observation
from dropin.env import AdHocEnv, AnyEnv, make

try:
    from gymnasium import spaces
except ImportError:
    raise MissingExtraError("The view for other libraries", "envs") from None

__all__ = [
    "action_space",
    "check_action",
    "make_or_take",
    "observation_as_dict",
    "observation_space",
]


def make_or_take(game: str | AnyEnv, settings: PlainMapping) -> AnyEnv:
    """Make an environment by the name of its game, or return the one that is given.

    Args:
        game: Name of a registered game, or an environment.
        settings: Arguments of `dropin.make` besides the name; none if an environment is given.

    Raises:
        InputError: If settings are given together with an environment, or cannot be used.
    """
    if isinstance(game, str):
        return make(game, **settings)
    if not isinstance(game, AdHocEnv):
        raise InputError(f"{game!r} is neither the name of a game nor an AdHocEnv.")
    if settings:
        raise InputError(
            f"The environment is given as an object, so {', '.join(settings)} cannot be set: set"
            " it when the environment is made, or give the name of a game."
        )
    return game


def observation_space(env: AnyEnv) -> spaces.Space[Any]:
    """Return the space of `observation_as_dict`: a dictionary of the fields of `Observation`.

    `sides` is part of it only in games with two sides.
    """
    slots = env.slots
    agents, shared = env.game.features(env.team.slots)
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


def _bounds(features: Sequence[Feature]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest value of each feature, its value if absent included."""
    low = np.array([min(each.low, each.absent) for each in features], np.float32)
    high = np.array([max(each.high, each.absent) for each in features], np.float32)
    return low, high


def action_space(env: AnyEnv) -> spaces.Space[Any]:
    """Return the space of the game's actions."""
    return spaces.Discrete(len(env.game.actions))


def observation_as_dict(observation: Observation) -> dict[str, np.ndarray]:
    """Return an observation as the dictionary that `observation_space` describes."""
    fields = {
        "agents": np.asarray(observation.agents),
        "shared": np.asarray(observation.shared),
        "present": np.asarray(observation.present, np.int8),
        "arrived": np.asarray(observation.arrived, np.int8),
    }
    if any(observation.sides):
        fields["sides"] = np.asarray(observation.sides, np.int8)
    return fields


def check_action(env: AnyEnv, action: Any) -> int:
    """Return an action as a Python integer.

    Args:
        env: The environment.
        action: A whole number of any kind: Python, NumPy or JAX.

    Raises:
        InputError: If it is not the number of an action.
    """
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
