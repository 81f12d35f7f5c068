"""What the benchmark and the dynamics of teams read; targets if these modules are there."""

import importlib
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fuzz_mutators import Mutate, mutate_json, mutate_toml

ROOT = Path(__file__).resolve().parents[2] / "src" / "dropin"
TASKS = "dropin.experiments.benchmark.tasks"
RESULTS = "dropin.experiments.benchmark.results"
DYNAMICS = "dropin.teams.dynamics"
Seeds = Callable[[], list[bytes]]


def _call(module: str, function: str, *arguments: object) -> Any:
    return getattr(importlib.import_module(module), function)(*arguments)


def _tasks() -> list[bytes]:
    found = sorted((ROOT / "experiments" / "benchmark" / "task_files").glob("*.toml"))
    return [each.read_bytes() for each in found]


def tasks(data: bytes, path: Path) -> None:
    """A file of tasks of the benchmark."""
    path = path.with_suffix(".toml")
    path.write_bytes(data)
    _call(TASKS, "read_tasks", path)


def _dynamics() -> list[bytes]:
    return [
        b'openness = {kind = "closed"}\n',
        b'type_changes = {kind = "turncoat"}\n', b'[openness]\nkind = "schedule"\n',
    ]  # fmt: skip


def dynamics(data: bytes, path: Path) -> None:
    """A file of how a team changes: openness and type changes with their parameters."""
    path.write_bytes(data)
    _call(DYNAMICS, "load_dynamics", path)


def results(data: bytes, path: Path) -> None:
    """The results of a learner in the benchmark, as somebody submits them."""
    path.mkdir(exist_ok=True)
    (path / "results.json").write_bytes(data)
    _call(RESULTS, "read_results", path)


def _results() -> list[bytes]:
    return [b'{"format": 1, "about": {"learner": "x"}, "records": [], "summaries": []}']


_ALL: Mapping[str, tuple[Callable[[bytes, Path], None], Mutate, Seeds]] = {
    TASKS: (tasks, mutate_toml, _tasks),
    DYNAMICS: (dynamics, mutate_toml, _dynamics),
    RESULTS: (results, mutate_json, _results),
}


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def existing() -> list[tuple[Callable[[bytes, Path], None], Mutate, Seeds]]:
    """Return the targets whose modules are there: what reads, what changes, the first inputs."""
    return [each for module, each in _ALL.items() if _exists(module)]
