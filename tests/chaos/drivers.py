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

STEPS = 2000
MOST_KILLS = 4
PATIENCE = 300.0
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


DRIVERS = (
    Driver("dropin train --seeds", _train),
    Driver("dropin reproduce", _reproduce),
    Driver("dropin campaign", _campaign),
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


def kill_driver(driver: Driver, scratch: Path, found: Found, until: float, seed: int) -> None:
    """Kill a command several times, start it again at once, and compare what it leaves.

    Args:
        driver: The command.
        scratch: A directory that does not exist.
        found: Where to note what is found.
        until: When to stop killing.
        seed: Decides when it is killed.
    """
    rng, log = random.Random(seed), scratch / "log.txt"
    environment = make_plugin(scratch / "site")
    place = scratch / "runs"  # The same for all: pages name it.

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as errors:
            command = [sys.executable, *driver.command(place)]
            return subprocess.Popen(command, stdout=errors, stderr=errors, env=environment)

    begin = time.monotonic()
    if start().wait(PATIENCE) != 0:
        found.break_promise(f"{driver.name}: {log.read_text()[-500:]}")
        return
    life, reference = time.monotonic() - begin, contents(place)
    shutil.rmtree(place)
    for _ in range(MOST_KILLS):
        process = start()
        try:
            process.wait(rng.uniform(0.2, 1.0) * life)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        found.count_kill(driver.name, ANY_TIME)
        if repeated_steps(place):
            found.break_promise(f"{driver.name}: a step comes twice in the metrics")
        if time.monotonic() > until:
            break
    process = start()
    if process.wait(PATIENCE) != 0:
        found.break_promise(f"{driver.name}: {log.read_text()[-500:]}")
    end = time.monotonic() + PATIENCE
    while (left := _processes(place)) and time.monotonic() < end:
        time.sleep(0.2)
    if left:
        found.break_promise(f"{driver.name}: the processes {left} have not ended")
    if different := differing(reference, contents(place)):
        found.break_promise(f"{driver.name}: {', '.join(different)} differ in {place}")
    found.count("runs compared")
