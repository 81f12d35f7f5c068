"""How level-based foraging looks, as a picture, as terminal text and in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from dropin.core.observation import TimeStep
from dropin.games.drawing import Canvas, Names, agent_mark, draw_agent, grid_text, join_names

if TYPE_CHECKING:
    from dropin.env import AdHocEnv, EnvState
    from dropin.games.lbf.game import State

__all__ = ["board_size", "describe_agent", "describe_events", "draw", "text"]

APPLE, LEAF = "#c8553d", "#5b8c5a"


def board_size(env: AdHocEnv[State]) -> tuple[int, int]:
    """Return the rows and columns of the grid."""
    size: int = env.game.size  # pyright: ignore[reportAttributeAccessIssue]
    return size, size


def draw(
    canvas: Canvas,
    env: AdHocEnv[State],
    state: EnvState[State],
    names: Names,
    step: TimeStep | None = None,
) -> None:
    """Draw agents as discs and objects as apples, each with its level, on the grid.

    Args:
        canvas: Where to draw.
        env: The environment.
        state: Its state.
        names: What to call the agent in each slot.
        step: Not used.
    """
    del step
    canvas.grid(board_size(env)[0])
    for row, column, level in np.asarray(state.game.objects).tolist():
        if level > 0:
            canvas.disc(row, column, 0.34, APPLE)
            canvas.stroke(row - 0.34, column, row - 0.45, column + 0.1, LEAF)
            canvas.label(row, column, str(level), "white")
    arrived = np.asarray(state.arrived).tolist()
    for slot, (row, column, level) in enumerate(np.asarray(state.game.agents).tolist()):
        if level > 0:
            draw_agent(
                canvas, slot, row, column, names[slot], label=str(level), arrived=arrived[slot]
            )


def text(env: AdHocEnv[State], state: EnvState[State]) -> Text:
    """Return a state as text for the terminal.

    The learner is `@`, teammates are `b`, `c`, and so on, and objects are `*`, each followed by its
    level. Newcomers have a bright background.
    """
    arrived = np.asarray(state.arrived).tolist()
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    for row, column, level in np.asarray(state.game.objects).tolist():
        cells[row, column] = (f"*{level}", APPLE)
    for slot, (row, column, level) in enumerate(np.asarray(state.game.agents).tolist()):
        cells[row, column] = agent_mark(slot, str(level), arrived[slot])
    return grid_text(*board_size(env), cells)


def describe_events(state: State, step: TimeStep, names: Names) -> list[str]:
    """Return a sentence, without a full stop, on each object collected in a step.

    Args:
        state: The state of the game before the step.
        step: The step.
        names: What to call the agent in each slot.
    """
    sentences = []
    levels = np.asarray(state.objects)[:, 2]
    for index, loaders in enumerate(np.asarray(step.events.collected).T):
        collectors = [names[slot] for slot in np.flatnonzero(loaders).tolist()]
        if collectors:
            who = join_names(collectors, "collect")
            sentences.append(f"{who} an object of level {levels[index]}")
    return sentences


def describe_agent(state: State, slot: int) -> str:
    """Describe the agent in a slot in a few words."""
    return f"level {int(state.agents[slot, 2])}"
