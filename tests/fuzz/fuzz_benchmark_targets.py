"""What the benchmark reads: tasks, records, and submissions with their episodes and receipts."""

import json
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_array_targets import Arrays, changed, described, parsed, stored_in
from fuzz_mutators import mutate_json, mutate_toml, toml
from fuzz_table import ROOT, folder, put, target


def task_files() -> list[bytes]:
    """Return files of two tasks each, taken from those of the package."""
    import tomllib

    found = []
    package = ROOT / "src" / "dropin" / "experiments" / "benchmark" / "task_files"
    for path in sorted(package.glob("*.toml")):
        values = tomllib.loads(path.read_text())
        for name, several in values.items():
            if isinstance(several, list):
                found += [
                    toml({**values, name: several[at : at + 2]}).encode()
                    for at in range(0, len(several), 2)
                ]
    return found


@target(mutate_toml, task_files)
def tasks(data: bytes, path: Path) -> None:
    """A file of tasks of the benchmark."""
    from dropin.experiments.benchmark.tasks import read_tasks

    path = path.with_suffix(".toml")
    put(path, data)
    read_tasks(path)


@cache
def _records() -> list[Any]:
    """Return the records of two seeds that nobody measured."""
    from dropin.experiments.benchmark.records import MAX_AGE, WINDOW, EpisodeTable, Record, Sums

    def sums(number: int, each: int) -> Any:
        return Sums(np.full(number, 0.5), np.full(number, each, np.int64))

    columns = [np.full(4, each, np.int32) for each in (5, 1, 1, 0)]
    return [
        Record(
            task="lbf/strangers", version=1, team_limit=3, seed=seed, checkpoint="last", step=1000,
            episodes=EpisodeTable(np.array([0, 1, 0.5, 1], np.float32), *columns),
            reward_by_team_size=sums(5, 4), reward_around_entry=sums(2 * WINDOW, 4),
            reward_around_exit=sums(2 * WINDOW, 4), reward_around_change=sums(2 * WINDOW, 0),
            correct_by_age=sums(MAX_AGE + 1, 3) if seed else None,
            returns_by_type={"H1": np.ones(2, np.float32)}, learner="gpl-q",
        )
        for seed in (0, 1)
    ]  # fmt: skip


@cache
def _submission() -> tuple[dict[str, Any], Arrays, dict[str, Any]]:
    """Return the content of results.json, and the arrays and the description of the episodes."""
    from dropin.core.files import read_arrays
    from dropin.experiments.benchmark.results import About, write_results

    with tempfile.TemporaryDirectory() as directory:
        about = About("gpl-q", kind="policy", who="a", versions={"jax": "1"}, hardware="x")
        path = write_results(Path(directory) / "results", _records(), about)
        arrays, described = read_arrays(path.parent / "episodes.safetensors")
        return json.loads(path.read_text()), arrays, described


def submissions() -> list[bytes]:
    results, _, about = _submission()
    one = {**results, "seeds": [0], "records": results["records"][:1]}
    return [
        json.dumps({"results": each, "about": about, "changes": {}}).encode()
        for each in (results, one)
    ]


@target(mutate_json, submissions)
def results(data: bytes, path: Path) -> None:
    """The results of a learner as somebody submits them, with their episodes, up to the scores."""
    from dropin.core.errors import InputError
    from dropin.experiments.benchmark import episode_file
    from dropin.experiments.benchmark.episode_file import episode_rows
    from dropin.experiments.benchmark.results import read_results
    from dropin.experiments.benchmark.standing import Standing
    from dropin.experiments.benchmark.submission import TaskRules, check_submission

    folder(path)
    _, arrays, _ = _submission()
    found = parsed(data, path)
    put(path / "results.json", json.dumps(found.get("results")).encode())
    put(path / "episodes.safetensors", b"x")
    arrays, about = changed(arrays, found), found.get("about")
    with stored_in(episode_file, arrays, about):
        tasks = [TaskRules("lbf/strangers", 1, (3,), 1000, 4)]
        for problem in check_submission(path, tasks, None).problems:
            problem.encode()
        read = read_results(path)
    standing = Standing.of([read])
    for look in (lambda: standing.situations, lambda: standing.scores, standing.missing):
        with suppress(InputError):
            look()
    if sum(len(each.episodes) for each in read.records) < 100:
        list(episode_rows("x", read.records))


def receipts() -> list[bytes]:
    from dropin.core.files import file_checksum

    with tempfile.NamedTemporaryFile() as file:
        file.write(b"{}")
        file.flush()
        of = file_checksum(Path(file.name))
    receipt = {"schema": 1, "results": of, "records": 2, "equal": 1, "close": 1, "quick": False,
               "versions": {"jax": "1"}, "machine": "x"}  # fmt: skip
    return [json.dumps(receipt).encode()]


@target(mutate_json, receipts)
def receipt(data: bytes, path: Path) -> None:
    """The receipt of a submission."""
    from dropin.experiments.benchmark.receipt import check_receipt
    from dropin.experiments.benchmark.results import About, Results

    folder(path)
    put(path / "results.json", b"{}")
    put(path / "checked.json", data)
    found = check_receipt(Results(path, About("x"), _records(), [], {"missing": ""}))
    f"{found['equal'] + found['close']:,} of {found['records']:,}"


@cache
def _record() -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the description of a stored record."""
    from dropin.core.files import read_arrays
    from dropin.experiments.benchmark.storage import Source, save_record

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "record"
        save_record(path, _records()[1], Source("a", "b", 4))
        return read_arrays(path)


def records() -> list[bytes]:
    _, about = _record()
    empty = {"episodes.returns": ["float32", [0], 0], "correct_by_age.total": None}
    return [described(about), described(about, **empty), described({**about, "types": []})]


@target(mutate_json, records)
def record(data: bytes, path: Path) -> None:
    """A record that the benchmark has stored, up to what pages are made of."""
    from dropin.core.errors import InputError
    from dropin.experiments.benchmark import storage
    from dropin.experiments.benchmark.records import mean_returns
    from dropin.experiments.benchmark.results import _summary
    from dropin.experiments.benchmark.scores import by_situation

    arrays, _ = _record()
    found = parsed(data, path)
    with stored_in(storage, changed(arrays, found), found.get("about")):
        read, source = storage.load_record(path)
    hash(source)
    mean_returns([read])
    with suppress(InputError):
        by_situation([read])
    json.dumps(_summary(read, None))
