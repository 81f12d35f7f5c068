"""Charts of lines, and heat maps: plain data in, a picture out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from dropin.core.config import PlainDict
from dropin.core.errors import MissingExtraError
from dropin.core.files import write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "HeatMap", "Line", "Panel", "draw_heat_maps", "draw_panels"]

COLOURS = (
    "#0b6e99", "#c2571a", "#4d8c2b", "#8a4fa3", "#b08900", "#b03060", "#5c6b73", "#00897b",
)  # fmt: skip
"""The colours of lines that have none of their own, in this order."""
COLUMNS = 3


@dataclass(frozen=True)
class Line:
    """A line with a band around it, or with the individual lines that it is the mean of."""

    label: str
    """Name in the legend. Lines of the same label and no colour of their own share a colour."""
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    """Lower edge of the band; no band if it is empty."""
    high: Sequence[float] = ()
    """Upper edge of the band."""
    individual: Sequence[Sequence[float]] = ()
    """The y values of individual lines, drawn thinly."""
    colour: str | None = None
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """Lines in one pair of axes."""

    title: str
    lines: Sequence[Line]
    xlabel: str = "environment steps (million)"
    ylabel: str = "return"
    reference_lines: Mapping[str, float] = field(default_factory=dict)
    """Heights of horizontal lines to compare with, by name."""

    def with_title_suffix(self, suffix: str) -> "Panel":
        """Return the same panel with `, suffix` added to its title."""
        return replace(self, title=f"{self.title}, {suffix}")


@dataclass(frozen=True)
class HeatMap:
    """A number between 0 and 1 for each pair of a named row and a named column."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: np.ndarray
    """One number per row and column; cells that are not finite stay empty."""
    xlabel: str = ""
    ylabel: str = ""


def draw_panels(
    panels: Sequence[Panel],
    path: Path,
    *,
    note: str = "",
    columns: int = COLUMNS,
    share_axes: bool = False,
) -> None:
    """Draw panels side by side, with one legend for all of them below.

    Args:
        panels: What to draw.
        path: The image file to write; its ending decides the format.
        note: A line of text above the panels.
        columns: Number of panels in a row.
        share_axes: Whether the panels of a column have the same axes.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    size = (8, 5) if len(panels) == 1 else (4.6, 3.6)
    figure, all_axes = _figure(len(panels), columns, size, "col" if share_axes else False)
    colours: dict[str, str] = {}
    for panel, axes in zip(panels, all_axes, strict=True):
        for line in panel.lines:
            colour = line.colour or colours.setdefault(
                line.label, COLOURS[len(colours) % len(COLOURS)]
            )
            _draw_line(axes, line, colour)
        for name, height in panel.reference_lines.items():
            axes.axhline(height, color="0.4", linestyle=":", linewidth=1)
            axes.annotate(name, (1, height), xycoords=("axes fraction", "data"), ha="right",
                          va="bottom", fontsize=8, color="0.3")  # fmt: skip
        axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=panel.title)
        axes.grid(alpha=0.25)
    if len(panels) == 1:
        all_axes[0].legend(frameon=False, fontsize=8)
    else:
        handles: PlainDict = {}
        for axes in all_axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=8, frameon=False,
            fontsize=8,
        )  # fmt: skip
    _save(figure, path, note)


def _draw_line(axes: "Axes", line: Line, colour: str) -> None:
    style = "--" if line.dashed else "-"
    marker = "o" if len(line.x) == 1 else None
    axes.plot(line.x, line.y, color=colour, linestyle=style, marker=marker, label=line.label)
    for y in line.individual:
        axes.plot(line.x, y, color=colour, alpha=0.4, linewidth=0.8)
    if len(line.low):
        axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0)


def draw_heat_maps(maps: Sequence[HeatMap], path: Path, *, note: str = "") -> None:
    """Draw heat maps side by side, each with its numbers in the cells.

    Args:
        maps: What to draw.
        path: The image file to write; its ending decides the format.
        note: A line of text above the maps.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    figure, all_axes = _figure(len(maps), COLUMNS, (6.4, 5.6))
    for heat_map, axes in zip(maps, all_axes, strict=True):
        values = np.asarray(heat_map.values, float)
        axes.imshow(values, cmap="viridis", aspect="auto", vmin=0, vmax=1)
        axes.set_xticks(range(len(heat_map.columns)), heat_map.columns)
        axes.set_yticks(range(len(heat_map.rows)), heat_map.rows)
        axes.set(xlabel=heat_map.xlabel, ylabel=heat_map.ylabel, title=heat_map.title)
        for row, column in np.argwhere(np.isfinite(values)):
            value = values[row, column]
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8,
                      color="black" if value > 0.6 else "white")  # fmt: skip
    _save(figure, path, note)


def _figure(
    number: int, columns: int, size: tuple[float, float], shared: Literal[False, "col"] = False
) -> tuple["Figure", list["Axes"]]:
    """Return a figure and the axes of its panels, in rows of `columns`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("Drawing", "plot") from None

    columns = min(number, columns)
    rows = -(-number // columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=shared, sharey=shared).ravel()
    for unused in grid[number:]:
        unused.set_visible(False)
    return figure, list(grid[:number])


def _save(figure: "Figure", path: Path, note: str) -> None:
    if note:
        figure.suptitle(note, fontsize=9, color="0.35")
    picture = BytesIO()
    figure.savefig(picture, format=path.suffix.removeprefix(".") or None)
    write(path, picture.getvalue())
