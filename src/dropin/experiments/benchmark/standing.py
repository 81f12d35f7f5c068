"""Who stands where: the results of several learners, and the references among them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from dropin.core.errors import InputError
from dropin.evaluation.statistics import Estimate
from dropin.experiments.benchmark.kept_results import KEPT_FILE, KeptResults, read_kept
from dropin.experiments.benchmark.receipt import check_receipt
from dropin.experiments.benchmark.records import Checkpoint, Measured
from dropin.experiments.benchmark.results import RESULTS_FILE, About, Results, read_results
from dropin.experiments.benchmark.scores import (
    BEST_RESPONSE,
    CHANCE,
    Aggregate,
    Reference,
    Situation,
    TaskKey,
    aggregate,
    by_situation,
    find_references,
    improvement,
    task_returns,
    task_scores,
)
from dropin.experiments.benchmark.tasks import Task

__all__ = ["AnyResults", "Collected", "Duel", "Gap", "Standing", "collect"]

AnyResults = Results | KeptResults
REFERENCES = (CHANCE, BEST_RESPONSE)
CLOSED = "not for this agent: it was trained with types of the test"


@dataclass(frozen=True)
class Collected:
    """The results below a directory."""

    results: Sequence[AnyResults]
    """Those that can be compared."""
    refused: Mapping[Path, str]
    """By directory, why the others cannot."""


def collect(roots: Iterable[Path], *, need_receipt: bool = True) -> Collected:
    """Read all results below some directories, whole ones and kept ones.

    Args:
        roots: The directories; each may be one with results, or hold any number of them.
        need_receipt: Whether results have to have been checked by `dropin benchmark submit`.

    Raises:
        InputError: If a directory does not exist.
    """
    found: list[AnyResults] = []
    refused: dict[Path, str] = {}
    for root in roots:
        if not root.is_dir():
            raise InputError(f"There is no directory {root}.")
        for path in sorted([*root.rglob(RESULTS_FILE), *root.rglob(KEPT_FILE)]):
            try:
                found.append(_read(path, need_receipt=need_receipt))
            except InputError as error:
                refused[path.parent] = str(error)
    return Collected(found, refused)


def _read(path: Path, *, need_receipt: bool) -> AnyResults:
    if path.name == KEPT_FILE:
        kept = read_kept(path.parent)
        if need_receipt and kept.receipt is None:
            raise InputError(f"{path.parent} was kept without being checked.")
        return kept
    results = read_results(path.parent)
    if need_receipt:
        check_receipt(results)
    return results


@dataclass(frozen=True)
class Duel:
    """Two learners in the situations that both have taken, by their raw returns."""

    tasks: int
    """In how many tasks they can be compared."""
    ahead: int
    """In how many of them the first one has the larger mean return."""
    chance: Estimate
    """The probability that a run of the first is above one of the second, averaged over tasks."""


@dataclass(frozen=True)
class Gap:
    """Something that was not measured."""

    learner: str
    task: TaskKey
    missing: str
    """What is missing, as `no run` or `seeds 2, 3`, or why nothing can be there."""


@dataclass(frozen=True)
class Standing:
    """All learners whose results are known, and what they are measured against."""

    learners: Mapping[str, Sequence[Measured]]
    """By name, the records of each learner but the references."""
    reference_records: Mapping[str, Sequence[Measured]] = field(default_factory=dict)
    """By name, the records of the references."""
    checkpoint: Checkpoint = "last"
    """Which agents are compared."""
    tasks: Sequence[Task] = ()
    """The tasks that a learner should have taken, if it has taken one of their game."""
    about: Mapping[str, About] = field(default_factory=dict)
    """By name, what is said of each learner."""

    @classmethod
    def of(
        cls,
        results: Sequence[AnyResults],
        checkpoint: Checkpoint = "last",
        tasks: Sequence[Task] = (),
    ) -> "Standing":
        """Return the standing of some results, those of the references among them.

        Args:
            results: The results; two of the same learner get numbers after their names.
            checkpoint: Which agents to compare.
            tasks: The tasks that a learner should have taken.
        """
        known: dict[str, list[Measured]] = {name: [] for name in REFERENCES}
        learners: dict[str, Sequence[Measured]] = {}
        about: dict[str, About] = {}
        for one in results:
            name, number = one.about.learner, 2
            if name in known:
                known[name] += one.records
                continue
            while name in learners:
                name, number = f"{one.about.learner} ({number})", number + 1
            learners[name], about[name] = one.records, one.about
        return cls(learners, known, checkpoint, tasks, about)

    @cached_property
    def references(self) -> dict[Situation, Reference]:
        """What scores are made with; the last agents of the best response count."""
        return find_references(*(self.reference_records.get(name, ()) for name in REFERENCES))

    @cached_property
    def everybody(self) -> dict[str, dict[Situation, list[Measured]]]:
        """By name and situation the record of each seed: learners first, then references."""
        found = {
            name: by_situation(records, self.checkpoint) for name, records in self.learners.items()
        }
        return found | {
            name: own
            for name, records in self.reference_records.items()
            if (own := by_situation(records))
        }

    @cached_property
    def situations(self) -> dict[Situation, dict[str, list[Measured]]]:
        """By situation and learner, the record of each seed; references are left out."""
        found: dict[Situation, dict[str, list[Measured]]] = {}
        for name in self.learners:
            for situation, runs in self.everybody[name].items():
                found.setdefault(situation, {})[name] = runs
        return dict(sorted(found.items()))

    @cached_property
    def limits(self) -> dict[TaskKey, set[int]]:
        """The team limits of each task: those it asks for, and those somebody was tested at."""
        found: dict[TaskKey, set[int]] = {}
        for own in self.everybody.values():
            for situation in own:
                found.setdefault(situation.task, set()).add(situation.team_limit)
        games = {task.game for task in found}
        for task in self.tasks:
            if task.game in games:
                found.setdefault(TaskKey(task.name, task.version), set()).update(task.test_limits)
        return dict(sorted(found.items()))

    @cached_property
    def scores(self) -> dict[str, dict[TaskKey, dict[int, float]]]:
        """By learner and task, the score of each run that was tested at all team limits."""
        return {
            name: {
                task: runs
                for task, runs in task_scores(records, self.references, self.checkpoint).items()
                if runs and self.limits[task] <= self._tested(name, task)
            }
            for name, records in self.learners.items()
        }

    @cached_property
    def returns(self) -> dict[str, dict[TaskKey, dict[int, float]]]:
        """By learner and task, the mean return of each run."""
        return {
            name: task_returns(records, self.checkpoint) for name, records in self.learners.items()
        }

    @property
    def games(self) -> list[str]:
        """The games of the tasks."""
        return list(dict.fromkeys(task.game for task in self.limits))

    def _tested(self, name: str, task: TaskKey) -> set[int]:
        """Return the team limits at which a learner was tested in a task."""
        return {each.team_limit for each in self.everybody[name] if each.task == task}

    def players(self, game: str) -> list[str]:
        """Return the learners and references with records in a game.

        Args:
            game: The game.
        """
        return [
            name for name, own in self.everybody.items() if any(s.task.game == game for s in own)
        ]

    def missing(self) -> dict[str, list[Situation]]:
        """Return the situations without a score, by what is missing."""
        found: dict[str, list[Situation]] = {}
        for situation in self.situations:
            for name in self.references.get(situation, Reference()).missing:
                found.setdefault(name, []).append(situation)
        return found

    def ranked(self, game: str) -> tuple[list[TaskKey], dict[str, Aggregate]]:
        """Return the scored tasks of a game, and the aggregates of the learners that have them all.

        Args:
            game: The game.
        """
        tasks = list(dict.fromkeys(
            task for scores in self.scores.values() for task in scores if task.game == game
        ))  # fmt: skip
        found: dict[str, Aggregate] = {}
        for name, scores in self.scores.items():
            if tasks and all(scores.get(task) for task in tasks):
                whole = aggregate({task: scores[task] for task in tasks})
                if whole is not None:
                    found[name] = whole
        order = sorted(found, key=lambda name: -found[name].mean.mean)
        return tasks, {name: found[name] for name in order}

    def unranked(self, game: str) -> dict[str, str]:
        """Return the learners of a game that have no rank, and why.

        Args:
            game: The game.
        """
        tasks, ranked = self.ranked(game)
        found = {}
        for name in self.players(game):
            if name in REFERENCES or name in ranked:
                continue
            lacks = [task.short for task in tasks if task not in self.scores[name]]
            found[name] = (
                f"no complete run in {', '.join(lacks)}" if lacks else "no task has both references"
            )
        return found

    def gaps(self, game: str) -> list[Gap]:
        """Return what was not measured in a game: for each learner the tasks, limits and seeds.

        Args:
            game: The game.
        """
        found = []
        for name in dict.fromkeys([*self.players(game), *REFERENCES]):
            own = self.everybody.get(name, {})
            seeds = {run.seed for s, runs in own.items() if s.task.game == game for run in runs}
            for task, limits in self.limits.items():
                if task.game != game:
                    continue
                done = {limit: {run.seed for run in own.get(Situation(task, limit), ())}
                        for limit in sorted(limits)}  # fmt: skip
                if text := CLOSED if self._is_closed(name, task) else _missing_text(done, seeds):
                    found.append(Gap(name, task, text))
        return found

    def _is_closed(self, name: str, task: TaskKey) -> bool:
        """Return whether a task is not for an agent, which has met types of the test."""
        about = self.about.get(name)
        if about is None or "/" not in about.learner:
            return False
        wanted = [each for each in self.tasks if (each.name, each.version) == task]
        return any(each.met_in_training(about.training.get("types")) for each in wanted)

    def duels(self, game: str) -> dict[tuple[str, str], Duel]:
        """Compare all pairs of learners and references of a game by raw returns.

        Args:
            game: The game.

        Returns:
            The comparisons of pairs that share a situation, by both names.
        """
        names = self.players(game)
        found = {}
        for ours in names:
            for theirs in names:
                if ours != theirs and (duel := self._duel(ours, theirs, game)):
                    found[ours, theirs] = duel
        return found

    def _duel(self, ours: str, theirs: str, game: str) -> Duel | None:
        one, two = self.everybody[ours], self.everybody[theirs]
        both = [each for each in one if each in two and each.task.game == game]
        tables = [
            task_returns([run for each in both for run in own[each]], own[both[0]][0].checkpoint)
            for own in (one, two)
            if both
        ]
        better = improvement(*tables) if tables else None
        if better is None:
            return None
        tasks = [task for task in tables[0] if tables[0][task] and tables[1].get(task)]
        means = [[np.mean(list(table[task].values())) for task in tasks] for table in tables]
        ahead = sum(bool(a > b) for a, b in zip(*means, strict=True))
        return Duel(len(tasks), ahead, better)


def _missing_text(done: Mapping[int, set[int]], seeds: set[int]) -> str:
    """Return which seeds are missing at which team limits; nothing if none is."""
    if not any(done.values()):
        return "no run"
    every = range(max(seeds) + 1)
    lacks = {limit: [seed for seed in every if seed not in own] for limit, own in done.items()}
    parts: dict[str, list[str]] = {}
    for limit, missing in lacks.items():
        if missing:
            what = "all seeds" if len(missing) == len(every) else _listed("seed", missing)
            parts.setdefault(what, []).append(str(limit))
    texts = [
        what if len(limits) == len(done) else f"{what} at {_listed('limit', limits)}"
        for what, limits in parts.items()
    ]
    return "; ".join(texts)


def _listed(word: str, values: Sequence[object]) -> str:
    return f"{word}{'s' * (len(values) > 1)} {', '.join(map(str, values))}"
