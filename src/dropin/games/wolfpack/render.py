"""How Wolfpack looks, as a picture and as text; the module is a `Renderer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from rich.text import Text

from dropin.core.observation import TimeStep
from dropin.games.drawing import Canvas, Names, agent_mark, draw_agent, grid_text, join_names
from dropin.games.wolfpack.game import Wolfpack
from dropin.games.wolfpack.state import MOVES, State

if TYPE_CHECKING:
    from dropin.env import AdHocEnv, AnyEnv, EnvState

__all__ = ["board_size", "describe_agent", "describe_events", "draw", "text"]

PREY_COLOUR, EYE_COLOUR, CAPTURED_COLOUR = "#c8553d", "#fbfaf7", "#8c1c13"
PREY_MARKS = "^>v<"
"""The character of a prey for each direction it can face."""


def board_size(env: AnyEnv) -> tuple[float, float]:
    """Return the rows and columns of the grid."""
    return _grid_size(env), _grid_size(env)


def _grid_size(env: AnyEnv) -> int:
    return cast(Wolfpack, env.game).size


def draw(
    canvas: Canvas,
    env: AdHocEnv[State],
    state: EnvState[State],
    names: Names,
    step: TimeStep | None = None,
) -> None:
    """Draw a state.

    Hunters are discs. Prey are smaller discs with an eye on the side they face; a captured prey is
    crossed out.

    Args:
        canvas: Where to draw.
        env: The environment.
        state: Its state.
        names: What to call the agent in each slot.
        step: Not used; the picture does not show what follows.
    """
    del step
    game_state, arrived = state.game, np.asarray(state.arrived)
    canvas.grid(_grid_size(env))
    captured = np.asarray(game_state.captured).tolist()
    facing = np.asarray(game_state.facing).tolist()
    for index, (row, column) in enumerate(np.asarray(game_state.prey).tolist()):
        down, right = (0.18 * MOVES[facing[index]]).tolist()
        canvas.disc(row, column, 0.3, PREY_COLOUR)
        canvas.disc(row + down, column + right, 0.09, EYE_COLOUR)
        if captured[index]:
            canvas.ring(row, column, 0.46, CAPTURED_COLOUR)
            canvas.stroke(row - 0.3, column - 0.3, row + 0.3, column + 0.3, CAPTURED_COLOUR)
            canvas.stroke(row - 0.3, column + 0.3, row + 0.3, column - 0.3, CAPTURED_COLOUR)
    for slot, (row, column) in enumerate(np.asarray(game_state.hunters).tolist()):
        if row >= 0:
            draw_agent(canvas, slot, row, column, names[slot], arrived=bool(arrived[slot]))


def text(env: AdHocEnv[State], state: EnvState[State]) -> Text:
    """Return a state as text for the terminal.

    `@` is the learner, `b`, `c` and so on are teammates; a prey is an arrow in the direction it
    faces, or an `x` if it was captured. Newcomers have a bright background.
    """
    game_state, arrived = state.game, np.asarray(state.arrived)
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    captured = np.asarray(game_state.captured).tolist()
    facing = np.asarray(game_state.facing).tolist()
    for index, (row, column) in enumerate(np.asarray(game_state.prey).tolist()):
        mark = "x" if captured[index] else PREY_MARKS[facing[index]]
        cells[row, column] = (mark, f"bold {PREY_COLOUR}")
    for slot, (row, column) in enumerate(np.asarray(game_state.hunters).tolist()):
        if row >= 0:
            cells[row, column] = agent_mark(slot, "", bool(arrived[slot]))
    size = _grid_size(env)
    return grid_text(size, size, cells)


def describe_events(state: State, step: TimeStep, names: Names) -> list[str]:
    """Return a sentence, without a full stop, for each prey that was captured in a step.

    Args:
        state: Not used; the events tell all.
        step: The step.
        names: What to call the agent in each slot.
    """
    del state
    sentences = []
    for pack in np.asarray(step.events.captured).T:
        members = [names[slot] for slot in np.flatnonzero(pack).tolist()]
        if members:
            sentences.append(f"{join_names(members, 'capture')} a prey")
    return sentences


def describe_agent(state: State, slot: int) -> str:
    """Describe the agent in a slot in a few words."""
    row, column = np.asarray(state.hunters[slot]).tolist()
    return f"in row {row}, column {column}"
