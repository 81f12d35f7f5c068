"""Faults of a cluster in the middle of training: every run ends with the bytes of a local one."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tiny

from dropin.core.errors import InputError, StorageError
from dropin.core.locks import LOCK_FILE
from dropin.experiments import cluster as cluster_module
from dropin.experiments.cluster import _Monitor, train_in
from dropin.training import loop
from dropin.training.config import run_config
from dropin.training.reporters import Board
from dropin.training.run_directory import RunDirectory
from dropin.training.runs import Runs

STEPS = 6000
OPTIONS = {**tiny.RUN, "steps": STEPS, "log_every": 200, "checkpoint_every": 600, "keep": "agents"}
SEEDS = (0, 1)
ABSENCE = 30.0
"""Seconds for which the shared directory is gone."""
DRIVER = """
import sys
from pathlib import Path
from dropin.experiments.cluster import run_on_ray

address, *paths = sys.argv[1:]
run_on_ray({Path(each).name: Path(each) for each in paths}, address, "none")
"""
FILLER = """
import sys, time
import numpy, ray

ray.init(address=sys.argv[1], log_to_driver=False)
held = []
try:
    while True:
        held.append(ray.put(numpy.zeros(2**23, numpy.uint8)))
except ray.exceptions.ObjectStoreFullError:
    print("full", flush=True)
time.sleep(600)
"""


def make_runs(directory: Path) -> list[Path]:
    """The directories of runs that have not begun."""
    paths = [directory / f"seed-{seed}" for seed in SEEDS]
    for seed, path in zip(SEEDS, paths, strict=True):
        options = {name: each for name, each in OPTIONS.items() if name not in ("report", "keep")}
        RunDirectory(path).create(run_config("lbf", "gpl-q", seed=seed, **options), "agents")
    return paths


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> list[Path]:
    paths = make_runs(tmp_path_factory.mktemp("local"))
    for path in paths:
        loop.resume_run(path, report="none")
    return paths


def files_of(run: Path) -> dict[str, bytes]:
    names = ["metrics.csv", "evaluation.csv", "agent.safetensors"]
    names += [str(each.relative_to(run)) for each in run.glob("*/step-*")]
    return {name: (run / name).read_bytes() for name in names}


def holders(run: Path) -> set[int]:
    """The processes that have the lock of a run open, and so train or are about to."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            for handle in (process / "fd").iterdir():
                if handle.readlink() == run / LOCK_FILE:
                    found.add(int(process.name))
        except OSError:
            continue
    return found


class Trial:
    """Two runs on a cluster, and who trained them."""

    def __init__(self, directory: Path, address: str):
        self.shared, self.address = directory / "shared", address
        self.runs = make_runs(self.shared)
        self.trained: set[int] = set()
        self.driver = self.start(DRIVER, *map(str, self.runs))

    def start(self, program: str, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", program, self.address, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def wait(self, done: Callable[[], bool], seconds: float = 900) -> None:
        until = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < until
            for run in self.runs:
                self.trained |= holders(run)
            time.sleep(0.1)

    def wait_for_checkpoint(self) -> None:
        """Wait until both runs have a checkpoint to continue from, and time left."""

        def reached() -> bool:
            assert self.driver.poll() is None
            return all(RunDirectory(run).steps()[-1:] > [0] for run in self.runs)

        self.wait(reached)
        assert all(RunDirectory(run).steps()[-1] < STEPS for run in self.runs)

    def finish(self, local: list[Path]) -> None:
        self.wait(lambda: self.driver.poll() is not None)
        assert self.driver.returncode == 0
        for ended, whole in zip(self.runs, local, strict=True):
            assert files_of(ended) == files_of(whole)


@pytest.fixture
def cluster(request) -> Iterator:
    """Two nodes on the loopback; a parameter holds further options of each."""
    pytest.importorskip("ray")
    import ray
    from ray.cluster_utils import Cluster

    more = getattr(request, "param", {})
    system = {"_system_config": {"automatic_object_spilling_enabled": False}} if more else {}
    own = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **more, **system})
    try:
        own.add_node(num_cpus=1, **more)
        own.wait_for_nodes()
        yield own
    finally:
        ray.shutdown()
        own.shutdown()


SMALL_STORE = {"object_store_memory": 80 * 2**20}
forking = pytest.mark.filterwarnings("ignore:os.fork")  # Ray's processes use no JAX.


@forking
@pytest.mark.slow
def test_a_killed_worker_a_killed_node_and_the_driver_killed_and_started_again(
    cluster, local, tmp_path
):
    trial = Trial(tmp_path, cluster.address)
    trial.wait_for_checkpoint()
    for process in holders(trial.runs[0]):
        os.kill(process, signal.SIGKILL)
    before = set(trial.trained)
    trial.wait(lambda: bool(trial.trained - before))
    trial.driver.kill()
    trial.driver.wait()
    trial.driver = trial.start(DRIVER, *map(str, trial.runs))
    before = set(trial.trained)
    trial.wait(lambda: len(trial.trained - before) >= 2)
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    trial.finish(local)


@forking
@pytest.mark.slow
@pytest.mark.parametrize("cluster", [SMALL_STORE], indirect=True)
def test_a_full_object_store(cluster, local, tmp_path):
    trial = Trial(tmp_path, cluster.address)
    filler = trial.start(FILLER)
    try:
        assert filler.stdout is not None
        assert filler.stdout.readline() == "full\n"
        trial.finish(local)
    finally:
        filler.kill()
        filler.wait()


@forking
@pytest.mark.slow
def test_a_shared_directory_that_is_gone_for_half_a_minute(cluster, local, tmp_path):
    trial = Trial(tmp_path, cluster.address)
    trial.wait_for_checkpoint()
    away = trial.shared.with_name("away")
    trial.shared.rename(away)
    time.sleep(ABSENCE)
    assert not trial.shared.exists(), "somebody made it anew"
    away.rename(trial.shared)
    trial.finish(local)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("trained") / "run"
    tiny.run(path, steps=80)
    return path


@pytest.fixture
def begun(trained, tmp_path) -> Path:
    path = tmp_path / "shared" / "run"
    shutil.copytree(trained, path)
    return path


class Absent:
    """Moves the parent of a run away for the first few looks at the clock."""

    def __init__(self, run: Path, looks: int):
        self.run, self.left, self.now = run, looks, 0.0

    @property
    def away(self) -> Path:
        return self.run.parent.with_name("away")

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.left -= 1
        if self.left == 0 and self.away.exists():
            self.away.rename(self.run.parent)

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def absent(begun, monkeypatch) -> Absent:
    clock = Absent(begun, looks=20)
    monkeypatch.setattr(cluster_module, "time", clock)
    return clock


def test_a_task_waits_for_its_directory_and_continues(begun, absent, monkeypatch):
    whole = files_of(begun)
    RunDirectory(begun).checkpoint(80).unlink()
    append = Runs._log

    def lose(self, metrics):
        if absent.left == 20 and not absent.away.exists():
            begun.parent.rename(absent.away)
        append(self, metrics)

    monkeypatch.setattr(Runs, "_log", lose)
    train_in(str(begun))
    assert absent.left < 0 < absent.now
    assert files_of(begun) == whole


def test_a_task_does_not_wait_for_ever(begun, absent):
    shutil.rmtree(begun)
    with pytest.raises(InputError, match=r"has no run\.json"):
        train_in(str(begun))
    assert 600 <= absent.now < 700
    assert not begun.exists()


def test_an_error_that_comes_twice_is_believed(begun, absent, monkeypatch):
    tries = []

    def fail(path, **_):
        tries.append(path)
        raise InputError("The run needs a plug-in.")

    monkeypatch.setattr(loop, "resume_run", fail)
    with pytest.raises(InputError, match="plug-in"):
        train_in(str(begun))
    assert len(tries) == 2


def test_a_disk_that_stays_full_ends_a_task(begun, absent, monkeypatch):
    def fail(path, **_):
        raise StorageError("No space left on device")

    monkeypatch.setattr(loop, "resume_run", fail)
    with pytest.raises(StorageError):
        train_in(str(begun))
    assert 600 <= absent.now < 700


def test_the_driver_shows_the_last_it_knew_while_the_directory_is_gone(begun, absent):
    board = Board()
    monitor = _Monitor("run", begun)
    monitor.step = 20.0
    begun.parent.rename(absent.away)
    monitor.show(board)
    assert monitor.step == 20
    absent.away.rename(begun.parent)
    monitor.show(board)
    assert monitor.step == 80
