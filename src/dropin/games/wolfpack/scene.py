"""States of Wolfpack for a web page."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from dropin.core.observation import TimeStep
from dropin.games.scenes import Scene, grid_scene
from dropin.games.wolfpack.game import Wolfpack
from dropin.games.wolfpack.state import State

if TYPE_CHECKING:
    from dropin.env import AdHocEnv, EnvState

__all__ = ["scene"]


def scene(
    env: AdHocEnv[State],
    state: EnvState[State],
    step: TimeStep | None = None,
    previous: EnvState[State] | None = None,
) -> Scene:
    """Return a state as a scene on a grid, see `dropin.games.scenes.grid_scene`.

    Args:
        env: The environment.
        state: The state.
        step: The step that led to it.
        previous: Not used.

    Returns:
        Items are `{"kind": "prey", "id", "row", "column", "facing", "captured"}`; a captured prey
        is where it was captured, and elsewhere in the next state. Marks are
        `{"kind": "captured", "row", "column", "slots"}`.
    """
    del previous
    size = cast(Wolfpack, env.game).size
    prey = np.asarray(state.game.prey).tolist()
    facing = np.asarray(state.game.facing).tolist()
    captured = np.asarray(state.game.captured).tolist()
    items = [
        {
            "kind": "prey",
            "id": index,
            "row": row,
            "column": column,
            "facing": facing[index],
            "captured": captured[index],
        }
        for index, (row, column) in enumerate(prey)
    ]
    agents = [
        {"slot": slot, "row": row, "column": column}
        for slot, (row, column) in enumerate(np.asarray(state.game.hunters).tolist())
        if row >= 0
    ]
    marks: list[Scene] = []
    if step is not None:
        packs = np.asarray(step.events.captured)
        for index in np.flatnonzero(packs.any(axis=0)).tolist():
            row, column = prey[index]
            slots = np.flatnonzero(packs[:, index]).tolist()
            marks.append({"kind": "captured", "row": row, "column": column, "slots": slots})
    return grid_scene(size, size, items, agents, marks)
