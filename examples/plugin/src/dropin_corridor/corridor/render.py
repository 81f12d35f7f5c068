"""How the corridor looks: a lane for each agent, so that they do not cover one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from dropin.core.observation import TimeStep
from dropin.games.drawing import Canvas, Names, agent_mark, draw_agent, grid_text, join_names

if TYPE_CHECKING:
    from dropin import AdHocEnv, EnvState
    from dropin_corridor.corridor.game import State

__all__ = ["board_size", "describe_agent", "describe_events", "draw", "text"]

CLOSED, OPEN, FRAME = "#d9b59a", "#dcebd5", "#8a6f5c"


def board_size(env: AdHocEnv[Any]) -> tuple[int, int]:
    """Return the number of lanes, one per slot, and the length of the corridor."""
    return env.slots, env.game.length  # pyright: ignore[reportAttributeAccessIssue]


def draw(
    canvas: Canvas,
    env: AdHocEnv[Any],
    state: EnvState[Any],
    names: Names,
    step: TimeStep | None = None,
) -> None:
    """Draw the gates, brown while they are closed and green once they are open, and the agents."""
    del step
    bottom = env.slots - 0.5
    for cell, is_open in _gates(env, state):
        west, east = cell - 0.5, cell + 0.5
        corners = [(-0.5, west), (-0.5, east), (bottom, east), (bottom, west)]
        canvas.polygon(corners, OPEN if is_open else CLOSED, FRAME)
    arrived = np.asarray(state.arrived).tolist()
    for slot, cell in enumerate(np.asarray(state.game.cell).tolist()):
        if cell >= 0:
            draw_agent(canvas, slot, slot, cell, names[slot], arrived=arrived[slot])


def text(env: AdHocEnv[Any], state: EnvState[Any]) -> Text:
    """Return a state as text: `#` is a closed gate, `=` an open one, `@` the learner."""
    rows, columns = board_size(env)
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    for cell, is_open in _gates(env, state):
        cells |= {(row, cell): ("=" if is_open else "#", FRAME) for row in range(rows)}
    arrived = np.asarray(state.arrived).tolist()
    for slot, cell in enumerate(np.asarray(state.game.cell).tolist()):
        if cell >= 0:
            cells[slot, cell] = agent_mark(slot, "", arrived[slot])
    return grid_text(rows, columns, cells)


def describe_events(state: State, step: TimeStep, names: Names) -> list[str]:
    """Return a sentence, without a full stop, on each gate that was opened in a step."""
    del state
    crews = [np.flatnonzero(crew).tolist() for crew in np.asarray(step.events.opened_by).T]
    return [
        f"{join_names([names[slot] for slot in crew], 'open')} gate {number}"
        for number, crew in enumerate(crews, start=1)
        if crew
    ]


def describe_agent(state: State, slot: int) -> str:
    """Describe the agent in a slot in a few words."""
    return f"cell {int(state.cell[slot])}"


def _gates(env: AdHocEnv[Any], state: EnvState[Any]) -> list[tuple[int, bool]]:
    """Return the cell of each gate and whether it is open."""
    cells = np.asarray(env.game.gate_cells)  # pyright: ignore[reportAttributeAccessIssue]
    return list(zip(cells.tolist(), np.asarray(state.game.is_open).tolist(), strict=True))
