"""Records on disk: one file for each, with the checksum of the agent that was measured."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypedDict

import numpy as np

from dropin.core.config import PlainDict, PlainMapping, misfit
from dropin.core.errors import InputError
from dropin.core.files import read_arrays, write_arrays
from dropin.experiments.benchmark.records import Checkpoint, EpisodeTable, Record, Sums
from dropin.experiments.benchmark.tasks import Task

__all__ = ["Source", "load_record", "load_records", "record_path", "save_record"]

RECORDS = "records"
FORMAT = 1
_SUMS = (
    "reward_by_team_size", "reward_around_entry", "reward_around_exit", "reward_around_change",
    "correct_by_age",
)  # fmt: skip
_PLAIN = ("task", "version", "team_limit", "seed", "checkpoint", "step", "learner")
_TYPE = "returns_by_type."
_KIND = "record"


@dataclass(frozen=True)
class Source:
    """What a record was made from; if it is the same, nothing has to be measured again."""

    agent: str
    """The checksum of the agent's file, or the name of a policy that needs none."""
    task: str
    """The identity of the task, see `Task.identity`."""
    episodes: int
    """The number of episodes that was asked for."""


class _Source(TypedDict):
    agent: str
    task: str
    episodes: int


class _Described(TypedDict):
    task: str
    version: int
    team_limit: int
    seed: int
    checkpoint: Checkpoint
    step: int
    learner: str
    types: list[str]
    source: _Source


def record_path(
    directory: Path, learner: str, task: Task, limit: int, seed: int, checkpoint: str
) -> Path:
    """Return the file of a record.

    Args:
        directory: The directory of the benchmark.
        learner: Who is measured.
        task: The task.
        limit: The team limit.
        seed: The seed of the training run.
        checkpoint: `last` or `best`.
    """
    name = re.sub(r"[^A-Za-z0-9.]+", "-", learner).strip("-")
    file = f"limit-{limit}-seed-{seed}-{checkpoint}.safetensors"
    return directory / RECORDS / name / task.name / file


def save_record(path: Path, record: Record, source: Source) -> None:
    """Write a record, atomically.

    Args:
        path: The file; one that exists is replaced.
        record: The record.
        source: What it was made from.
    """
    arrays: dict[str, np.ndarray] = {}
    for each in fields(EpisodeTable):
        arrays[f"episodes.{each.name}"] = getattr(record.episodes, each.name)
    for name in _SUMS:
        sums = getattr(record, name)
        if sums is not None:
            arrays |= {f"{name}.total": sums.total, f"{name}.count": sums.count}
    arrays |= {f"{_TYPE}{name}": each for name, each in record.returns_by_type.items()}
    about: PlainDict = {name: getattr(record, name) for name in _PLAIN}
    types = list(record.returns_by_type)
    described = {"kind": _KIND, "format": FORMAT, "types": types, "source": vars(source)}
    write_arrays(path, arrays, about | described)


def load_record(path: Path) -> tuple[Record, Source]:
    """Read a record, and what it was made from.

    Args:
        path: The file.

    Raises:
        InputError: If the file is missing, damaged or something else.
    """
    arrays, about = read_arrays(path)
    if about.get("kind") != _KIND:
        raise InputError(f"{path} is not a record of the benchmark.")
    if about.get("format") != FORMAT:
        raise InputError(
            f"{path} is of format {about.get('format')}, and this version reads format {FORMAT}."
        )
    if expected := misfit(about, _Described):
        raise InputError(f"{path} is damaged: what it says of itself is not {expected}.")
    try:
        record = _record(arrays, about)
        _check_shapes(record)
        return record, Source(**about["source"])
    except (KeyError, TypeError):
        raise InputError(f"{path} is damaged: it lacks a part of the record.") from None
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}.") from None


def _check_shapes(record: Record) -> None:
    """Raise `ValueError` if columns that belong together have different lengths."""
    sums = [each for name in _SUMS if (each := getattr(record, name)) is not None]
    groups: list[list[np.ndarray]] = [
        list(vars(record.episodes).values()), *([each.total, each.count] for each in sums),
        *([each] for each in record.returns_by_type.values()),
    ]  # fmt: skip
    for group in groups:
        if any(each.ndim != 1 or each.shape != group[0].shape for each in group):
            raise ValueError("its columns differ in length")
        if not len(group[0]):
            raise ValueError("a column of it is empty")


def _record(arrays: Mapping[str, np.ndarray], about: PlainMapping) -> Record:
    columns = {each.name: arrays[f"episodes.{each.name}"] for each in fields(EpisodeTable)}
    sums = {
        name: Sums(arrays[f"{name}.total"], arrays[f"{name}.count"])
        for name in _SUMS
        if name != "correct_by_age" or f"{name}.total" in arrays
    }
    return Record(
        **{name: about[name] for name in _PLAIN},
        episodes=EpisodeTable(**columns),
        returns_by_type={name: arrays[f"{_TYPE}{name}"] for name in about["types"]},
        **{"correct_by_age": None, **sums},
    )


def load_records(directory: Path) -> list[Record]:
    """Read all records of a benchmark, in the order of their files.

    Args:
        directory: The directory of the benchmark, or one with records of it.

    Raises:
        InputError: If there is no such directory, or a file is damaged.
    """
    if not directory.is_dir():
        raise InputError(f"There is no directory {directory}.")
    own = directory / RECORDS
    root = own if own.is_dir() else directory
    return [load_record(path)[0] for path in sorted(root.rglob("*-seed-*.safetensors"))]
