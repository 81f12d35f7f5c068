"""States of FortAttack for a web page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from dropin.core.observation import TimeStep
from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.state import State
from dropin.games.scenes import Scene

if TYPE_CHECKING:
    from dropin.env import AdHocEnv, EnvState

__all__ = ["scene"]

_DIGITS = 3
"""Decimal places of lengths and angles: a thousandth of the plane cannot be seen."""


def scene(
    env: AdHocEnv[State],
    state: EnvState[State],
    step: TimeStep | None = None,
    previous: EnvState[State] | None = None,
) -> Scene:
    """Return a state as a scene on a plane.

    The middle of the plane is (0, 0), x is to the right and y is up; headings are counterclockwise
    angles from the x-axis in radians.

    Args:
        env: The environment.
        state: The state.
        step: The step that led to it.
        previous: The state before that step, in which the shots were fired.

    Returns:
        `{"kind": "plane", "width", "height", "radius", "fort", "agents", "lasers"}`: `radius` is
        that of an agent and `fort` is `{"x", "y", "r"}`. An agent is `{"slot", "x", "y",
        "heading"}`, or `{"slot", "alive": false, "waiting"}` with the steps until it returns (null
        if they are not known). A laser is `{"slot", "x", "y", "heading", "reach", "half_angle"}`:
        a triangle with its apex at (x, y) and two sides of length `reach` at `half_angle` to either
        side of the heading. If it hit somebody, `hits` are their slots.
    """
    game = cast(FortAttack, env.game)
    half_height, reach = float(game.half_height), float(game.laser_length)
    lasers = [] if step is None or previous is None else _lasers(game, step, previous.game, reach)
    return {
        "kind": "plane",
        "width": _short(2 * float(game.half_width)),
        "height": _short(2 * half_height),
        "radius": _short(float(game.agent_radius)),
        "fort": {"x": 0.0, "y": _short(half_height), "r": _short(float(game.fort_radius))},
        "agents": list(_agents(env, state)),
        "lasers": list(lasers),
    }


def _agents(env: AdHocEnv[State], state: EnvState[State]) -> Iterator[Scene]:
    """Yield the agents that are present, and those that wait."""
    present = np.asarray(state.game.present)
    usable = np.asarray(env.game.usable_slots(env.team.slots, env.team.limit))
    # Only the state of `Shooting` is a waiting time per slot.
    waits = np.shape(state.openness) == present.shape
    waiting = np.asarray(state.openness).tolist() if waits else [None] * len(present)
    x, y, heading = _poses(state.game)
    for slot in np.flatnonzero(present | usable).tolist():
        if present[slot]:
            yield {"slot": slot, "x": x[slot], "y": y[slot], "heading": heading[slot]}
        else:
            yield {"slot": slot, "alive": False, "waiting": waiting[slot]}


def _lasers(game: FortAttack, step: TimeStep, before: State, reach: float) -> Iterator[Scene]:
    """Yield the shots of a step."""
    hits, radius = np.asarray(step.events.hits), float(game.agent_radius)
    half_angle = float(game.laser_angle) / 2
    x, y, heading = (np.asarray(each) for each in (before.x, before.y, before.heading))
    for slot in np.flatnonzero(np.asarray(step.events.fired)).tolist():
        angle = float(heading[slot])
        laser: Scene = {
            "slot": slot,
            "x": _short(float(x[slot]) + radius * float(np.cos(angle))),
            "y": _short(float(y[slot]) + radius * float(np.sin(angle))),
            "heading": _short(angle),
            "reach": _short(reach),
            "half_angle": _short(half_angle),
        }
        victims = np.flatnonzero(hits[slot]).tolist()
        yield laser | ({"hits": victims} if victims else {})


def _poses(state: State) -> tuple[list[float], ...]:
    """Return the rounded positions and headings of all slots."""
    columns = (state.x, state.y, state.heading)
    return tuple([_short(value) for value in np.asarray(each).tolist()] for each in columns)


def _short(value: float) -> float:
    return round(value, _DIGITS)
