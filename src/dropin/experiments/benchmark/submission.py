"""Checks of a submission: all tasks, all seeds, untouched files, and agents that play as they say.

`check_submission` finds everything that is wrong; what is written if nothing is wrong is in
`dropin.experiments.benchmark.receipt`.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Protocol

import numpy as np

from dropin.agents import load_agent
from dropin.core.errors import InputError, StoppedError, unknown
from dropin.core.files import file_checksum
from dropin.experiments.benchmark.records import CHECKPOINTS, Record, Sums
from dropin.experiments.benchmark.results import (
    RESULTS_FILE,
    About,
    Kind,
    Results,
    files_below,
    read_results,
    summary_problems,
)
from dropin.experiments.benchmark.schema import check_size
from dropin.experiments.benchmark.scores import Situation, TaskKey

__all__ = [
    "Check",
    "Replay",
    "TaskRules",
    "check_submission",
    "record_differences",
]

SAMPLE = 10
"""A quick check plays one of this many records again, at least `MIN_SAMPLE`."""
MIN_SAMPLE = 3
NOISE = 4.0
"""On another kind of machine, means of episodes may differ by this many standard errors."""
MAX_AGENT_BYTES = 2**30


@dataclass(frozen=True)
class TaskRules:
    """What a task asks of a submission."""

    name: str
    version: int
    team_limits: tuple[int, ...]
    """The team limits of the test."""
    steps: int
    """Environment steps at the end of training, at the scale of the submission."""
    episodes: int
    """Episodes of the test at each limit."""

    @property
    def key(self) -> TaskKey:
        """The task in its version."""
        return TaskKey(self.name, self.version)


class Replay(Protocol):
    """Plays the episodes of a record again."""

    def __call__(self, record: Record, agent: Path | None) -> Record:
        """Return what is measured now.

        Args:
            record: The record of the submission; its numbers are not used.
            agent: The file of its agent; None for a policy of another kind.
        """
        ...


@dataclass(frozen=True)
class Check:
    """What a check of a submission has found."""

    problems: Sequence[str]
    """A sentence for everything that is wrong."""
    results: Results | None = None
    """The results, if they could be read."""
    num_equal: int = 0
    """How many records were played again with equal numbers."""
    num_close: int = 0
    """How many were played again on another kind of machine with equal means but for noise."""

    @property
    def summary(self) -> str:
        """What was played again, as a sentence."""
        total = 0 if self.results is None else len(self.results.records)
        played = self.num_equal + self.num_close
        if not played:
            return f"None of the {total} records was played again: not re-evaluated."
        text = f"{played} of {total} records were played again, {self.num_equal} with equal numbers"
        close = f" and {self.num_close} with equal means but for noise" if self.num_close else ""
        return f"{text}{close}."


def check_submission(
    directory: Path,
    tasks: Sequence[TaskRules],
    replay: Replay | None,
    *,
    quick: bool = False,
) -> Check:
    """Find everything that is wrong with a submission.

    Args:
        directory: The directory of the results.
        tasks: All tasks of the benchmark.
        replay: Plays records again; None if nobody can.
        quick: Whether to play only a sample of the records, which the checksum of the results
            chooses.
    """
    try:
        results = read_results(directory, check_summaries=False)
    except InputError as error:
        return Check([str(error)])
    problems = [
        *_task_problems(results, tasks),
        *summary_problems(results),
        *_file_problems(results),
        *_agent_problems(results),
    ]
    if problems or replay is None:
        return Check(problems, results)
    return _play_again(results, replay, quick=quick)


def _task_problems(results: Results, tasks: Sequence[TaskRules]) -> Iterator[str]:
    """Return a sentence for every task that is missing, unknown or of another version."""
    games = {name.partition("/")[0] for name, _ in results.tasks}
    found = {TaskKey(*each) for each in results.tasks}
    rules, newest = {each.key: each for each in tasks}, {each.name: each.version for each in tasks}
    for task in sorted(found - set(rules)):
        if task.name not in newest:
            yield str(unknown("task", task.name, newest))
        else:
            yield f"{task} is out of date: the task is at version {newest[task.name]}."
    for task in rules:
        if task.game in games and task not in found:
            yield f"The task {task} is missing: a submission has all tasks of {task.game}."
    yield from _record_problems(results, [rules[task] for task in sorted(found & set(rules))])


def _record_problems(results: Results, tasks: Sequence[TaskRules]) -> Iterator[str]:
    """Return a sentence for every record that is missing, too many, or of another training."""
    checkpoints = CHECKPOINTS if results.about.kind == "dropin" else CHECKPOINTS[:1]
    records = {(Situation.of(each), each.checkpoint, each.seed): each for each in results.records}
    if len(records) < len(results.records):
        yield "There are several records of the same agent in the same situation."
    for task in tasks:
        limits = {situation.team_limit for situation, *_ in records if situation.task == task.key}
        for limit in sorted(limits - set(task.team_limits)):
            yield f"{task.key} has no test at team limit {limit}."
    wanted = product(tasks, checkpoints, range(max(results.seeds) + 1))
    for task, checkpoint, seed in wanted:
        for limit in task.team_limits:
            place = (Situation(task.key, limit), checkpoint, seed)
            where = f"{place[0]}, {checkpoint} agent, seed {seed}"
            if place not in records:
                yield f"There is no record of {where}."
            else:
                yield from _length_problems(records[place], task, where, results.about.kind)


def _length_problems(record: Record, task: TaskRules, where: str, kind: Kind) -> Iterator[str]:
    """Return a sentence if an agent was trained or tested for longer or shorter than the task says.

    The best agent may be of any step up to the end, and so may be what was trained elsewhere.
    """
    exact = kind == "dropin" and record.checkpoint == "last"
    if record.step > task.steps or (exact and record.step < task.steps):
        allowed = f"{task.steps:,}" if exact else f"at most {task.steps:,}"
        yield f"{where} was trained for {record.step:,} steps: it is {allowed}."
    if len(record.episodes) != task.episodes:
        yield f"{where} was tested in {len(record.episodes)} episodes: it is {task.episodes}."


def _file_problems(results: Results) -> Iterator[str]:
    """Return a sentence for every file that is missing, new or changed."""
    try:
        there = set(files_below(results.directory))
    except InputError as error:
        yield str(error)
        return
    for name in sorted({*there, *results.files}):
        if name not in results.files:
            yield f"The file {name} is not listed in {RESULTS_FILE}."
        elif name not in there:
            yield f"The file {name} is missing."
        elif file_checksum(results.directory / name) != results.files[name]:
            yield f"The file {name} was changed: its checksum is not that of {RESULTS_FILE}."


def _agent_problems(results: Results) -> Iterator[str]:
    """Return a sentence for every agent that is missing, damaged, or of another game."""
    if results.about.kind != "dropin":
        return
    games: dict[str, str] = {}
    """The game that an agent plays, by the checksum of its file; nothing if it was named before."""
    for record, said in zip(results.records, results.summaries, strict=True):
        name = said["agent"]
        if name is None:
            place = f"{Situation.of(record)}, {record.checkpoint} agent, seed {record.seed}"
            yield f"{place} has no file with its agent."
            continue
        if name not in results.files:
            yield f"The agent {name} is not listed among the files of {RESULTS_FILE}."
            continue
        known = results.files[name]
        if known not in games:
            try:
                check_size(results.directory / name, MAX_AGENT_BYTES)
                games[known] = load_agent(results.directory / name).interface.game
            except InputError as error:
                games[known] = ""
                yield str(error)
        game = TaskKey(record.task, record.version).game
        if games[known] not in ("", game):
            yield f"The agent {name} plays {games[known]}, but its task is {record.task}."
            games[known] = ""


def _play_again(results: Results, replay: Replay, *, quick: bool) -> Check:
    """Play records again and compare them with what the submission says."""
    problems, num_equal, num_close = [], 0, 0
    same_kind = not _other_kind(results.about)
    for index in _sample(results, quick=quick):
        record, agent = results.records[index], results.summaries[index]["agent"]
        where = f"{Situation.of(record)}, {record.checkpoint} agent, seed {record.seed}"
        try:
            again = replay(record, None if agent is None else results.directory / agent)
        except (InputError, StoppedError) as error:
            problems.append(f"{where} cannot be played again: {error}")
            continue
        different = record_differences(record, again)
        if not different:
            num_equal += 1
        elif not same_kind and _is_close(record, again):
            num_close += 1
        else:
            one, two = (float(np.mean(each.episodes.returns)) for each in (record, again))
            problems.append(
                f"{where} was played again with other {', '.join(different)}: the mean return is"
                f" {two:.4f}, not {one:.4f}."
            )
    if problems and not same_kind:
        other = "; ".join(_other_kind(results.about))
        problems.append(f"The results were made with another machine or other versions ({other}).")
    return Check(problems, results, num_equal, num_close)


def _sample(results: Results, *, quick: bool) -> list[int]:
    """Return which records to play again: all of them, or those with the smallest checksums."""
    everything = range(len(results.records))
    if not quick:
        return list(everything)
    whole = file_checksum(results.directory / RESULTS_FILE)
    order = sorted(everything, key=lambda at: hashlib.sha256(f"{whole} {at}".encode()).digest())
    return sorted(order[: max(MIN_SAMPLE, -(-len(order) // SAMPLE))])


def _other_kind(about: About) -> list[str]:
    """Return in what the machine of some results differs from this one."""
    here = About.here(about.learner)
    pairs = {"hardware": (about.hardware.split(",")[0], here.hardware.split(",")[0])}
    for name in ("versions", "flags"):
        one, two = getattr(about, name), getattr(here, name)
        pairs |= {each: (one.get(each, ""), two.get(each, "")) for each in sorted({*one, *two})}
    return [f"{name}: {one}, not {two}" for name, (one, two) in pairs.items() if one != two]


def record_differences(one: Record, two: Record) -> list[str]:
    """Return the names of what differs between two measurements, to the last bit.

    Args:
        one: A record.
        two: Another one of the same agent.
    """
    parts: list[tuple[str, object, object]] = [
        *((name, getattr(one.episodes, name), getattr(two.episodes, name))
          for name in ("returns", "steps", "entries", "exits", "type_changes")),
        ("returns by type", one.returns_by_type, two.returns_by_type),
        ("rewards by team size", one.reward_by_team_size, two.reward_by_team_size),
        ("rewards around entries", one.reward_around_entry, two.reward_around_entry),
        ("rewards around exits", one.reward_around_exit, two.reward_around_exit),
        ("rewards around type changes", one.reward_around_change, two.reward_around_change),
        ("predictions", one.correct_by_age, two.correct_by_age),
    ]  # fmt: skip
    return [name.replace("_", " ") for name, a, b in parts if not _is_equal(a, b)]


def _is_equal(one: object, two: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return one.shape == two.shape and bool(np.all(one == two))
    if isinstance(one, Sums) and isinstance(two, Sums):
        return _is_equal(one.total, two.total) and _is_equal(one.count, two.count)
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(_is_equal(one[name], two[name]) for name in one)
    return one is None and two is None


def _is_close(one: Record, two: Record) -> bool:
    """Return whether the mean returns differ by no more than noise."""
    a, b = (each.episodes.returns.astype(np.float64) for each in (one, two))
    error = np.sqrt(a.var() / len(a) + b.var() / len(b))
    return bool(abs(a.mean() - b.mean()) <= NOISE * error)
