"""How Wolfpack looks."""

from typing import Any

import numpy as np
from rich.text import Text

from dropin.adhoc import AdHoc, EnvState, TimeStep
from dropin.games.wolfpack.game import MOVES
from dropin.render.grid import agent_mark, board, draw_agent, grid_text, together
from dropin.render.picture import Canvas, Names

PREY, EYE, CAUGHT = "#c8553d", "#fbfaf7", "#8c1c13"
ARROWS = "^>v<"

__all__ = ["board", "describe", "draw", "tell", "text"]


def draw(
    canvas: Canvas, env: AdHoc, now: EnvState, names: Names, step: TimeStep | None = None
) -> None:
    """Hunters as discs; prey as smaller ones that look where they face, crossed out if captured."""
    del step
    state, arrived = now.game, np.asarray(now.arrived)
    canvas.grid(board(env)[0])
    captured = np.asarray(state.captured).tolist()
    facing = np.asarray(state.facing).tolist()
    for number, (row, column) in enumerate(np.asarray(state.prey).tolist()):
        down, right = (0.18 * MOVES[facing[number]]).tolist()
        canvas.disc(row, column, 0.3, PREY)
        canvas.disc(row + down, column + right, 0.09, EYE)
        if captured[number]:
            canvas.ring(row, column, 0.46, CAUGHT)
            canvas.stroke(row - 0.3, column - 0.3, row + 0.3, column + 0.3, CAUGHT)
            canvas.stroke(row - 0.3, column + 0.3, row + 0.3, column - 0.3, CAUGHT)
    for slot, (row, column) in enumerate(np.asarray(state.hunters).tolist()):
        if row >= 0:
            draw_agent(canvas, slot, row, column, names[slot], arrived=bool(arrived[slot]))


def text(env: AdHoc, now: EnvState) -> Text:
    """The grid in characters: @ the learner, b, c, ... teammates, an arrow for each prey.

    Newcomers stand on a bright ground; a prey that was captured is an x.
    """
    state, arrived = now.game, np.asarray(now.arrived)
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    captured = np.asarray(state.captured).tolist()
    facing = np.asarray(state.facing).tolist()
    for number, (row, column) in enumerate(np.asarray(state.prey).tolist()):
        cells[row, column] = ("x" if captured[number] else ARROWS[facing[number]], f"bold {PREY}")
    for slot, (row, column) in enumerate(np.asarray(state.hunters).tolist()):
        if row >= 0:
            cells[row, column] = agent_mark(slot, "", bool(arrived[slot]))
    return grid_text(*board(env), cells)


def tell(state: Any, step: TimeStep, names: Names) -> list[str]:
    """Who captured a prey in a step."""
    del state
    sentences = []
    for pack in np.asarray(step.happened.captured).T:
        who = [names[slot] for slot in np.flatnonzero(pack).tolist()]
        if who:
            sentences.append(f"{together(who, 'capture')} a prey")
    return sentences


def describe(state: Any, slot: int) -> str:
    """An agent in a few words."""
    row, column = np.asarray(state.hunters[slot]).tolist()
    return f"in row {row}, column {column}"
