"""Who stands where: the results of several learners, and the references among them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dropin.core.errors import InputError
from dropin.experiments.benchmark.receipt import check_receipt
from dropin.experiments.benchmark.records import Checkpoint, Record
from dropin.experiments.benchmark.results import RESULTS_FILE, Results, read_results
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
    task_returns,
    task_scores,
)

__all__ = ["Collected", "Standing", "collect"]


@dataclass(frozen=True)
class Collected:
    """The results below a directory."""

    results: Sequence[Results]
    """Those that can be compared."""
    refused: Mapping[Path, str]
    """By directory, why the others cannot."""


def collect(roots: Iterable[Path], *, need_receipt: bool = True) -> Collected:
    """Read all results below some directories.

    Args:
        roots: The directories; each may be one with results, or hold any number of them.
        need_receipt: Whether results have to have been checked by `dropin benchmark submit`.

    Raises:
        InputError: If a directory does not exist.
    """
    found: list[Results] = []
    refused: dict[Path, str] = {}
    for root in roots:
        if not root.is_dir():
            raise InputError(f"There is no directory {root}.")
        for path in sorted(root.rglob(RESULTS_FILE)):
            try:
                results = read_results(path.parent)
                if need_receipt:
                    check_receipt(results)
            except InputError as error:
                refused[path.parent] = str(error)
            else:
                found.append(results)
    return Collected(found, refused)


@dataclass(frozen=True)
class Standing:
    """All learners whose results are known, and what they are measured against."""

    learners: Mapping[str, Sequence[Record]]
    """By name, the records of each learner but the references."""
    references: Mapping[Situation, Reference]
    checkpoint: Checkpoint = "last"
    """Which agents are compared."""

    @classmethod
    def of(cls, results: Sequence[Results], checkpoint: Checkpoint = "last") -> "Standing":
        """Return the standing of some results, those of the references among them.

        Args:
            results: The results; two of the same learner get numbers after their names.
            checkpoint: Which agents to compare.
        """
        chance = [each for one in results if one.about.learner == CHANCE for each in one.records]
        best = [
            each for one in results if one.about.learner == BEST_RESPONSE for each in one.records
        ]
        learners: dict[str, Sequence[Record]] = {}
        for one in results:
            name, number = one.about.learner, 2
            if name in (CHANCE, BEST_RESPONSE):
                continue
            while name in learners:
                name, number = f"{one.about.learner} ({number})", number + 1
            learners[name] = one.records
        return cls(learners, find_references(chance, best), checkpoint)

    @cached_property
    def situations(self) -> dict[Situation, dict[str, list[Record]]]:
        """By situation and learner, the record of each seed."""
        found: dict[Situation, dict[str, list[Record]]] = {}
        for name, records in self.learners.items():
            for situation, runs in by_situation(records, self.checkpoint).items():
                found.setdefault(situation, {})[name] = runs
        return dict(sorted(found.items()))

    @cached_property
    def scores(self) -> dict[str, dict[TaskKey, dict[int, float]]]:
        """By learner and task, the score of each run."""
        return {
            name: task_scores(records, self.references, self.checkpoint)
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
        return list(dict.fromkeys(situation.task.game for situation in self.situations))

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
