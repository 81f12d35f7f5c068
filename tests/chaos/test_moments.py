"""Processes are killed at the moments that the campaign counts."""

import os
import random
import signal
import time
from types import SimpleNamespace

import pytest

from chaos.kills import Found, fork, table, wait_for
from chaos.moments import ANY_TIME, CHECKPOINT, CHUNK, RENAME, ROW, killed_at
from dropin.core import files
from dropin.training.tables import Table

pytestmark = pytest.mark.filterwarnings("ignore:os.fork")
"""The processes compute nothing with JAX."""
WHOLE = 1000


def work(directory):
    """Write four checkpoints and rows, each after a chunk."""
    for number in range(4):
        code.chunk()
        Table(directory / "metrics.csv").append({"step": number, "text": "x" * 50})
        files.write(directory / "checkpoints" / str(number), bytes(WHOLE))


code = SimpleNamespace(inside=False, seconds=0.01)


def chunk():
    code.inside = True
    time.sleep(code.seconds)
    code.inside = False


@pytest.fixture
def killed(tmp_path, monkeypatch):
    """Let a process be killed at a moment, and return the directory that it leaves."""
    code.chunk = chunk

    def call(kind, seed):
        # Much longer than the killer is told: it comes in time on a busy machine too.
        code.seconds = 0.6 if kind == CHUNK else 0.01
        directory = tmp_path / f"{kind}-{seed}"
        directory.mkdir()

        def do():
            if kind == CHUNK:
                monkeypatch.setattr("chaos.moments.kill_self", lambda: note(directory))
            with killed_at(
                kind, directory, {CHUNK: (code, "chunk")}, {CHUNK: 0.01}, random.Random(seed)
            ):
                work(directory)

        assert wait_for(fork(do, tmp_path / "log")) == -signal.SIGKILL
        return directory

    return call


def note(directory):
    # The killer may come between the call of the chunk and its first line.
    latest = time.monotonic() + 0.3
    while not code.inside and time.monotonic() < latest:
        time.sleep(0.001)
    (directory / "inside").write_text(str(code.inside))
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("seed", range(3))
def test_in_the_middle_of_a_chunk(killed, seed):
    assert (killed(CHUNK, seed) / "inside").read_text() == "True"


@pytest.mark.parametrize("seed", range(3))
def test_in_the_middle_of_the_write_of_a_checkpoint(killed, seed):
    (unfinished,) = (killed(CHECKPOINT, seed) / "checkpoints").glob(".*.tmp")
    assert unfinished.stat().st_size < WHOLE


@pytest.mark.parametrize("seed", range(3))
def test_in_the_middle_of_the_write_of_a_row(killed, seed):
    text = (killed(ROW, seed) / "metrics.csv").read_text()
    assert not text.endswith("\n")


def test_before_and_after_a_rename(killed):
    left = {len(list((killed(RENAME, seed) / "checkpoints").glob(".*.tmp"))) for seed in range(6)}
    assert left == {0, 1}


def test_kills_add_up_over_campaigns(tmp_path):
    tally = tmp_path / "tally.json"
    Found(tally).count_kill("dgn, lbf", CHUNK)
    again = Found(tally)
    again.count_kill("dgn, lbf", ROW)
    again.count_kill("dgn, lbf", ROW)
    assert again.kills_of("dgn, lbf") == 3
    assert again.least("dgn, lbf", (ROW, CHUNK, ANY_TIME)) == [ANY_TIME, CHUNK, ROW]
    assert table(again.kills).splitlines()[1].split() == [
        "dgn,", "lbf", "-", "1", "-", "-", "-", "2", "3",
    ]  # fmt: skip
