"""What the pictures of all games share: a canvas, colours, and a grid of characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from jaxtyping import PyTree
from rich.text import Text

from dropin.core.errors import MissingExtraError
from dropin.core.observation import TimeStep

if TYPE_CHECKING:
    from PIL.Image import Image

    from dropin.env import AnyEnv, AnyEnvState

__all__ = [
    "INK",
    "NEWCOMER",
    "PAPER",
    "Canvas",
    "Cells",
    "Names",
    "Renderer",
    "agent_colour",
    "agent_mark",
    "draw_agent",
    "grid_text",
    "join_names",
]

Names = Sequence[str]
"""What to call the agent in each slot."""
Cells = Mapping[tuple[int, int], tuple[str, str]]
"""Up to two characters and a style, for each cell that is not empty."""

COLOURS = ("#1d6fa5", "#7b5ea7", "#3a7d44", "#b5651d", "#a23b72", "#56707a")
PAPER, LINE, INK = "#fbfaf7", "#e3e0d8", "#1b1b1b"
NEWCOMER, NEWCOMER_GROUND = "#e0a100", "#fff3c4"
CELL = 56
HEADER = 34
SCALE = 3
"""Pictures are drawn this many times larger and then scaled down, which smooths them."""


@runtime_checkable
class Renderer(Protocol):
    """How the states of a game look; a module with these functions is one."""

    def board_size(self, env: AnyEnv) -> tuple[float, float]:
        """Return the rows and columns of the board, in cells."""
        ...

    def draw(
        self,
        canvas: Canvas,
        env: AnyEnv,
        state: AnyEnvState,
        names: Names,
        step: TimeStep | None = None,
    ) -> None:
        """Draw a state.

        Args:
            canvas: Where to draw.
            env: The environment.
            state: Its state.
            names: What to call the agent in each slot.
            step: The step that follows the state, if it is known.
        """
        ...

    def text(self, env: AnyEnv, state: AnyEnvState) -> Text:
        """Return a state as text for the terminal.

        Args:
            env: The environment.
            state: Its state.
        """
        ...

    def describe_events(self, state: PyTree, step: TimeStep, names: Names) -> list[str]:
        """Return sentences, without a full stop, on what happened in a step.

        Args:
            state: The state of the game before the step.
            step: The step.
            names: What to call the agent in each slot.
        """
        ...

    def describe_agent(self, state: PyTree, slot: int) -> str:
        """Describe the agent in a slot in a few words.

        Args:
            state: The state of the game.
            slot: The agent's slot.
        """
        ...


def agent_colour(slot: int) -> str:
    """Return the colour of the agent in a slot; the learner has one of its own."""
    return COLOURS[0] if slot == 0 else COLOURS[1:][(slot - 1) % (len(COLOURS) - 1)]


class Canvas:
    """A board with a line of text above it. All measures are in cells; (0, 0) is the first cell.

    Args:
        rows: Height of the board.
        columns: Width of the board.
    """

    def __init__(self, rows: float, columns: float):
        try:
            from PIL import Image, ImageDraw
        except ImportError:
            raise MissingExtraError("Drawing", "plot") from None
        width, height = round(columns * CELL), round(rows * CELL) + HEADER
        self.image = Image.new("RGB", (width * SCALE, height * SCALE), PAPER)
        self._draw = ImageDraw.Draw(self.image)

    def _at(self, row: float, column: float) -> tuple[float, float]:
        return (column + 0.5) * CELL * SCALE, ((row + 0.5) * CELL + HEADER) * SCALE

    def grid(self, size: int) -> None:
        """Draw the lines between cells."""
        for k in range(size + 1):
            for ends in (((k, 0), (k, size)), ((0, k), (size, k))):
                points = [self._at(row - 0.5, column - 0.5) for row, column in ends]
                self._draw.line(points, LINE, SCALE)

    def disc(self, row: float, column: float, radius: float, colour: str) -> None:
        """Draw a filled circle.

        Args:
            row: Row of the centre.
            column: Column of the centre.
            radius: Radius, in cells.
            colour: A name or a hexadecimal code.
        """
        x, y = self._at(row, column)
        self._draw.circle((x, y), radius * CELL * SCALE, fill=colour)

    def ring(self, row: float, column: float, radius: float, colour: str) -> None:
        """Draw an empty circle.

        Args:
            row: Row of the centre.
            column: Column of the centre.
            radius: Radius, in cells.
            colour: A name or a hexadecimal code.
        """
        x, y = self._at(row, column)
        self._draw.circle((x, y), radius * CELL * SCALE, outline=colour, width=3 * SCALE)

    def polygon(self, corners: Sequence[tuple[float, float]], colour: str, rim: str) -> None:
        """Draw a filled area with a thin rim.

        Args:
            corners: Row and column of each corner.
            colour: The colour of the area.
            rim: The colour of the rim.
        """
        points = [self._at(row, column) for row, column in corners]
        self._draw.polygon(points, fill=colour, outline=rim, width=SCALE)

    def stroke(self, row: float, column: float, to_row: float, to_column: float, ink: str) -> None:
        """Draw a thick line.

        Args:
            row: Row of one end.
            column: Column of one end.
            to_row: Row of the other end.
            to_column: Column of the other end.
            ink: The colour.
        """
        self._draw.line([self._at(row, column), self._at(to_row, to_column)], ink, 4 * SCALE)

    def label(self, row: float, column: float, text: str, colour: str) -> None:
        """Write a number or a word, centred.

        Args:
            row: Row of the centre.
            column: Column of the centre.
            text: What to write.
            colour: A name or a hexadecimal code.
        """
        self._write(self._at(row, column), text, colour, 20, "mm")

    def caption(self, row: float, column: float, text: str, colour: str) -> None:
        """Write a small word, centred.

        Args:
            row: Row of the centre.
            column: Column of the centre.
            text: What to write.
            colour: A name or a hexadecimal code.
        """
        self._write(self._at(row, column), text, colour, 10, "mm")

    def header(self, text: str) -> None:
        """Write the line above the board."""
        self._write((8 * SCALE, HEADER * SCALE / 2), text, INK, 15, "lm")

    def _write(
        self, at: tuple[float, float], text: str, colour: str, size: int, anchor: str
    ) -> None:
        from PIL import ImageFont

        font = ImageFont.load_default(size * SCALE)
        self._draw.text(at, text, fill=colour, font=font, anchor=anchor)

    def finish(self) -> Image:
        """Return the picture in its final size."""
        width, height = self.image.size
        return self.image.resize((width // SCALE, height // SCALE), resample=1)


def draw_agent(
    canvas: Canvas, slot: int, row: int, column: int, name: str, *, label: str = "", arrived: bool
) -> None:
    """Draw an agent on a grid: a disc with its name.

    The learner has a dark rim, newcomers have a bright ring.

    Args:
        canvas: Where to draw.
        slot: The agent's slot.
        row: Row of its cell.
        column: Column of its cell.
        name: Written below the label.
        label: Written in the middle.
        arrived: Whether the agent has just arrived.
    """
    if arrived:
        canvas.ring(row, column, 0.47, NEWCOMER)
    canvas.disc(row, column, 0.38, agent_colour(slot))
    if slot == 0:
        canvas.ring(row, column, 0.38, INK)
    canvas.label(row - 0.08, column, label, "white")
    canvas.caption(row + (0.19 if label else 0.0), column, name, "white")


def agent_mark(slot: int, label: str, arrived: bool) -> tuple[str, str]:
    """Return the characters and the style of an agent in terminal text.

    The learner is `@`, others are `b`, `c`, and so on. Newcomers have a bright background.

    Args:
        slot: The agent's slot.
        label: Appended to the mark.
        arrived: Whether the agent has just arrived.
    """
    mark = "@" if slot == 0 else chr(ord("a") + slot % 26)
    style = f"bold {agent_colour(slot)}"
    return f"{mark}{label}", f"{style} on {NEWCOMER_GROUND}" if arrived else style


def grid_text(rows: int, columns: int, cells: Cells) -> Text:
    """Return a grid as terminal text; empty cells are dots.

    Args:
        rows: Number of rows.
        columns: Number of columns.
        cells: What is in the cells that are not empty.
    """
    text = Text()
    for row in range(rows):
        for column in range(columns):
            mark, style = cells.get((row, column), ("·", "dim"))
            text.append(f"{mark:>3}", style)
        text.append("\n")
    return text


def join_names(names: Sequence[str], verb: str) -> str:
    """Return a subject and its verb, as in `a and b collect` or `a collects`.

    Args:
        names: Who does it.
        verb: What they do, in the plural.
    """
    return f"{' and '.join(names)} {verb}{'s' if len(names) == 1 else ''}"
