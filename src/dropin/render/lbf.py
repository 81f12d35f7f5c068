"""How level-based foraging looks."""

from typing import Any

import numpy as np
from rich.text import Text

from dropin.adhoc import AdHoc, EnvState, TimeStep
from dropin.render.grid import agent_mark, board, draw_agent, grid_text, together
from dropin.render.picture import Canvas, Names

APPLE, LEAF = "#c8553d", "#5b8c5a"

__all__ = ["board", "describe", "draw", "tell", "text"]


def draw(
    canvas: Canvas, env: AdHoc, now: EnvState, names: Names, step: TimeStep | None = None
) -> None:
    """Agents as discs and objects as apples, each with its level, on the grid."""
    del step
    state, arrived = now.game, np.asarray(now.arrived)
    canvas.grid(board(env)[0])
    for row, column, level in np.asarray(state.objects).tolist():
        if level > 0:
            canvas.disc(row, column, 0.34, APPLE)
            canvas.stroke(row - 0.34, column, row - 0.45, column + 0.1, LEAF)
            canvas.label(row, column, str(level), "white")
    for slot, (row, column, level) in enumerate(np.asarray(state.agents).tolist()):
        if level > 0:
            new = bool(arrived[slot])
            draw_agent(canvas, slot, row, column, names[slot], label=str(level), arrived=new)


def text(env: AdHoc, now: EnvState) -> Text:
    """The grid in characters: @ the learner, b, c, ... teammates, * objects, each with its level.

    Newcomers stand on a bright ground.
    """
    state, arrived = now.game, np.asarray(now.arrived)
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    for row, column, level in np.asarray(state.objects).tolist():
        cells[row, column] = (f"*{level}", APPLE)
    for slot, (row, column, level) in enumerate(np.asarray(state.agents).tolist()):
        cells[row, column] = agent_mark(slot, str(level), bool(arrived[slot]))
    return grid_text(*board(env), cells)


def tell(state: Any, step: TimeStep, names: Names) -> list[str]:
    """Who collected what in a step."""
    sentences = []
    levels = np.asarray(state.objects)[:, 2]
    for number, loaders in enumerate(np.asarray(step.happened.collected).T):
        who = [names[slot] for slot in np.flatnonzero(loaders).tolist()]
        if who:
            sentences.append(f"{together(who, 'collect')} an object of level {levels[number]}")
    return sentences


def describe(state: Any, slot: int) -> str:
    """An agent in a few words."""
    return f"level {int(state.agents[slot, 2])}"
