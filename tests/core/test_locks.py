import errno
import fcntl
import json
import os
import socket
import subprocess
import sys

import pytest
import tiny

from dropin.core.errors import InputError, StorageError
from dropin.core.locks import LOCK_FILE, hold
from dropin.training.loop import resume_run
from dropin.training.reporters import Reporter
from dropin.training.run_directory import RunDirectory


def lock_of(path):
    return hold(path / LOCK_FILE, f"Another process is training in {path}")


def test_the_second_is_told_who_was_first(tmp_path):
    with lock_of(tmp_path), pytest.raises(InputError) as found, lock_of(tmp_path):
        pass
    who = f"process {os.getpid()} on {socket.gethostname()}"
    assert str(found.value) == f"Another process is training in {tmp_path}: {who}."
    with lock_of(tmp_path) as lock:
        lock.check()


HOLD = """
import sys, time
from pathlib import Path
from dropin.core.locks import LOCK_FILE, hold

with hold(Path(sys.argv[1]) / LOCK_FILE, ""):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_process_that_died_is_free(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match=f"process {process.pid} on"), lock_of(tmp_path):
            pass
        process.kill()
    with lock_of(tmp_path) as lock:
        lock.check()
    assert json.loads((tmp_path / LOCK_FILE).read_bytes())["pid"] == os.getpid()


def test_a_lock_is_not_written_through_a_link(tmp_path):
    other = tmp_path / "other"
    other.write_text("precious")
    (tmp_path / LOCK_FILE).symlink_to(other)
    with pytest.raises(InputError, match=r"\.lock is a symbolic link"), lock_of(tmp_path):
        pass
    assert other.read_text() == "precious"


def test_a_lock_file_of_an_older_version_says_nothing(tmp_path):
    (tmp_path / LOCK_FILE).touch()
    handle = os.open(tmp_path / LOCK_FILE, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(InputError) as found, lock_of(tmp_path):
        pass
    assert str(found.value) == f"Another process is training in {tmp_path}."
    os.close(handle)


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def no_locks(handle, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    sentence = r"No locks available\. Training needs a file system that has locks"
    with pytest.raises(InputError, match=sentence), lock_of(tmp_path):
        pass


def test_a_directory_that_has_gone_is_not_made_anew(tmp_path):
    with (
        pytest.raises(InputError, match="cannot be locked: No such file"),
        lock_of(tmp_path / "run"),
    ):
        pass
    assert not (tmp_path / "run").exists()


def take_over(path):
    """Write what a process writes on a node whose file system locks for each node alone."""
    (path / LOCK_FILE).write_text('{"host": "other", "pid": 7, "token": "1"}')


def move_away(path):
    path.rename(path.with_name("away"))


def move_and_make_anew(path):
    move_away(path)
    path.mkdir()
    (path / LOCK_FILE).write_bytes((path.with_name("away") / LOCK_FILE).read_bytes())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (take_over, "another process trains there: process 7 on other"),
        (move_away, "No such file or directory"),
        (move_and_make_anew, "another process trains there"),
    ],
)
def test_a_run_that_lost_its_directory_writes_nothing_any_more(tmp_path, change, message):
    path = tmp_path / "run"
    tiny.run(path)
    files = RunDirectory(path)
    left, *removed = files.steps()
    for step in removed:
        files.checkpoint(step).unlink()
    rows = len(files.metrics.path.read_text().splitlines())

    class Changer(Reporter):
        def metrics(self, row):
            if row["step"] == 60:
                change(path)

    with pytest.raises(StorageError, match=message):
        resume_run(path, report=Changer())
    moved = RunDirectory(path if change is take_over else tmp_path / "away")
    assert moved.steps() == [left]
    assert len(moved.metrics.path.read_text().splitlines()) < rows
    if change is move_away:
        assert not path.exists()
