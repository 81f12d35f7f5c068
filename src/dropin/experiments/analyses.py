"""Results of analyses of trained agents: stored, so that none is computed twice.

An analysis needs the agent of a checkpoint, which is large; its result is small. A run that is kept
in the repository without its agents therefore has the results in a file, `analyses.json`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from dropin.core.config import PlainDict, PlainMapping, misfit
from dropin.core.errors import InputError
from dropin.core.files import read_json, write_json

if TYPE_CHECKING:
    from dropin.agents import Agent
    from dropin.experiments.planning import StoredRun

__all__ = ["ANALYSES", "AnalysisCache", "KeptAnalyses", "read_stored_result"]

ANALYSES = "analyses.json"


class _Stored(TypedDict):
    key: PlainDict
    result: Any


class _File(TypedDict):
    experiments: Sequence[str]
    results: Sequence[PlainDict]


@dataclass(frozen=True)
class KeptAnalyses:
    """Results of analyses that are kept with a run, in place of its agents."""

    experiments: frozenset[str] = frozenset()
    """The experiments that find all results they need of this run."""
    results: Mapping[str, PlainDict] = field(default_factory=dict)
    """Results with their keys, by the hash of the key."""

    @classmethod
    def read(cls, directory: Path) -> "KeptAnalyses":
        """Read the results that are kept in a directory.

        Args:
            directory: The directory of a run.

        Raises:
            InputError: If the file is damaged.
        """
        file = directory / ANALYSES
        if not file.exists():
            return cls()
        stored = read_json(file, nan=True)
        if expected := misfit(stored, _File):
            raise InputError(f"{file} is damaged: it is not {expected}.")
        for each in stored["results"]:
            if expected := misfit(each, _Stored):
                raise InputError(f"{file} is damaged: a result is not {expected}.")
        results = {_hash(each["key"]): each for each in stored["results"]}
        return cls(frozenset(stored["experiments"]), results)

    def with_results(self, experiment: str, results: Mapping[str, PlainDict]) -> "KeptAnalyses":
        """Return these results and those that an experiment has used.

        Args:
            experiment: Name of the experiment.
            results: Results with their keys, by the hash of the key.
        """
        return KeptAnalyses(self.experiments | {experiment}, {**self.results, **results})

    def write(self, directory: Path) -> None:
        """Write the results into the directory of a run.

        Args:
            directory: The directory.
        """
        content = {"experiments": sorted(self.experiments), "results": list(self.results.values())}
        write_json(directory / ANALYSES, content)


class AnalysisCache:
    """Results of analyses, stored in a directory; those that are kept with a run come first.

    Args:
        directory: Where new results are stored, a file each.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        self.used: dict[str, dict[str, PlainDict]] = {}
        """All results that were asked for, by the identity of the run and the hash of the key."""

    def get(
        self,
        analysis: str,
        run: "StoredRun",
        step: int,
        compute: "Callable[[Agent], Any]",
        **settings: Any,
    ) -> Any:
        """Return the result of an analysis, computed if it is not stored.

        Args:
            analysis: Name of the analysis.
            run: The run whose agent is analysed.
            step: The step of the agent's checkpoint.
            compute: Computes the result from the agent, as values that JSON can hold.
            **settings: The settings that the result depends on.
        """
        key = {"analysis": analysis, "run": run.identity, "step": step, "settings": settings}
        key = json.loads(json.dumps(key))
        name = _hash(key)
        stored = run.kept_analyses.results.get(name)
        if stored is None:
            path = self.directory / f"{name}.json"
            stored = read_stored_result(path, key)
            if stored is None:
                result = json.loads(json.dumps(compute(run.agent(step))))
                stored = {"key": key, "result": result}
                write_json(path, stored)
        self.used.setdefault(run.identity, {})[name] = stored
        return stored["result"]


def read_stored_result(path: Path, key: PlainMapping) -> PlainDict | None:
    """Return a stored result with its key; None if it is not there, damaged or another one.

    Args:
        path: Its file.
        key: What was analysed.
    """
    try:
        stored = read_json(path, nan=True) if path.exists() else None
    except InputError:
        return None  # It is computed again and replaced.
    good = isinstance(stored, dict) and stored.get("key") == key and "result" in stored
    return stored if good else None


def _hash(key: PlainMapping) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
