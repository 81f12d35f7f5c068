"""What an experiment gives: tables, charts and sentences, before they are written anywhere."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dropin.render.charts import HeatMap, Panel


@dataclass(frozen=True)
class Sheet:
    """A table of words."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Chart:
    """A picture to draw: panels of lines, or heat maps."""

    name: str
    """Of the file."""
    caption: str
    panels: Sequence[Panel] = ()
    maps: Sequence[HeatMap] = ()
    across: int = 3
    """Panels in a row."""
    shared: bool = False
    """Whether the panels of a column have the same axes."""


@dataclass(frozen=True)
class Outcome:
    """The result of an experiment."""

    sheets: Sequence[Sheet] = ()
    charts: Sequence[Chart] = ()
    sentences: Sequence[str] = ()
    """What has to be known to read it."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """The same for programs."""
    intervals: str = "over runs; n is their number"
    """What intervals are over."""
