"""The receipt of a submission: what was checked, so that a leaderboard needs no agents.

It is a note, not a proof: whoever doubts it runs `dropin benchmark submit` again.
"""

from collections.abc import Mapping
from pathlib import Path

from dropin.core.config import PlainDict
from dropin.core.errors import InputError
from dropin.core.files import file_checksum, write_json
from dropin.experiments.benchmark.results import RECEIPT_FILE, RESULTS_FILE, About, Results
from dropin.experiments.benchmark.schema import (
    Reader,
    each_of,
    fields_of,
    one_of,
    read_strictly,
    text,
    whole,
)
from dropin.experiments.benchmark.submission import Check

__all__ = ["RECEIPT_SCHEMA", "check_receipt", "write_receipt"]

MAX_RECEIPT_BYTES = 2**20
_TEXT = text()
RECEIPT_SCHEMA: Mapping[str, Reader] = {
    "schema": one_of(1),
    "results": text("[0-9a-f]{64}"),
    "records": whole(1),
    "equal": whole(),
    "close": whole(),
    "quick": one_of(True, False),
    "versions": each_of(_TEXT, _TEXT),
    "machine": _TEXT,
}


def write_receipt(check: Check, *, quick: bool) -> Path:
    """Write what was checked beside the results, if nothing is wrong.

    Args:
        check: The check.
        quick: Whether only a sample was played again.

    Raises:
        InputError: If something is wrong.
    """
    if check.results is None or check.problems:
        raise InputError("A submission with something wrong in it gets no receipt.")
    here = About.here(check.results.about.learner)
    values: PlainDict = {
        "schema": 1,
        "results": file_checksum(check.results.directory / RESULTS_FILE),
        "records": len(check.results.records),
        "equal": check.num_equal,
        "close": check.num_close,
        "quick": quick,
        "versions": dict(here.versions),
        "machine": here.hardware,
    }
    path = check.results.directory / RECEIPT_FILE
    write_json(path, values)
    return path


def check_receipt(results: Results) -> PlainDict:
    """Return the receipt of some results.

    Args:
        results: The results.

    Raises:
        InputError: If there is none, if it is of other results, or if the episodes were changed.
    """
    path = results.directory / RECEIPT_FILE
    if not path.exists():
        raise InputError(
            f"{results.directory} was not checked: run dropin benchmark submit {results.directory}."
        )
    receipt = read_strictly(path, fields_of(RECEIPT_SCHEMA), MAX_RECEIPT_BYTES)
    if receipt["results"] != file_checksum(results.directory / RESULTS_FILE):
        raise InputError(f"{path} is of other results: {RESULTS_FILE} was changed since.")
    for name, expected in results.files.items():
        file = results.directory / name
        if file.is_file() and file_checksum(file) != expected:
            raise InputError(f"{file} was changed: its checksum is not that of {RESULTS_FILE}.")
    return receipt
