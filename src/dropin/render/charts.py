"""Charts of lines and heat maps; plain data in, a picture out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dropin.errors import MissingExtraError

COLOURS = (
    "#0b6e99", "#c2571a", "#4d8c2b", "#8a4fa3", "#b08900", "#b03060", "#5c6b73", "#00897b",
)  # fmt: skip
ACROSS = 3
"""Panels beside one another."""


@dataclass(frozen=True)
class Line:
    """A line, with the band of its interval or the lines that it is the mean of."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    each: Sequence[Sequence[float]] = ()
    """Drawn thinly."""
    colour: str | None = None
    dashed: bool = False

    def with_colour(self, colour: str | None, dashed: bool = False) -> "Line":
        """The same in a colour."""
        return replace(self, colour=colour, dashed=dashed)


@dataclass(frozen=True)
class Panel:
    """Lines in one pair of axes."""

    title: str
    lines: Sequence[Line]
    across: str = "environment steps (million)"
    up: str = "return"
    levels: Mapping[str, float] = field(default_factory=dict)
    """Values to compare with, by name."""

    def titled(self, more: str) -> "Panel":
        """The same with more in its title."""
        return replace(self, title=f"{self.title}, {more}")


@dataclass(frozen=True)
class HeatMap:
    """A number for each row and column; rows and columns have names."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: np.ndarray
    across: str = ""
    up: str = ""


def draw_panels(
    panels: Sequence[Panel],
    path: Path,
    stamp: str = "",
    across: int = ACROSS,
    shared: bool = False,
) -> None:
    """A picture of panels, so many in a row; the legend of all is below. A stamp is on top.

    Those in a column may have shared axes.
    """
    size = (8, 5) if len(panels) == 1 else (4.6, 3.6)
    figure, axes = _figure(len(panels), across, size, "col" if shared else False)
    colours: dict[str, str] = {}
    for panel, each in zip(panels, axes, strict=True):
        for line in panel.lines:
            colour = line.colour or colours.setdefault(
                line.label, COLOURS[len(colours) % len(COLOURS)]
            )
            _draw_line(each, line, colour)
        for name, value in panel.levels.items():
            each.axhline(value, color="0.4", linestyle=":", linewidth=1)
            each.annotate(name, (1, value), xycoords=("axes fraction", "data"), ha="right",
                          va="bottom", fontsize=8, color="0.3")  # fmt: skip
        each.set(xlabel=panel.across, ylabel=panel.up, title=panel.title)
        each.grid(alpha=0.25)
    if len(panels) == 1:
        axes[0].legend(frameon=False, fontsize=8)
    else:
        known: dict[str, Any] = {}
        for each in axes:
            for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
                known.setdefault(label, handle)
        figure.legend(
            known.values(), known.keys(), loc="outside lower center", ncols=6, frameon=False,
            fontsize=8,
        )  # fmt: skip
    _save(figure, path, stamp)


def _draw_line(axes: Any, line: Line, colour: str) -> None:
    style = "--" if line.dashed else "-"
    # A line of one point is a point.
    mark = "o" if len(line.x) == 1 else None
    axes.plot(line.x, line.y, color=colour, linestyle=style, marker=mark, label=line.label)
    for each in line.each:
        axes.plot(line.x, each, color=colour, alpha=0.4, linewidth=0.8)
    if len(line.low):
        axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0)


def draw_heat_maps(maps: Sequence[HeatMap], path: Path, stamp: str = "") -> None:
    """A picture of heat maps, each with its numbers; what is not a number stays empty."""
    figure, axes = _figure(len(maps), ACROSS, (6.4, 5.6))
    for each, place in zip(maps, axes, strict=True):
        values = np.asarray(each.values, float)
        place.imshow(values, cmap="viridis", aspect="auto", vmin=0, vmax=1)
        place.set_xticks(range(len(each.columns)), each.columns)
        place.set_yticks(range(len(each.rows)), each.rows)
        place.set(xlabel=each.across, ylabel=each.up, title=each.title)
        for row, column in np.argwhere(np.isfinite(values)):
            value = values[row, column]
            place.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8,
                       color="black" if value > 0.6 else "white")  # fmt: skip
    _save(figure, path, stamp)


def _figure(
    number: int, across: int, size: tuple[float, float], shared: Any = False
) -> tuple[Any, list[Any]]:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("Drawing", "plot") from None

    columns = min(number, across)
    rows = -(-number // columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=shared, sharey=shared)
    grid = axes.ravel()
    for empty in grid[number:]:
        empty.set_visible(False)
    return figure, list(grid[:number])


def _save(figure: Any, path: Path, stamp: str) -> None:
    if stamp:
        figure.suptitle(stamp, fontsize=9, color="0.35")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
