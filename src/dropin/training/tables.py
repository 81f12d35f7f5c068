"""CSV tables that grow row by row and survive being cut off."""

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dropin.core.config import PlainMapping
from dropin.core.files import naming, sync_directory, write
from dropin.core.formats import upgrade_columns

__all__ = ["ESTIMATORS", "Table", "read_table", "write_table"]

ESTIMATORS = {"fixed": "mean_return", "legacy": "legacy_mean_return"}
"""The estimators of returns, and the columns of `evaluation.csv` that hold them."""


class Table:
    """A CSV file whose first column is `step`. Numbers are written so that they read back equal.

    The columns are those of the first row that is appended.
    """

    def __init__(self, path: Path):
        self.path = path

    def append(self, row: PlainMapping) -> None:
        """Add a row at the end; the first one writes the header. None becomes an empty cell."""
        new = not self.path.exists() or self.path.stat().st_size == 0
        columns = list(row) if new else self._columns()
        cells = ["" if row.get(name) is None else row[name] for name in columns]
        with naming(self.path), self.path.open("ab") as file:
            file.write(_lines([columns] * new + [cells]))

    def _columns(self) -> list[str]:
        with naming(self.path), self.path.open(newline="") as file:
            return next(csv.reader(file))

    def sync(self) -> None:
        """Make sure that all rows are on disk, and that the file keeps its name."""
        if self.path.exists():
            with naming(self.path), self.path.open("rb") as file:
                os.fsync(file.fileno())
            sync_directory(self.path.parent)

    @property
    def last_step(self) -> int:
        """The largest step of a complete row; 0 if there is none."""
        steps = (row.get("step", "") for row in read_table(self.path))
        return max((int(step) for step in steps if step.isdecimal()), default=0)

    def truncate(self, step: int) -> None:
        """Remove all rows after a step, and a last row that was not written completely."""
        if not self.path.exists():
            return
        with naming(self.path):
            data = self.path.read_bytes()
        lines = data.decode(errors="replace").split("\n")[:-1]
        header, *rows = list(csv.reader(lines)) or [[]]
        whole = [row for row in rows if len(row) == len(header)]
        kept = [row for row in whole if row[0].isdigit() and int(row[0]) <= step]
        if kept:
            write(self.path, _lines([header, *kept]))
        else:
            self.path.unlink()

    def clear(self) -> None:
        """Remove all rows."""
        self.path.unlink(missing_ok=True)


def write_table(path: Path, rows: Sequence[PlainMapping]) -> None:
    """Write a whole table, atomically; the columns are those of the first row.

    Args:
        path: The file; one that exists is replaced.
        rows: The rows, at least one.
    """
    cells = [["" if value is None else value for value in row.values()] for row in rows]
    write(path, _lines([list(rows[0]), *cells]))


def read_table(path: Path) -> list[dict[str, str]]:
    """Read the complete rows of a table, with the present names of its columns."""
    if not path.exists():
        return []
    with naming(path):
        text = path.read_text(errors="replace")
    header, *rows = list(csv.reader(text.split("\n")[:-1])) or [[]]
    whole = (row for row in rows if len(row) == len(header))
    return [upgrade_columns(dict(zip(header, row, strict=True))) for row in whole]


def _lines(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
