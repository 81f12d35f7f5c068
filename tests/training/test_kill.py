"""A training process is killed at a random moment and the run resumed, in processes of its own."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import tiny

from dropin.training.loop import train_together

STEPS = 2000
ARGUMENTS = [*tiny.ARGUMENTS, f"steps={STEPS}", "checkpoint_every=200"]


def dropin(errors: Path, *arguments):
    """Start a command; nobody reads while it runs, so a pipe could fill up and block it."""
    command = [sys.executable, "-m", "dropin.cli", "train", *arguments, "--report", "none"]
    with errors.open("w") as file:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def kill_once(process, table, rng):
    """Kill when the metrics have grown to a random length; whether it was still running."""
    enough = rng.uniform(0, 1.0) * 12_000
    while process.poll() is None and size_of(table) < enough:
        time.sleep(0.001)
    time.sleep(rng.uniform(0, 0.01))
    alive = process.poll() is None
    if alive:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return alive


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    directory = tmp_path_factory.mktemp("kill") / "whole"
    tiny.run(directory, steps=STEPS, checkpoint_every=200)
    return directory


def check_killed(uninterrupted, directory, kills, seed, seeds=()):
    """Kill a run, or the runs of several seeds that train together, again and again."""
    rng = random.Random(seed)
    killed, errors = 0, directory.with_suffix(".errors")
    runs = [f"seed-{each}" for each in seeds] or ["."]
    together = ["--together"] if seeds else []
    start = ["lbf", "gpl-q", *ARGUMENTS, "--directory", str(directory), *together]
    if seeds:
        start += ["--seeds", ",".join(map(str, seeds))]
    process = dropin(errors, *start)
    while killed < kills:
        if kill_once(process, directory / runs[-1] / "metrics.csv", rng):
            killed += 1
        else:  # It came to its end: there is nothing left to kill, so start over.
            shutil.rmtree(directory)
        if all((directory / run / "run.json").exists() for run in runs):
            process = dropin(errors, "--resume", str(directory), *together)
        else:
            shutil.rmtree(directory, ignore_errors=True)
            process = dropin(errors, *start)
    process.wait(timeout=300)
    assert process.returncode == 0, errors.read_text()
    for run in runs:
        for name in ("metrics.csv", "evaluation.csv", "agent.safetensors"):
            ended, whole = directory / run / name, uninterrupted / run / name
            assert ended.read_bytes() == whole.read_bytes(), (run, name)


def test_a_run_that_was_killed_ends_with_the_same_bits(uninterrupted, tmp_path):
    check_killed(uninterrupted, tmp_path / "run", kills=1, seed=1)


@pytest.mark.slow
def test_a_run_that_was_killed_twenty_times_ends_with_the_same_bits(uninterrupted, tmp_path):
    check_killed(uninterrupted, tmp_path / "run", kills=20, seed=2)


@pytest.mark.slow
def test_runs_that_train_together_and_were_killed_end_with_the_same_bits(tmp_path):
    seeds = (0, 1)
    options: dict[str, Any] = {**tiny.RUN, "steps": STEPS, "checkpoint_every": 200}
    train_together("lbf", "gpl-q", seeds, directory=tmp_path / "whole", **options)
    check_killed(tmp_path / "whole", tmp_path / "runs", kills=3, seed=3, seeds=seeds)
