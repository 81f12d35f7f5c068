"""Tables that grow row by row and survive being cut off."""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dropin.errors import InputError
from dropin.files import write

METRICS = (
    "step",
    "episodes",
    "return",
    "unshaped",
    "value_loss",
    "prediction_loss",
    "accuracy",
    "team_size",
    "epsilon",
    "temperature",
)
EVALUATION = (
    "step",
    "team_limit",
    "policy",
    "episodes",
    "mean",
    "low",
    "high",
    "legacy",
    "unshaped",
)
"""The columns that the tables of all runs have; a game may add some."""
ESTIMATORS = {"fixed": "mean", "legacy": "legacy"}
"""The estimators of returns, and the columns of evaluations that hold them."""
EXTRA_LOSS, AMONG = "extra_loss", "among"
"""What joint training adds: to the metrics what the learner has besides the value loss, to the
evaluation whether teammates are strangers, as for all others, or partners."""
STRANGERS, PARTNERS = "strangers", "partners"


class Table:
    """A CSV file. The first column is `step`; numbers are written so that they read back equal."""

    def __init__(self, path: Path, columns: Sequence[str]):
        self.path, self.columns = path, list(columns)
        self._all = self.columns

    def create(self, more: Sequence[str] = ()) -> None:
        """The header alone, with these columns besides."""
        self._all = [*self.columns, *more]
        write(self.path, _lines([self._all]))

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row at the end."""
        with self.path.open("ab") as file:
            file.write(_lines([[row[name] for name in self._all]]))

    def sync(self) -> None:
        """Make sure that all rows last."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())

    def cut(self, step: int) -> None:
        """Forget what came after a step, and a last row that was not written to its end."""
        if not self.path.exists():
            self.create()
            return
        header, *whole = self.path.read_bytes().decode(errors="replace").split("\n")[:-1] or [""]
        self._all = header.split(",")
        if self._all[: len(self.columns)] != self.columns:
            raise InputError(f"{self.path} has other columns: another version of Dropin wrote it.")
        rows = [row for row in csv.reader(whole) if len(row) == len(self._all)]
        kept = [row for row in rows if row[0].isdigit() and int(row[0]) <= step]
        write(self.path, _lines([self._all, *kept]))


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of a table that are whole."""
    if not path.exists():
        return []
    header, *rows = list(csv.reader(path.read_text(errors="replace").split("\n")[:-1])) or [[]]
    return [dict(zip(header, row, strict=True)) for row in rows if len(row) == len(header)]


def _lines(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
