"""CSV tables that grow row by row and survive being cut off."""

import csv
import io
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from dropin.core.config import PlainMapping
from dropin.core.errors import InputError, shown
from dropin.core.files import naming, sync_directory, write
from dropin.core.formats import upgrade_columns
from dropin.core.reading import read_file

__all__ = ["ESTIMATORS", "EVALUATION_COLUMNS", "Table", "read_table", "write_table"]

ESTIMATORS = {"fixed": "mean_return", "legacy": "legacy_mean_return"}
"""The estimators of returns, and the columns of `evaluation.csv` that hold them."""
EVALUATION_COLUMNS = ("step", "team_limit", "mode", "teammates", "mean_return")
"""What `evaluation.csv` has in any case."""
_COUNTS = ("step", "team_limit", "episodes")
_NUMBERS = (*ESTIMATORS.values(), "ci_low", "ci_high")
_WHOLE = re.compile("[0-9]{1,18}")


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
        header, *rows = _cells(lines, self.path)
        whole = [row for row in rows if header and len(row) == len(header)]
        kept = [row for row in whole if _WHOLE.fullmatch(row[0]) and int(row[0]) <= step]
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


def read_table(path: Path, needs: Collection[str] = ()) -> list[dict[str, str]]:
    """Read the complete rows of a table, with the present names of its columns.

    Args:
        path: The file; one that does not exist has no rows.
        needs: Columns that it has to have, if it has rows.

    Raises:
        InputError: If a column stands twice or is missing, or a cell is no number where one has to
            be.
    """
    if not path.exists():
        return []
    text = read_file(path).decode(errors="replace")
    header, *rows = _cells(text.split("\n")[:-1], path)
    whole = (row for row in rows if len(row) == len(header))
    upgraded = [upgrade_columns(dict(zip(header, row, strict=True))) for row in whole]
    for number, row in enumerate(upgraded):
        if number == 0 and (missing := [name for name in needs if name not in row]):
            raise InputError(f"{path} has no column {missing[0]!r}.")
        if number == 0 and len(row) < len(header):
            raise InputError(f"{path} has two columns of the same name.")
        _check_row(row, path)
    return upgraded


def _cells(lines: Sequence[str], path: Path) -> list[list[str]]:
    """Return the cells of each line, the header first."""
    try:
        return list(csv.reader(lines)) or [[]]
    except csv.Error as error:
        raise InputError(f"{path} is damaged: {error}.") from None


def _check_row(row: Mapping[str, str], path: Path) -> None:
    """Raise `InputError` if a cell is not what its column holds."""
    for name, cell in row.items():
        if name in _COUNTS and not _WHOLE.fullmatch(cell):
            raise InputError(f"{path}: {shown(cell)} in the column {name} is not a whole number.")
        if name in _NUMBERS and cell and not _is_number(cell):
            raise InputError(f"{path}: {shown(cell)} in the column {shown(name)} is not a number.")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _lines(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
