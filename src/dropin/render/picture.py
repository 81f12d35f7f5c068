"""Pictures and GIFs of any game. Needs the extra `plot`."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dropin.adhoc import AdHoc, EnvState, TimeStep
from dropin.errors import MissingExtraError
from dropin.render.episode import Moment

if TYPE_CHECKING:
    from PIL.Image import Image

Names = Sequence[str]
"""What to call the agent in each slot."""

COLOURS = ("#1d6fa5", "#7b5ea7", "#3a7d44", "#b5651d", "#a23b72", "#56707a")
PAPER, LINE, INK = "#fbfaf7", "#e3e0d8", "#1b1b1b"
CELL = 56
HEADER = 34
FINE = 3
"""Pictures are drawn this many times larger and then scaled down, which smooths them."""


def colour_of(slot: int) -> str:
    """The learner's colour, and those of the others in turn."""
    return COLOURS[0] if slot == 0 else COLOURS[1:][(slot - 1) % (len(COLOURS) - 1)]


class Canvas:
    """A board with a line of text above it; all measures are in cells, (0, 0) is the first."""

    def __init__(self, rows: float, columns: float):
        try:
            from PIL import Image, ImageDraw
        except ImportError:
            raise MissingExtraError("Drawing", "plot") from None
        width, height = round(columns * CELL), round(rows * CELL) + HEADER
        self.image = Image.new("RGB", (width * FINE, height * FINE), PAPER)
        self._draw = ImageDraw.Draw(self.image)

    def _at(self, row: float, column: float) -> tuple[float, float]:
        return (column + 0.5) * CELL * FINE, ((row + 0.5) * CELL + HEADER) * FINE

    def grid(self, size: int) -> None:
        """Lines between cells."""
        for k in range(size + 1):
            for ends in (((k, 0), (k, size)), ((0, k), (size, k))):
                points = [self._at(row - 0.5, column - 0.5) for row, column in ends]
                self._draw.line(points, LINE, FINE)

    def disc(self, row: float, column: float, radius: float, colour: str) -> None:
        """A filled circle."""
        x, y = self._at(row, column)
        self._draw.circle((x, y), radius * CELL * FINE, fill=colour)

    def ring(self, row: float, column: float, radius: float, colour: str) -> None:
        """An empty circle."""
        x, y = self._at(row, column)
        self._draw.circle((x, y), radius * CELL * FINE, outline=colour, width=3 * FINE)

    def polygon(self, corners: Sequence[tuple[float, float]], colour: str, rim: str) -> None:
        """A filled area with a thin rim; corners are (row, column)."""
        points = [self._at(row, column) for row, column in corners]
        self._draw.polygon(points, fill=colour, outline=rim, width=FINE)

    def stroke(self, row: float, column: float, to_row: float, to_column: float, ink: str) -> None:
        """A short thick line."""
        self._draw.line([self._at(row, column), self._at(to_row, to_column)], ink, 4 * FINE)

    def label(self, row: float, column: float, text: str, colour: str) -> None:
        """A number or a word in the middle."""
        self._write(self._at(row, column), text, colour, 20, "mm")

    def caption(self, row: float, column: float, text: str, colour: str) -> None:
        """A small word."""
        self._write(self._at(row, column), text, colour, 10, "mm")

    def header(self, text: str) -> None:
        """The line above the board."""
        self._write((8 * FINE, HEADER * FINE / 2), text, INK, 15, "lm")

    def _write(
        self, at: tuple[float, float], text: str, colour: str, size: int, anchor: str
    ) -> None:
        from PIL import ImageFont

        font = ImageFont.load_default(size * FINE)
        self._draw.text(at, text, fill=colour, font=font, anchor=anchor)

    def finish(self) -> "Image":
        """The picture in its proper size."""
        width, height = self.image.size
        return self.image.resize((width // FINE, height // FINE), resample=1)


def looks_of(env: AdHoc) -> Any:
    """The module that knows how the environment's game looks."""
    return import_module(f"dropin.render.{env.game.name}")


def short_names(env: AdHoc, state: EnvState) -> list[str]:
    """What stands below each agent: its type, or that it is the learner."""
    types = [env.team.pool.names[number] for number in np.asarray(state.cast.type)]
    return ["learner", *types[1:]]


def picture(env: AdHoc, state: EnvState, header: str = "", step: TimeStep | None = None) -> "Image":
    """A state as a picture, with what is about to happen in the step that follows, if given."""
    looks, names = looks_of(env), short_names(env, state)
    canvas = Canvas(*looks.board(env))
    looks.draw(canvas, env, state, names, step)
    canvas.header(header)
    return canvas.finish()


def save_gif(env: AdHoc, moments: Iterable[Moment], path: Path, seconds: float = 0.35) -> None:
    """An episode as a GIF that repeats."""
    pictures = [
        picture(
            env, moment.state, f"step {number}   return {round(moment.score, 2):g}", moment.step
        )
        for number, moment in enumerate(moments)
    ]
    durations = [int(seconds * 1000)] * (len(pictures) - 1) + [2000]
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    pictures[0].save(
        unfinished,
        "GIF",
        save_all=True,
        append_images=pictures[1:],
        duration=durations,
        loop=0,
        disposal=1,
    )
    unfinished.replace(path)
