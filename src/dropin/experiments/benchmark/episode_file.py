"""The episodes of all records of a learner: one file of columns, and the same as CSV.

The columns of the episodes with the test pool are `record` (which record of results.json),
`returns`, `steps`, `entries`, `exits` and `type_changes`; those of the episodes with teammates of a
single type are `type_record`, `type` (which of the file's `types`) and `type_returns`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import InputError
from dropin.core.files import read_arrays, write_arrays
from dropin.experiments.benchmark.records import EpisodeTable, Record
from dropin.experiments.benchmark.schema import LARGEST, check_size
from dropin.training.tables import write_table

__all__ = [
    "EPISODES_FILE",
    "Played",
    "episode_rows",
    "read_episodes",
    "write_episode_table",
    "write_episodes",
]

EPISODES_FILE = "episodes.safetensors"
KIND = "benchmark episodes"
MAX_BYTES = 2**30
_COUNTS = ("steps", "entries", "exits", "type_changes")
_DTYPES = {
    "record": np.int32,
    "returns": np.float32,
    **dict.fromkeys(_COUNTS, np.int32),
    "type_record": np.int32,
    "type": np.int32,
    "type_returns": np.float32,
}


@dataclass(frozen=True)
class Played:
    """The episodes of one record."""

    episodes: EpisodeTable
    returns_by_type: Mapping[str, np.ndarray]


def write_episodes(path: Path, records: Sequence[Record]) -> None:
    """Write the episodes of all records as columns, atomically.

    Args:
        path: The file; one that exists is replaced.
        records: The records, in the order of results.json.
    """
    types = sorted({name for record in records for name in record.returns_by_type})
    numbers = {name: number for number, name in enumerate(types)}
    by_type = [(number, numbers[name], returns) for number, record in enumerate(records)
               for name, returns in record.returns_by_type.items()]  # fmt: skip
    columns = {
        "record": [np.full(len(each.episodes), at) for at, each in enumerate(records)],
        **{name: [getattr(each.episodes, name) for each in records]
           for name in ("returns", *_COUNTS)},
        "type_record": [np.full(len(returns), at) for at, _, returns in by_type],
        "type": [np.full(len(returns), number) for _, number, returns in by_type],
        "type_returns": [returns for _, _, returns in by_type],
    }  # fmt: skip
    arrays = {
        name: np.concatenate([np.zeros(0), *parts]).astype(_DTYPES[name])
        for name, parts in columns.items()
    }
    write_arrays(path, arrays, {"kind": KIND, "types": types})


def read_episodes(path: Path, summaries: Sequence[PlainMapping]) -> list[Played]:
    """Read the episodes of all records, and check that they are those that were announced.

    Args:
        path: The file.
        summaries: What results.json says of each record: the number of `episodes`, and those of
            each type under `by_type`.

    Raises:
        InputError: If the file is missing, damaged or too large, or holds other columns, other
            numbers of episodes, or values that no episode has.
    """
    check_size(path, MAX_BYTES)
    arrays, about = read_arrays(path)
    if about.get("kind") != KIND or not isinstance(about.get("types"), list):
        raise InputError(f"{path} does not hold episodes of the benchmark.")
    _check_columns(path, arrays)
    sizes = [said["episodes"] for said in summaries]
    by_type = [(at, name, each["episodes"]) for at, said in enumerate(summaries)
               for name, each in said["by_type"].items()]  # fmt: skip
    types = about["types"]
    for _, name, _ in by_type:
        if name not in types:
            raise InputError(f"{path.name} has no episodes with teammates of type {name!r}.")
    type_sizes = [size for *_, size in by_type]
    _check_layout(path, arrays, "record", range(len(sizes)), sizes)
    _check_layout(path, arrays, "type_record", [at for at, *_ in by_type], type_sizes)
    _check_layout(path, arrays, "type", [types.index(name) for _, name, _ in by_type], type_sizes)
    tables = [
        EpisodeTable(*columns)
        for columns in zip(
            *(_split(arrays[name], sizes) for name in ("returns", *_COUNTS)), strict=True
        )
    ]
    found: list[dict[str, np.ndarray]] = [{} for _ in summaries]
    parts = _split(arrays["type_returns"], type_sizes)
    for (at, name, _), returns in zip(by_type, parts, strict=True):
        found[at][name] = returns
    return [Played(*each) for each in zip(tables, found, strict=True)]


def _check_columns(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Check names, types and values of columns."""
    for name in sorted({*arrays, *_DTYPES}):
        if name not in _DTYPES:
            raise InputError(f"{path.name} has an unknown column {name!r}.")
        if name not in arrays:
            raise InputError(f"{path.name} has no column {name!r}.")
        column = arrays[name]
        if column.dtype != _DTYPES[name] or column.ndim != 1:
            raise InputError(
                f"The column {name!r} of {path.name} has {column.ndim} axes of {column.dtype}: it"
                f" has one of {np.dtype(_DTYPES[name])}."
            )
        if not np.all(np.isfinite(column)) or np.any(np.abs(column) > LARGEST):
            raise InputError(f"The column {name!r} of {path.name} has values that are not finite.")
        if name in _COUNTS and np.any(column < (name == "steps")):
            raise InputError(f"The column {name!r} of {path.name} has values that are too small.")
    for group, names in (("record", ("returns", *_COUNTS)), ("type", ("type_returns",))):
        if any(len(arrays[name]) != len(arrays[group]) for name in names):
            raise InputError(f"The columns of {path.name} differ in length.")


def _check_layout(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    name: str,
    values: Sequence[int],
    sizes: Sequence[int],
) -> None:
    """Check that a column holds each of these values as often as announced, one after another."""
    column = arrays[name]
    # What is announced may be of any size, so it is added up before anything is made of it.
    if sum(sizes) != len(column) or not np.array_equal(column, np.repeat(values, sizes)):
        raise InputError(
            f"The episodes of {path.name} are not those of the records (column {name!r})."
        )


def _split(column: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    return np.split(column, np.cumsum(sizes)[:-1]) if sizes else []


def episode_rows(learner: str, records: Sequence[Record]) -> Iterator[PlainDict]:
    """Return every episode as a row of a table.

    `teammates` is `pool` for the episodes with the task's test pool, or the one type of teammate.

    Args:
        learner: The name of the learner.
        records: Its records.
    """
    for record in records:
        own = {
            "learner": learner,
            "task": record.task,
            "version": record.version,
            "team_limit": record.team_limit,
            "seed": record.seed,
            "checkpoint": record.checkpoint,
            "step": record.step,
        }
        table = {name: getattr(record.episodes, name).tolist() for name in ("returns", *_COUNTS)}
        for index in range(len(record.episodes)):
            row = {name: values[index] for name, values in table.items()}
            yield own | {"teammates": "pool", "episode": index} | row
        for name, returns in record.returns_by_type.items():
            for index, value in enumerate(returns.tolist()):
                rest = dict.fromkeys(_COUNTS)
                yield own | {"teammates": name, "episode": index, "returns": value} | rest


def write_episode_table(path: Path, learners: Mapping[str, Sequence[Record]]) -> None:
    """Write every episode as a row of a CSV file.

    Args:
        path: The file; one that exists is replaced.
        learners: By the name of each learner, its records.
    """
    rows = [row for name, records in learners.items() for row in episode_rows(name, records)]
    write_table(path, rows)
