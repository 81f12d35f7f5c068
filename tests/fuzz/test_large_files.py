"""Files with a size or promises out of bounds end in a sentence, soon and in little memory.

A sparse file has its size but takes no room on the disk. Nothing that is read is compressed.
"""

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from fuzz_guard import Guard
from fuzz_mutators import join_safetensors

from dropin.agents import load_agent
from dropin.arena.recording import read_recording
from dropin.arena.study import load_study
from dropin.core import reading
from dropin.core.errors import InputError
from dropin.core.files import read_arrays, read_json, write_arrays
from dropin.core.reading import MAX_ARRAYS_BYTES, MAX_JSON_BYTES, MAX_TEXT_BYTES, parse_json
from dropin.experiments.benchmark.results import read_results
from dropin.experiments.benchmark.tasks import read_tasks
from dropin.teams.dynamics import load_dynamics
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import read_table
from dropin.zoo.cards import read_card_file


@pytest.fixture(scope="module")
def guard():
    with tempfile.TemporaryDirectory() as directory:
        yield Guard(Path(directory))


def refused(guard, read, says) -> None:
    """Check that reading ends in this sentence, within the bounds of every input."""
    found = []

    def run() -> None:
        with pytest.raises(InputError, match=says) as caught:
            read()
        found.append(caught.value)

    assert guard.check(run) is None
    assert found


def sparse(path: Path, size: int, start: bytes = b"") -> Path:
    path.write_bytes(start)
    os.truncate(path, size)
    return path


def header(shape, end) -> bytes:
    """Return the header of a file with one array of single bytes."""
    about = {"dropin": "x {}"}
    array = {"dtype": "U8", "shape": shape, "data_offsets": [0, end]}
    return join_safetensors(json.dumps({"__metadata__": about, "a": array}).encode(), b"")


@pytest.mark.parametrize("promised", [10**12, 2**62, 2**64])
def test_a_header_that_promises_more_than_there_is(promised, guard, tmp_path):
    path = tmp_path / "agent.safetensors"
    path.write_bytes(header([promised], promised) + b"1234")
    refused(guard, lambda: load_agent(path), "damaged or not a file of Dropin")


@pytest.mark.parametrize("length", [10**12, 2**63, 2**64 - 1])
def test_a_header_that_is_longer_than_the_file(length, guard, tmp_path):
    path = tmp_path / "agent.safetensors"
    path.write_bytes(length.to_bytes(8, "little") + b"{}")
    refused(guard, lambda: load_agent(path), "damaged or not a file of Dropin")
    sparse(path, 2**32, length.to_bytes(8, "little"))
    refused(guard, lambda: load_agent(path), "damaged or not a file of Dropin")


@pytest.mark.parametrize(
    "start",
    [b"", header([10], 10), header([2**33], 2**33), b"\x02" + bytes(7) + b"[]", header([], "x")],
    ids=["zeros", "too small", "too large", "a list", "a text"],
)
def test_a_sparse_file_of_another_size_than_its_header_says_is_not_read(start, guard, tmp_path):
    path = sparse(tmp_path / "agent.safetensors", 2**32, start)
    refused(guard, lambda: load_agent(path), "damaged or not a file of Dropin")


def test_a_file_that_needs_more_memory_than_there_is(guard, tmp_path, monkeypatch):
    """Its header tells the truth; a machine with little memory does not try."""
    start = header([2**32], 2**32)
    path = sparse(tmp_path / "agent.safetensors", len(start) + 2**32, start)
    monkeypatch.setattr(reading, "_memory", lambda: 2**33)
    refused(guard, lambda: load_agent(path), "more memory than this machine has")


def test_large_arrays_that_are_right_are_read(tmp_path):
    path = tmp_path / "large.safetensors"
    write_arrays(
        path, {"a": np.ones(2**24 + 1, np.float32), "b": np.ones(3, np.int32)}, {"kind": "test"}
    )
    arrays, about = read_arrays(path)
    assert arrays["a"].shape == (2**24 + 1,)
    assert about == {"kind": "test"}


@pytest.mark.parametrize(
    ("name", "read", "size"),
    [
        ("a.safetensors", load_agent, MAX_ARRAYS_BYTES + 1),
        ("run.json", lambda path: RunDirectory(path.parent).config(), MAX_JSON_BYTES + 1),
        ("card.json", read_card_file, MAX_JSON_BYTES + 1),
        ("results.json", lambda path: read_results(path.parent), 2**40),
        ("evaluation.csv", read_table, MAX_TEXT_BYTES + 1),
        ("episode.jsonl", read_recording, MAX_TEXT_BYTES + 1),
        ("study.toml", load_study, 2**40),
        ("tasks.toml", read_tasks, 2**40),
        ("dynamics.toml", load_dynamics, 2**40),
    ],
)
def test_a_file_above_its_bound_is_not_read(name, read, size, guard, tmp_path):
    path = sparse(tmp_path / name, size)
    refused(guard, lambda: read(path), "bytes")


@pytest.mark.parametrize(
    "text",
    [b"[" * MAX_JSON_BYTES, b'{"a":' * (MAX_JSON_BYTES // 5), b"[" + b"{}," * 2_000_000 + b"1"],
    ids=["lists", "objects", "groups"],
)
def test_json_as_large_as_allowed_that_is_wrong(text, guard, tmp_path):
    path = tmp_path / "card.json"
    path.write_bytes(text[:MAX_JSON_BYTES])
    refused(guard, lambda: read_json(path), "cannot be read as JSON")


def test_a_name_that_stands_twice_among_a_hundred_thousand_is_found_soon(guard):
    names = ",".join(f'"{number}":1' for number in range(100_000))
    refused(guard, lambda: parse_json(f'{{{names},"99999":2}}', "It"), "'99999' stands twice")


def test_twenty_thousand_conditions_of_a_study(guard, tmp_path):
    """Each order of conditions has all of them."""
    conditions = ",".join(f'{{name="{number}",agent="random"}}' for number in range(20_000))
    path = tmp_path / "study.toml"
    path.write_text(
        'consent="c"\ndebriefing="d"\ncompletion_code="x"\ndesign="within"\n'
        f"conditions=[{conditions}]\n"
    )
    refused(guard, lambda: load_study(path).orders, "at most 100")


def test_fifty_thousand_team_limits_of_a_task(guard, tmp_path):
    limits = ",".join(map(str, range(2, 50_000)))
    path = tmp_path / "tasks.toml"
    path.write_text(
        'game="lbf"\nrules="reference"\nsteps=10\n[[task]]\nname="a"\nversion=1\nkind="own"\n'
        f'summary="A."\nseed=3\ntest_limits=[{limits},2]\n'
    )
    refused(guard, lambda: read_tasks(path), "Team limit 2 is given twice")
