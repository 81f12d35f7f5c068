"""What a run's directory survives: what others do to it, and what is left of what was cut off."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from chaos import counter
from chaos.workloads import contents

from dropin.agents import load_agent
from dropin.core.errors import InputError, StoppedError
from dropin.training.loop import resume_run
from dropin.training.run_directory import RunDirectory
from dropin.training.sets_of_runs import create_runs


@pytest.fixture(autouse=True)
def _counting():
    with counter.counting():
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "whole"
    with counter.counting():
        counter.start(directory)
    return directory


@pytest.fixture
def half(finished, tmp_path):
    """A run that was killed after step 40."""
    copy = shutil.copytree(finished, tmp_path / "run")
    for step in (80, 120):
        RunDirectory(copy).checkpoint(step).unlink()
    return copy


def go_on(directory):
    return resume_run(directory, report="none")


def test_what_a_killed_process_was_writing_is_removed(finished, half):
    left = [half / "checkpoints" / ".step-000000000080.safetensors.7.tmp", half / ".run.json.9.tmp"]
    own = [half / "notes.tmp", half / ".notes.tmp"]
    for each in (*left, *own):
        each.write_bytes(b"half")
    go_on(half)
    assert not any(each.exists() for each in left)
    for each in own:
        each.unlink()
    assert contents(half) == contents(finished)


def test_checkpoints_that_cannot_be_listed_are_not_taken_for_none(half, monkeypatch):
    before, listdir = contents(half), os.listdir

    def refuse(path="."):
        if Path(path).name == "checkpoints":
            raise PermissionError(13, "Permission denied", str(path))
        return listdir(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "listdir", refuse)
        with pytest.raises(
            StoppedError, match=r"checkpoints cannot be read or written: Perm.*Cont"
        ):
            go_on(half)
    assert contents(half) == before


def test_old_checkpoints_go_although_the_process_was_killed_before(finished, tmp_path):
    copy = shutil.copytree(finished, tmp_path / "run")
    files = RunDirectory(copy)
    shutil.copy(files.checkpoint(40), files.checkpoint(20))
    go_on(copy)
    assert files.steps() == [40, 80, 120]


def test_damaged_checkpoints_do_not_push_out_good_ones(finished, tmp_path):
    copy = shutil.copytree(finished, tmp_path / "run")
    files = RunDirectory(copy)
    for step in (80, 120):
        files.checkpoint(step).write_bytes(b"damaged")
    files.prune(1, step=40)
    assert files.steps() == [40, 80, 120]
    with pytest.warns(UserWarning, match="damaged"):
        go_on(copy)
    assert contents(copy) == contents(finished)


def test_a_directory_that_was_moved_away_is_not_made_anew(half, tmp_path, monkeypatch):
    moved = tmp_path / "moved"
    prune = RunDirectory.prune

    def move(self, keep, step):
        prune(self, keep, step)
        if half.exists() and step == 80:
            half.rename(moved)

    monkeypatch.setattr(RunDirectory, "prune", move)
    with pytest.raises(StoppedError, match=r"run/.*cannot be read or written: No such file"):
        go_on(half)
    assert not half.exists()


@pytest.mark.parametrize("name", ["with spaces", "größe-日本", "x" * 200])
def test_a_run_goes_on_under_any_name_and_elsewhere(finished, half, tmp_path, name, capsys):
    place = tmp_path / name
    half.rename(place)
    full = OSError(28, "No space left on device")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dropin.core.files.os.fsync", lambda _: (_ for _ in ()).throw(full))
        with pytest.raises(StoppedError) as error:
            go_on(place)
    command = str(error.value).partition("Continue with: ")[2]
    words = subprocess.run(
        ["sh", "-c", f'for each in "$@"; do echo "$each"; done; set -- {command}; echo "$4"'],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert words.stdout.strip() == str(place)
    go_on(place)
    assert contents(place) == contents(finished)


def test_the_clock_does_not_matter(finished, half, monkeypatch):
    times = iter([2e9, 1.0, 3e9, 0.0] * 1000)
    monkeypatch.setattr(time, "time", lambda: next(times))
    for path in half.rglob("*"):
        os.utime(path, (4e9, 4e9))
    go_on(half)
    assert contents(half) == contents(finished)


def test_links_are_not_written_through(finished, half, tmp_path):
    other = tmp_path / "other.json"
    shutil.move(half / "run.json", other)
    (half / "run.json").symlink_to(other)
    before = other.read_bytes()
    resume_run(half, keep="all", report="none")
    assert other.read_bytes() == before
    assert json.loads((half / "run.json").read_text())["keep"] == "all"
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="exists already"):
        RunDirectory(tmp_path / "dangling").check_free()


FILES = ("metrics.csv", "evaluation.csv", "agent.safetensors", "run.json")
CHECKPOINT = "checkpoints/step-000000000040.safetensors"


@pytest.mark.parametrize("name", [*FILES, CHECKPOINT])
def test_what_a_link_leads_to_is_not_harmed(finished, half, tmp_path, name):
    other = tmp_path / "other"
    shutil.move(half / name, other)
    (half / name).symlink_to(other)
    before = other.read_bytes()
    go_on(half)
    assert other.read_bytes() == before
    assert contents(half) == contents(finished)


@contextmanager
def unprivileged():
    """Give up the rights of an administrator, whom no permission holds back."""
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.seteuid(65534)
        yield
    finally:
        if is_root:
            os.seteuid(0)


def allow(directory, *, write):
    for path in (directory, *directory.rglob("*")):
        path.chmod((0o777 if write else 0o555) if path.is_dir() else 0o666 if write else 0o444)


def test_a_directory_that_may_only_be_read_is_left_as_it_is(finished, half):
    with tempfile.TemporaryDirectory() as shared:
        Path(shared).chmod(0o755)
        place = shutil.copytree(half, Path(shared) / "run")
        before = contents(place)
        allow(place, write=False)
        with unprivileged():
            load_agent(place)
            with pytest.raises(InputError, match=r"/run cannot be written: .* Make it writable"):
                go_on(place)
            with pytest.raises(PermissionError, match=f"{shared}/new"):
                counter.start(Path(shared) / "new")
        allow(place, write=True)
        assert contents(place) == before
        go_on(place)
        assert contents(place) == contents(finished)


def test_the_same_command_goes_on_where_the_creation_of_runs_was_cut_off(tmp_path):
    paths, configs = [tmp_path / "0", tmp_path / "1"], [counter.config(0), counter.config(1)]
    create_runs(paths[:1], configs[:1])
    before = (paths[0] / "run.json").stat().st_mtime_ns
    create_runs(paths, configs)
    assert (paths[0] / "run.json").stat().st_mtime_ns == before
    assert RunDirectory(paths[1]).config() == configs[1]
    for others in ([configs[1], configs[0]], configs[:1] * 2):
        with pytest.raises(InputError, match="exists already"):
            create_runs(paths, others)
    (paths[0] / "metrics.csv").write_text("step\n")
    with pytest.raises(InputError, match="0 exists already"):
        create_runs(paths, configs)


def test_another_process_waits_or_is_refused(half):
    code = (
        "import sys, time; from dropin.training.run_directory import RunDirectory\n"
        f"with RunDirectory({str(half)!r}).locked():\n"
        "    print('locked', flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(InputError, match="Another process is training in"):
            go_on(half)
        other.kill()  # Its lock ends with it.
        with RunDirectory(half).locked(wait=10):
            pass
