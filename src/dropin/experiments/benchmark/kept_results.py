"""Results of a learner as they are kept in a repository: small tables, no agents, no episodes.

kept.json      who and how, as in results.json, and what was checked
records.csv    a row for each record: means over its episodes, and sums over their steps
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from dropin.core.config import PlainDict
from dropin.core.errors import InputError
from dropin.core.files import file_checksum, write_json
from dropin.core.reading import read_file
from dropin.experiments.benchmark.receipt import RECEIPT_SCHEMA, check_receipt
from dropin.experiments.benchmark.records import CHECKPOINTS, WINDOW, KeptRecord, Measured, Sums
from dropin.experiments.benchmark.results import (
    RECEIPT_FILE,
    RESULTS_SCHEMA,
    SCHEMA_NUMBER,
    SUMS,
    About,
    Results,
    joined_commands,
)
from dropin.experiments.benchmark.schema import fields_of, optional, read_strictly, text
from dropin.training.tables import write_table

__all__ = ["KEPT_FILE", "RECORDS_FILE", "KeptResults", "keep_results", "read_kept"]

KEPT_FILE, RECORDS_FILE = "kept.json", "records.csv"
DIGITS = 6
"""Significant digits of the numbers in the table."""
MAX_BYTES = 64 * 2**20
KEPT_SCHEMA = {
    **{name: RESULTS_SCHEMA[name] for name in ("schema", *About.__dataclass_fields__)},
    "receipt": optional(fields_of(RECEIPT_SCHEMA)),
    "table": text("[0-9a-f]{64}"),
}
_WHOLE = ("version", "team_limit", "seed", "step", "num_episodes")
_NUMBERS = ("mean_return", "standard_error")
_COLUMNS = (
    "task", "version", "team_limit", "seed", "checkpoint", "step", "num_episodes", "mean_return",
    "standard_error", "types", "type_mean_returns",
    *(f"{name}_{part}" for name in SUMS for part in ("total", "count")),
)  # fmt: skip


@dataclass(frozen=True)
class KeptResults:
    """The results of a learner that were kept."""

    directory: Path
    about: About
    records: Sequence[KeptRecord]
    receipt: PlainDict | None = None
    """What was checked before the results were kept; None if nothing was."""

    @property
    def seeds(self) -> list[int]:
        """The seeds of the training runs."""
        return sorted({record.seed for record in self.records})

    @property
    def is_small(self) -> bool:
        """Whether less than the tasks' budgets was used."""
        return self.about.scale < 1


def keep_results(results: Results, directory: Path) -> Path:
    """Write results as small tables.

    Records of the same learner that are kept there stay, unless they are among the results.

    Args:
        results: The results.
        directory: Where to write them.

    Returns:
        The directory.

    Raises:
        InputError: If results of another learner are kept there, or of another scale.
    """
    has_receipt = (results.directory / RECEIPT_FILE).exists()
    receipt = check_receipt(results) if has_receipt else None
    about, records = results.about, list[Measured](results.records)
    if (directory / KEPT_FILE).exists():
        old = read_kept(directory)
        if (old.about.learner, old.about.scale) != (about.learner, about.scale):
            raise InputError(
                f"{directory} holds results of {old.about.learner} at scale"
                f" {old.about.scale:g}: give another directory."
            )
        new, versions = set(map(_key, records)), dict(results.tasks)
        stays = [each for each in old.records if _key(each) not in new
                 and versions.get(each.task, each.version) == each.version]  # fmt: skip
        if stays:
            about = replace(about, command=joined_commands(old.about.command, about.command))
            records, receipt = sorted([*records, *stays], key=_key), None
    # From here on it is incomplete, until kept.json is written again.
    (directory / KEPT_FILE).unlink(missing_ok=True)
    table = directory / RECORDS_FILE
    write_table(table, [_row(each) for each in records])
    values: PlainDict = {"schema": SCHEMA_NUMBER, **asdict(about), "receipt": receipt}
    write_json(directory / KEPT_FILE, values | {"table": file_checksum(table)})
    return directory


def _key(record: Measured) -> tuple[str, int, int, int]:
    at = CHECKPOINTS.index(record.checkpoint)
    return record.task, record.team_limit, record.seed, at


def read_kept(directory: Path) -> KeptResults:
    """Read results that were kept.

    Args:
        directory: The directory.

    Raises:
        InputError: If something is missing, was changed, or is not as it should be.
    """
    stored = read_strictly(directory / KEPT_FILE, fields_of(KEPT_SCHEMA), MAX_BYTES)
    table = directory / RECORDS_FILE
    lines = csv.reader(io.StringIO(read_file(table, MAX_BYTES).decode(errors="replace")))
    if file_checksum(table) != stored["table"]:
        raise InputError(f"{table} was changed: its checksum is not that of {KEPT_FILE}.")
    header, *rows = list(lines) or [[]]
    if tuple(header) != _COLUMNS or not rows:
        raise InputError(f"{table} does not have the columns and rows of kept records.")
    about = About(**{name: stored[name] for name in About.__dataclass_fields__})
    records = [
        _record(dict(zip(header, row, strict=False)), about.learner, f"Row {at} of {table}")
        for at, row in enumerate(rows, 1)
    ]
    return KeptResults(directory, about, records, stored["receipt"])


def _row(record: Measured) -> PlainDict:
    """Return a record as a row of the table."""
    by_type = record.mean_return_by_type
    row: PlainDict = {
        "task": record.task,
        "checkpoint": record.checkpoint,
        **{name: getattr(record, name) for name in _WHOLE},
        **{name: _short(getattr(record, name)) for name in _NUMBERS},
        "types": " ".join(by_type),
        "type_mean_returns": _line(by_type.values()),
    }
    for name, attribute in SUMS.items():
        sums: Sums | None = getattr(record, attribute)
        row[f"{name}_total"] = "" if sums is None else _line(sums.total)
        row[f"{name}_count"] = "" if sums is None else _line(sums.count)
    return {name: row[name] for name in _COLUMNS}


def _record(row: Mapping[str, str], learner: str, where: str) -> KeptRecord:
    """Return the record of a row."""
    try:
        values: PlainDict = {name: int(row[name]) for name in _WHOLE}
        values |= {name: _values(row[name])[0] for name in _NUMBERS}
        values |= {attribute: _sums(row, name) for name, attribute in SUMS.items()}
        types, means = row["types"].split(), _values(row["type_mean_returns"])
        if row["checkpoint"] not in CHECKPOINTS or not row["task"]:
            raise ValueError
        values |= {name: row[name] for name in ("task", "checkpoint")}
        by_type = dict(zip(types, means, strict=True))
        return KeptRecord(**values, learner=learner, mean_return_by_type=by_type)
    except (KeyError, ValueError, IndexError):
        raise InputError(f"{where} is not a record.") from None


def _sums(row: Mapping[str, str], name: str) -> Sums | None:
    totals, counts = _values(row[f"{name}_total"]), row[f"{name}_count"].split()
    if not totals and name == "by_age":
        return None
    sums = Sums(np.array(totals, np.float64), np.array([int(each) for each in counts], np.int64))
    around = name.startswith("around")
    if not totals or sums.total.shape != sums.count.shape or (around and len(totals) != 2 * WINDOW):
        raise ValueError
    return sums


def _values(cell: str) -> list[float]:
    """Return the numbers of a cell, which are finite."""
    values = [float(each) for each in cell.split()]
    if not all(map(math.isfinite, values)):
        raise ValueError
    return values


def _line(values: Iterable[float]) -> str:
    """Return numbers as a cell."""
    return " ".join(map(_short, values))


def _short(value: float) -> str:
    """Return a number with few digits; counts are whole."""
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.{DIGITS}g}"
