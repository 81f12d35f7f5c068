"""How level-based foraging looks."""

from typing import Any

import numpy as np
from rich.text import Text

from dropin.adhoc import AdHoc, TimeStep
from dropin.render.picture import Canvas, Names, colour_of

APPLE, LEAF = "#c8553d", "#5b8c5a"


def board(env: AdHoc) -> tuple[int, int]:
    """Rows and columns."""
    size = env.game.size  # pyright: ignore[reportAttributeAccessIssue]
    return size, size


def draw(canvas: Canvas, env: AdHoc, state: Any, arrived: np.ndarray, names: Names) -> None:
    """Agents as discs and objects as apples, each with its level, on the grid."""
    canvas.grid(board(env)[0])
    for row, column, level in np.asarray(state.objects).tolist():
        if level > 0:
            canvas.disc(row, column, 0.34, APPLE)
            canvas.stroke(row - 0.34, column, row - 0.45, column + 0.1, LEAF)
            canvas.label(row, column, str(level), "white")
    for slot, (row, column, level) in enumerate(np.asarray(state.agents).tolist()):
        if level == 0:
            continue
        if arrived[slot]:
            canvas.ring(row, column, 0.47, "#e0a100")
        canvas.disc(row, column, 0.38, colour_of(slot))
        if slot == 0:
            canvas.ring(row, column, 0.38, "#1b1b1b")
        canvas.label(row - 0.08, column, str(level), "white")
        canvas.caption(row + 0.19, column, names[slot], "white")


def text(env: AdHoc, state: Any, arrived: np.ndarray) -> Text:
    """The grid in characters: @ the learner, b, c, ... teammates, * objects, each with its level.

    Newcomers stand on a bright ground.
    """
    size, _ = board(env)
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    for row, column, level in np.asarray(state.objects).tolist():
        cells[row, column] = (f"*{level}", APPLE)
    for slot, (row, column, level) in enumerate(np.asarray(state.agents).tolist()):
        mark = "@" if slot == 0 else chr(ord("a") + slot % 26)
        style = f"bold {colour_of(slot)}"
        cells[row, column] = (f"{mark}{level}", f"{style} on #fff3c4" if arrived[slot] else style)
    picture = Text()
    for row in range(size):
        for column in range(size):
            what, style = cells.get((row, column), (" ·", "dim"))
            picture.append(f"{what:>3}", style)
        picture.append("\n")
    return picture


def tell(state: Any, step: TimeStep, names: Names) -> list[str]:
    """Who collected what in a step."""
    sentences = []
    levels = np.asarray(state.objects)[:, 2]
    for number, loaders in enumerate(np.asarray(step.happened.collected).T):
        who = [names[slot] for slot in np.flatnonzero(loaders).tolist()]
        if who:
            verb = "collects" if len(who) == 1 else "collect"
            sentences.append(f"{' and '.join(who)} {verb} an object of level {levels[number]}")
    return sentences


def describe(state: Any, slot: int) -> str:
    """An agent in a few words."""
    return f"level {int(state.agents[slot, 2])}"
