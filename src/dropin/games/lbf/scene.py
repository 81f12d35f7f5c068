"""States of level-based foraging for a web page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from dropin.core.observation import TimeStep
from dropin.games.lbf.game import LBF, State
from dropin.games.scenes import Scene, grid_scene

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
        previous: The state before that step.

    Returns:
        Items are `{"kind": "object", "id", "row", "column", "level"}`, agents have a `level`, and
        marks are `{"kind": "collected", "row", "column", "level", "slots"}`.
    """
    size = cast(LBF, env.game).size
    items = [
        {"kind": "object", "id": row * size + column, "row": row, "column": column, "level": level}
        for row, column, level in np.asarray(state.game.objects).tolist()
        if level > 0
    ]
    agents = [
        {"slot": slot, "row": row, "column": column, "level": level}
        for slot, (row, column, level) in enumerate(np.asarray(state.game.agents).tolist())
        if level > 0
    ]
    marks = () if step is None or previous is None else _collected(previous.game, step)
    return grid_scene(size, size, items, agents, marks)


def _collected(before: State, step: TimeStep) -> Iterator[Scene]:
    """Yield a mark for each object that was collected."""
    loaders = np.asarray(step.events.collected)
    objects = np.asarray(before.objects).tolist()
    for index in np.flatnonzero(loaders.any(axis=0)).tolist():
        row, column, level = objects[index]
        slots = np.flatnonzero(loaders[:, index]).tolist()
        yield {"kind": "collected", "row": row, "column": column, "level": level, "slots": slots}
