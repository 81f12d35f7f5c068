"""Records on disk: one file for each, with the checksum of the agent that was measured."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import InputError
from dropin.core.files import read_arrays, write_arrays
from dropin.experiments.benchmark.records import EpisodeTable, Record, Sums
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


@dataclass(frozen=True)
class Source:
    """What a record was made from; if it is the same, nothing has to be measured again."""

    agent: str
    """The checksum of the agent's file, or the name of a policy that needs none."""
    task: str
    """The identity of the task, see `Task.identity`."""
    episodes: int
    """The number of episodes that was asked for."""


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
    described = {"kind": "record", "format": FORMAT, "types": types, "source": vars(source)}
    write_arrays(path, arrays, about | described)


def load_record(path: Path) -> tuple[Record, Source]:
    """Read a record, and what it was made from.

    Args:
        path: The file.

    Raises:
        InputError: If the file is missing, damaged or something else.
    """
    arrays, about = read_arrays(path)
    if about.get("kind") != "record":
        raise InputError(f"{path} is not a record of the benchmark.")
    if about.get("format") != FORMAT:
        raise InputError(
            f"{path} is of format {about.get('format')}, and this version reads format {FORMAT}."
        )
    try:
        return _record(arrays, about), Source(**about["source"])
    except (KeyError, TypeError):
        raise InputError(f"{path} is damaged: it lacks a part of the record.") from None


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
