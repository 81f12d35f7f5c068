"""What games on a grid have in common in their looks."""

from collections.abc import Mapping

from rich.text import Text

from dropin.adhoc import AdHoc
from dropin.render.picture import Canvas, colour_of

NEW, NEW_GROUND = "#e0a100", "#fff3c4"

Cells = Mapping[tuple[int, int], tuple[str, str]]
"""Two characters and a style, for each cell where something is."""


def board(env: AdHoc) -> tuple[int, int]:
    """Rows and columns."""
    size = env.game.size  # pyright: ignore[reportAttributeAccessIssue]
    return size, size


def draw_agent(
    canvas: Canvas, slot: int, row: int, column: int, name: str, *, label: str = "", arrived: bool
) -> None:
    """A disc with a name; the learner has a dark rim and newcomers a bright ring."""
    if arrived:
        canvas.ring(row, column, 0.47, NEW)
    canvas.disc(row, column, 0.38, colour_of(slot))
    if slot == 0:
        canvas.ring(row, column, 0.38, "#1b1b1b")
    canvas.label(row - 0.08, column, label, "white")
    canvas.caption(row + (0.19 if label else 0.0), column, name, "white")


def agent_mark(slot: int, label: str, arrived: bool) -> tuple[str, str]:
    """An agent in two characters: @ the learner, b, c, ... others; newcomers stand out."""
    mark = "@" if slot == 0 else chr(ord("a") + slot % 26)
    style = f"bold {colour_of(slot)}"
    return f"{mark}{label}", f"{style} on {NEW_GROUND}" if arrived else style


def grid_text(rows: int, columns: int, cells: Cells) -> Text:
    """The grid in characters."""
    picture = Text()
    for row in range(rows):
        for column in range(columns):
            what, style = cells.get((row, column), ("·", "dim"))
            picture.append(f"{what:>3}", style)
        picture.append("\n")
    return picture


def together(who: list[str], verb: str) -> str:
    """Somebody does something, or several do."""
    return f"{' and '.join(who)} {verb}{'s' if len(who) == 1 else ''}"
