"""The results of a learner in the benchmark as a directory that others can check.

results.json             who and how, and a summary of every record
episodes.safetensors     every episode of all records, as columns
agents/                  the last and the best agent of every training run
checked.json             the receipt of `dropin benchmark submit`
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from dropin.agents import Agent, save_agent
from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import InputError
from dropin.core.files import file_checksum, write, write_json
from dropin.core.reading import MAX_JSON_BYTES
from dropin.experiments.benchmark.episode_file import (
    EPISODES_FILE,
    Played,
    read_episodes,
    write_episodes,
)
from dropin.experiments.benchmark.records import (
    CHECKPOINTS,
    MAX_AGE,
    WINDOW,
    Checkpoint,
    Record,
    Sums,
)
from dropin.experiments.benchmark.schema import (
    LARGEST,
    Reader,
    each_of,
    fields_of,
    list_of,
    number,
    one_of,
    optional,
    plain,
    read_strictly,
    text,
    whole,
)
from dropin.training.provenance import machine, versions

__all__ = [
    "AGENTS",
    "RECEIPT_FILE",
    "RESULTS_FILE",
    "RESULTS_SCHEMA",
    "SCHEMA_NUMBER",
    "SUMS",
    "About",
    "AgentKey",
    "Kind",
    "Results",
    "files_below",
    "joined_commands",
    "read_results",
    "results_name",
    "summary_problems",
    "write_results",
]

SCHEMA_NUMBER = 1
RESULTS_FILE, RECEIPT_FILE = "results.json", "checked.json"
AGENTS = "agents"
"""The directory of the agents."""
MAX_RESULTS_BYTES = 2 * MAX_JSON_BYTES
MAX_SLOTS = MAX_SEEDS = 1000
SEPARATOR, MAX_COMMANDS = "; ", 900
"""Between commands that made results, and the largest number of characters: older ones go first."""
ROUNDING = 1e-9
"""By how much a stored mean may differ from that of the episodes, relative to their size."""
SUMS = {
    "by_team_size": "reward_by_team_size",
    "around_entry": "reward_around_entry",
    "around_exit": "reward_around_exit",
    "around_change": "reward_around_change",
    "by_age": "correct_by_age",
}
"""Sums in the file, and what they are called in a record."""

_SAME = ("task", "version", "team_limit", "seed", "checkpoint", "step")
"""What is called the same in the file and in a record."""
AgentKey = tuple[str, int, int, Checkpoint]
"""Whose agent: the task, the team limit of the test, the seed of the run, and the checkpoint."""
Kind = Literal["dropin", "policy", "foreign"]
"""What plays: agents that Dropin can load, a policy that it knows by name, or another program."""


def _sums(least: int, most: int) -> Reader:
    counts, totals = list_of(whole(), least, most), list_of(number(), least, most)
    both = fields_of({"total": totals, "count": counts})

    def read(value: object, where: str) -> PlainDict:
        found = both(value, where)
        if len(found["total"]) != len(found["count"]):
            raise InputError(f"The total and the count of {where} differ in length.")
        return found

    return read


_NAME = text(r"[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*", 200)
_WORDS = text()
_PLAIN = each_of(plain, _WORDS)
_TEXTS = each_of(_WORDS, _WORDS)
_EVENT_SUMS = _sums(2 * WINDOW, 2 * WINDOW)
RECORD_SCHEMA: Mapping[str, Reader] = {
    "task": _NAME,
    "version": whole(),
    "team_limit": whole(2, MAX_SLOTS),
    "seed": whole(0, MAX_SEEDS - 1),
    "checkpoint": one_of(*CHECKPOINTS),
    "step": whole(),
    "agent": optional(_NAME),
    "episodes": whole(1),
    "mean_return": number(),
    "by_type": each_of(fields_of({"episodes": whole(1), "mean_return": number()}), _NAME),
    "by_team_size": _sums(1, MAX_SLOTS),
    "around_entry": _EVENT_SUMS,
    "around_exit": _EVENT_SUMS,
    "around_change": _EVENT_SUMS,
    "by_age": optional(_sums(MAX_AGE + 1, MAX_AGE + 1)),
}
RESULTS_SCHEMA: Mapping[str, Reader] = {
    "schema": one_of(SCHEMA_NUMBER),
    "learner": _NAME,
    "kind": one_of("dropin", "policy", "foreign"),
    "who": _WORDS,
    "contact": _WORDS,
    "settings": _PLAIN,
    "training": _PLAIN,
    "scale": number(least=1 / LARGEST, most=1),
    "command": _WORDS,
    "versions": _TEXTS,
    "flags": _TEXTS,
    "hardware": _WORDS,
    "seeds": list_of(whole(), least=1),
    "records": list_of(fields_of(RECORD_SCHEMA), least=1),
    "files": each_of(text("[0-9a-f]{64}"), _NAME),
}


@dataclass(frozen=True)
class About:
    """What a submission says of its learner, and of how its results were made."""

    learner: str
    """The name of the learner on the leaderboard."""
    kind: Kind = "dropin"
    who: str = ""
    """Who submits it."""
    contact: str = ""
    settings: PlainMapping = field(default_factory=dict)
    """The settings of the learner."""
    training: PlainMapping = field(default_factory=dict)
    """How it was trained."""
    scale: float = 1.0
    """The share of the tasks' budgets that was used; below 1 it is a small version."""
    command: str = ""
    """The command that made the results."""
    versions: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    """Flags and options of the compiler."""
    hardware: str = ""

    @classmethod
    def here(cls, learner: str, **given: object) -> "About":
        """Return what can be said on this machine: versions, flags and hardware.

        Args:
            learner: The name of the learner.
            **given: Other fields.
        """
        from dropin._xla.compile import compiler_options

        used = versions()
        options = {name: str(value) for name, value in compiler_options(quick=False).items()}
        flags = {"XLA_FLAGS": used.pop("XLA_FLAGS")} | options
        own = {"versions": used, "flags": flags, "hardware": machine()}
        return cls(learner, **(own | given))  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Results:
    """The results of a learner, as they were read from a directory."""

    directory: Path
    about: About
    records: Sequence[Record]
    summaries: Sequence[PlainMapping]
    """What results.json says of each record, in the same order."""
    files: Mapping[str, str]
    """The checksum of every other file, by its path in the directory."""

    @property
    def seeds(self) -> list[int]:
        """The seeds of the training runs."""
        return sorted({record.seed for record in self.records})

    @property
    def tasks(self) -> list[tuple[str, int]]:
        """The tasks with their versions."""
        return sorted({(record.task, record.version) for record in self.records})

    @property
    def is_small(self) -> bool:
        """Whether less than the tasks' budgets was used."""
        return self.about.scale < 1


def results_name(learner: str, scale: float) -> str:
    """Return the name of the directory of a learner's results; small versions have their own.

    Args:
        learner: The name of the learner.
        scale: The share of the tasks' budgets.
    """
    small = "" if scale == 1 else f"-scale-{scale:g}"
    return re.sub(r"[^A-Za-z0-9.+_]+", "-", learner).strip("-") + small


def joined_commands(old: str, new: str) -> str:
    """Return the commands that made results, each once and the newest last.

    Args:
        old: The commands of earlier calls.
        new: The command of this one.
    """
    commands = [each for each in old.split(SEPARATOR) if each and each != new] + [new]
    while len(commands) > 1 and len(SEPARATOR.join(commands)) > MAX_COMMANDS:
        del commands[0]
    return SEPARATOR.join(commands)


def write_results(
    directory: Path,
    records: Iterable[Record],
    about: About,
    agents: Mapping[AgentKey, Path] | Mapping[AgentKey, Agent] | None = None,
    *,
    replace: bool = False,
) -> Path:
    """Write the results of a learner as a directory.

    Args:
        directory: The directory; other files that are there belong to the results too.
        records: The records, in any order.
        about: What is said of the learner.
        agents: The last and the best agent of each training run, or their files.
        replace: Whether to replace results that are there.

    Returns:
        The file with the results.

    Raises:
        InputError: If there are results already, or something in them is not as the schema says.
    """
    path, ordered = directory / RESULTS_FILE, sorted(records, key=_order)
    if path.exists() and not replace:
        raise InputError(f"{path} exists already: give another directory.")
    agents = agents or {}
    names = _agent_names(agents)
    # Read before anything is written: a file of older results may get another name.
    contents = {names[key]: each.read_bytes() for key, each in agents.items()
                if isinstance(each, Path)}  # fmt: skip
    values = {
        "schema": SCHEMA_NUMBER,
        **asdict(about),
        "seeds": sorted({record.seed for record in ordered}),
        "records": [_summary(each, names.get(_agent_key(each)))
                    for each in ordered],
        "files": {},
    }  # fmt: skip
    fields_of(RESULTS_SCHEMA)(values, RESULTS_FILE)
    for key, agent in agents.items():
        if isinstance(agent, Agent):
            save_agent(agent, directory / names[key])
    for name, content in contents.items():
        write(directory / name, content)
    (directory / RECEIPT_FILE).unlink(missing_ok=True)
    write_episodes(directory / EPISODES_FILE, ordered)
    values["files"] = {name: file_checksum(directory / name) for name in files_below(directory)}
    write_json(path, values)
    return path


def read_results(directory: Path, *, check_summaries: bool = True) -> Results:
    """Read the results of a learner, and check all that can be checked without playing.

    Files other than results.json and the episodes are neither needed nor looked at.

    Args:
        directory: The directory.
        check_summaries: Whether the summaries have to follow from the episodes.

    Raises:
        InputError: If something is missing or not as the schema says, or a summary does not follow
            from the episodes.
    """
    stored = read_strictly(directory / RESULTS_FILE, fields_of(RESULTS_SCHEMA), MAX_RESULTS_BYTES)
    played = read_episodes(directory / EPISODES_FILE, stored["records"])
    pairs = zip(stored["records"], played, strict=True)
    records = [_record(said, each, stored["learner"]) for said, each in pairs]
    about = About(**{name: stored[name] for name in About.__dataclass_fields__})
    found = Results(directory, about, records, stored["records"], stored["files"])
    if found.seeds != stored["seeds"]:
        raise InputError(
            f"{RESULTS_FILE} has the seeds {stored['seeds']}, but records of {found.seeds}."
        )
    problem = next(summary_problems(found), None) if check_summaries else None
    if problem is not None:
        raise InputError(problem)
    return found


def summary_problems(results: Results) -> Iterator[str]:
    """Return a sentence for every summary that does not follow from the episodes.

    Args:
        results: The results.
    """
    for index, (record, said) in enumerate(zip(results.records, results.summaries, strict=True)):
        where = f"{RESULTS_FILE}.records[{index}]"
        means = {"mean_return": (said["mean_return"], record.mean_return, record.episodes.returns)}
        for name, mean in record.mean_return_by_type.items():
            given = said["by_type"][name]["mean_return"]
            means[f"by_type.{name}.mean_return"] = (given, mean, record.returns_by_type[name])
        for name, (given, mean, returns) in means.items():
            size = float(np.abs(returns).max())
            if abs(given - mean) > ROUNDING * max(1.0, size):
                yield f"{where}.{name} is {given:g}, but the mean of its episodes is {mean:g}."
        steps = int(record.episodes.steps.sum())
        if record.reward_by_team_size.count.sum() != steps:
            counted = int(record.reward_by_team_size.count.sum())
            yield f"{where}.by_team_size counts {counted} steps, but its episodes have {steps}."


def files_below(directory: Path) -> list[str]:
    """Return the paths of all files that belong to the results but results.json and the receipt.

    Hidden files are left out.

    Args:
        directory: The directory of the results.

    Raises:
        InputError: If one of them is a link.
    """
    found = []
    for folder, inner, names in os.walk(directory):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in (*inner, *names):
            path = Path(folder) / name
            if path.is_symlink():
                raise InputError(f"{path} is a link: results hold files only.")
        found += [(Path(folder) / name).relative_to(directory).as_posix()
                  for name in names if not name.startswith(".")]  # fmt: skip
    return sorted(set(found) - {RESULTS_FILE, RECEIPT_FILE})


def _record(said: PlainMapping, played: Played, learner: str) -> Record:
    """Return a record from its summary and its episodes."""
    values: PlainDict = {name: said[name] for name in _SAME}
    for name, attribute in SUMS.items():
        found = said[name]
        values[attribute] = found and Sums(
            np.array(found["total"], np.float64), np.array(found["count"], np.int64)
        )
    values |= {"episodes": played.episodes, "returns_by_type": played.returns_by_type}
    return Record(**values, learner=learner)


def _order(record: Record) -> tuple[str, int, int, int, int]:
    place = CHECKPOINTS.index(record.checkpoint)
    return record.task, record.version, record.team_limit, record.seed, place


def _agent_key(record: Record) -> AgentKey:
    return record.task, record.team_limit, record.seed, record.checkpoint


def _agent_names(
    agents: Mapping[AgentKey, Path] | Mapping[AgentKey, Agent],
) -> dict[AgentKey, str]:
    """Return the file of each agent in the directory; an agent of several tests has one file."""
    names: dict[AgentKey, str] = {}
    files: dict[str, str] = {}
    checksums = {
        path: file_checksum(path) for path in set(agents.values()) if isinstance(path, Path)
    }
    for key, agent in agents.items():
        task, limit, seed, checkpoint = key
        own = f"{task.replace('/', '-')}-limit-{limit}-seed-{seed}-{checkpoint}.safetensors"
        names[key] = f"{AGENTS}/{own}"
        if isinstance(agent, Path):
            names[key] = files.setdefault(checksums[agent], names[key])
    return names


def _summary(record: Record, agent: str | None) -> PlainDict:
    """Return what results.json says of a record."""
    sums = {name: getattr(record, attribute) for name, attribute in SUMS.items()}
    return {
        **{name: getattr(record, name) for name in _SAME},
        "agent": agent,
        "episodes": record.num_episodes,
        "mean_return": record.mean_return,
        "by_type": {
            name: {"episodes": len(record.returns_by_type[name]), "mean_return": mean}
            for name, mean in record.mean_return_by_type.items()
        },
        **{
            name: None
            if each is None
            else {"total": each.total.tolist(), "count": each.count.tolist()}
            for name, each in sums.items()
        },
    }
