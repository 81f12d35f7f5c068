"""A share of `make chaos`: the disk fails or loses its power during short runs, which go on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos import counter, faults
from chaos.disk import Journal, watched
from chaos.faults import fail, jobs, lose_power
from chaos.kills import Found
from dropin.core import files

FOREVER = float("inf")
JOBS = range(5)


@pytest.fixture
def disturb(tmp_path):
    """Disturb one of the jobs, and return what was found."""

    def call(how, number, most, seed=0):
        found = Found()
        (tmp_path / "half").mkdir()
        with counter.counting():
            job = jobs(tmp_path / "half")[number]
            assert how(job, tmp_path / "job", found, FOREVER, seed, most)
        return found

    return call


@pytest.mark.parametrize("how", [lose_power, fail])
def test_a_run_goes_on_after(disturb, how):
    found = disturb(how, 0, 8)
    assert found.broken == []
    assert sum(found.tries.values()) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("number", JOBS)
@pytest.mark.parametrize("how", [lose_power, fail])
def test_everything_goes_on_after(disturb, how, number):
    assert disturb(how, number, 60, seed=1).broken == []


def test_a_write_without_a_sync_is_found(disturb, monkeypatch):
    """The harness notices if a promise is broken."""
    monkeypatch.setattr(faults, "CHANGES", [each for each in faults.CHANGES if each != "sync"])
    assert disturb(lose_power, 0, 8).broken


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes():
    command = [sys.executable, "-m", "chaos", "--minutes", "0.5", "--parts", "kills"]
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "promises broken: 0" in done.stdout


def test_every_operation_below_a_directory_is_seen(tmp_path):
    root, journal = tmp_path / "root", Journal()
    root.mkdir()
    with watched(root, journal):
        files.write(root / "a" / "file", b"123")
        (tmp_path / "outside").write_bytes(b"")
        with (root / "text").open("a") as text:
            text.write("x")
        files.names_in(root)
        (root / "text").unlink()
        (root / "text").unlink(missing_ok=True)
    seen = [
        (each.kind, Path(each.path).relative_to(root).parts[:1], each.data)
        for each in journal.operations
    ]
    assert seen == [
        ("mkdir", ("a",), b""),
        ("sync", (), b""),
        ("create", ("a",), b""),
        ("write", ("a",), b"123"),
        ("sync", ("a",), b""),
        ("rename", ("a",), b""),
        ("open", ("a",), b""),
        ("sync", ("a",), b""),
        ("create", ("text",), b""),
        ("write", ("text",), b"x"),
        ("unlink", ("text",), b""),
    ]
