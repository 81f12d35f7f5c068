"""Commands that start processes of their own are killed; what they started ends or goes on safely.

The learner that learns nothing comes to these processes as a plug-in.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos import counter
from chaos.kills import Found
from chaos.moments import ANY_TIME
from chaos.workloads import contents, differing, repeated_steps
from dropin.core import registry
from dropin.core.specs import ExperimentSpec
from dropin.experiments import CompletedRuns, ExperimentResult, Grid, Sheet
from dropin.experiments.results import format_interval
from dropin.training.evaluator import Evaluator

STEPS = 400
MOST_KILLS = 3
PATIENCE = 900.0
"""Seconds for a command to end, and for what it has started."""
TESTS = Path(__file__).parent.parent


def _grids(options: object) -> Mapping[str, Grid]:
    del options
    return {"": Grid(games=("lbf",), learners=(counter.NAME,), seeds=2, test_limits=(5,))}


def _result(runs: CompletedRuns) -> ExperimentResult:
    returns = [
        float(row["mean_return"])
        for group in runs.by_learner("lbf").values()
        for run in group
        for row in run.evaluations
    ]
    rows = [(counter.NAME, format_interval(returns))]
    return ExperimentResult(sheets=[Sheet("Counted", ("learner", "mean"), rows)])


def register() -> None:
    """Register the learner and an experiment with it; this is what the plug-in does."""
    registry.register_learner(counter.SPEC)
    spec = ExperimentSpec(name="counting", grids=_grids, result=_result, in_all=False)
    registry.register_experiment(spec)
    Evaluator.rows = counter.made_up_rows


def train_campaign(directory: str) -> None:
    """Run a campaign of the experiment; this is what one of the commands does."""
    from dropin.experiments.campaign import Campaign, Part

    part = Part(1, "counting", 2, ("lbf",), (counter.NAME,), rules="paper")
    home, results = Path(directory) / "home", Path(directory) / "results"
    Campaign(home, results, parts=[part], steps=STEPS).run("none")


@dataclass(frozen=True)
class Driver:
    """A command that trains several runs."""

    name: str
    command: Callable[[Path], Sequence[str]]
    """The arguments of Python for a directory, by which it is started and gone on with."""


_EVERY = ("log_every=20", "checkpoint_every=40", "training.num_envs=2", "training.rollout_length=2")


def _train(directory: Path) -> Sequence[str]:
    dropin = ["-m", "dropin.cli", "train"]
    if all((directory / f"seed-{seed}" / "run.json").exists() for seed in (0, 1)):
        return [*dropin, "--resume", str(directory), "--report", "none"]
    return [
        *dropin, "lbf", counter.NAME, "--seeds", "0,1", "--steps", str(STEPS), "--keep", "agents",
        "--directory", str(directory), "--report", "none", "--set", *_EVERY,
    ]  # fmt: skip


def _reproduce(directory: Path) -> Sequence[str]:
    return [
        "-m", "dropin.cli", "reproduce", "counting", "--steps", str(STEPS), "--report", "none",
        "--directory", str(directory), "--set", *_EVERY,
    ]  # fmt: skip


def _campaign(directory: Path) -> Sequence[str]:
    code = f"from chaos.drivers import train_campaign; train_campaign({str(directory)!r})"
    return ["-c", code]


_TASK = """
[[task]]
game = "lbf"
game_version = 0
name = "counting"
version = 1
kind = "own"
summary = "A test of two episodes."
rules = "reference"
steps = 640
seed = 7
train_types = ["H6"]
test_types = ["H6"]
test_limits = [3]
episodes = 2
"""


def _benchmark(directory: Path) -> Sequence[str]:
    tasks = directory.parent / "tasks.toml"
    tasks.write_text(_TASK)
    return [
        "-m", "dropin.cli", "benchmark", "run", counter.NAME, "--tasks", str(tasks),
        "--seeds", "2", "--directory", str(directory), "--report", "none",
    ]  # fmt: skip


DRIVERS = (
    Driver("dropin train --seeds", _train),
    Driver("dropin reproduce", _reproduce),
    Driver("dropin campaign", _campaign),
    Driver("dropin benchmark run", _benchmark),
)


def make_plugin(site: Path) -> dict[str, str]:
    """Write the plug-in, and return the environment of processes that find it.

    Args:
        site: A directory for it.
    """
    about = site / "chaos_counter-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: chaos-counter\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dropin.plugins]\ncounter = chaos.drivers:register\n")
    paths = [str(site), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _processes(directory: Path) -> list[int]:
    """Return the processes that have a directory in their command."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(directory) in entry.read_bytes().decode(errors="replace"):
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


class DriverVictim:
    """A command with what it leaves if it is not killed, and how long it takes.

    Args:
        driver: The command.
        scratch: A directory that does not exist.
        seed: Decides when it is killed.
    """

    def __init__(self, driver: Driver, scratch: Path, seed: int):
        self.driver, self.rng = driver, random.Random(seed)
        self.log, self.place = scratch / "log.txt", scratch / "runs"
        self.environment = make_plugin(scratch / "site")
        begin = time.monotonic()
        assert self._start().wait(PATIENCE) == 0, self.log.read_text()[-2000:]
        self.life, self.reference = time.monotonic() - begin, contents(self.place)

    def _start(self) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as errors:
            command = [sys.executable, *self.driver.command(self.place)]
            return subprocess.Popen(command, stdout=errors, stderr=errors, env=self.environment)

    def disturb(self, found: Found, until: float) -> None:
        """Kill it several times, start it again at once, and compare what it leaves.

        Args:
            found: Where to note what is found.
            until: When to stop killing.
        """
        name = self.driver.name
        shutil.rmtree(self.place)  # The same place for all: pages name it.
        for _ in range(MOST_KILLS):
            if time.monotonic() > until:
                break
            process = self._start()
            try:
                process.wait(self.rng.uniform(0.2, 0.9) * self.life)
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
            found.count_kill(name, ANY_TIME)
            if repeated_steps(self.place):
                found.break_promise(f"{name}: a step comes twice in the metrics")
        if self._start().wait(PATIENCE) != 0:
            found.break_promise(f"{name}: {self.log.read_text()[-500:]}")
        end = time.monotonic() + PATIENCE
        while (left := _processes(self.place)) and time.monotonic() < end:
            time.sleep(0.2)
        if left:
            found.break_promise(f"{name}: the processes {left} have not ended")
        if different := differing(self.reference, contents(self.place)):
            found.break_promise(f"{name}: {', '.join(different)} differ in {self.place}")
        found.count("runs compared")
        found.save()
