"""Small runs that are to be disturbed, and how they are compared with one that was not."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tiny

from chaos import counter
from dropin.cli import main
from dropin.training.tables import read_table
from dropin.zoo import recipe as recipes
from dropin.zoo.fortattack_g6 import Ensemble
from dropin.zoo.recipe import Measurement, run_recipe

TYPES = {"lbf": ("H6",), "wolfpack": ("H1",), "fortattack": ("G2", "A1")}
"""Types that are quick to compile."""
LEARNERS: Mapping[str, Mapping[str, int]] = {
    "gpl-q": tiny.SETTINGS,
    "dgn": {
        **tiny.SIZES,
        "first_hidden_size": 4,
        "second_hidden_size": 4,
        "replay_capacity": 24,
        "batch_size": 4,
    },
}
"""A learner that learns from the steps just taken and one with a replay buffer."""
STEPS, CHECKPOINT_EVERY, LOG_EVERY = 480, 40, 20


@dataclass(frozen=True)
class Workload:
    """Something that writes to a directory of its own and can be interrupted.

    Both functions get the directory.
    """

    name: str
    start: Callable[[Path], None]
    """Starts it."""
    again: Callable[[Path], None]
    """Goes on, as the messages tell the user."""
    begun: str = "run.json"
    """The file that is there if it has to be gone on with."""

    def go_on(self, directory: Path) -> None:
        """Start it, or go on with what is there."""
        (self.again if (directory / self.begun).exists() else self.start)(directory)


def arguments(game: str, learner: str, steps: int = STEPS) -> list[str]:
    """Return the arguments of `dropin train` for a run that takes seconds."""
    settings = {
        "log_every": LOG_EVERY,
        "training.num_envs": 2,
        "training.rollout_length": 2,
        "evaluation.num_envs": 2,
        "evaluation.episodes": 1,
        "game_settings.horizon": 10,
        **{f"settings.{name}": value for name, value in LEARNERS[learner].items()},
    }
    return [
        game, learner, "--types", *TYPES[game], "--steps", str(steps),
        "--checkpoint-every", str(CHECKPOINT_EVERY), "--keep", "agents", "--report", "json",
        "--set", *(f"{name}={value}" for name, value in settings.items()),
    ]  # fmt: skip


def training(game: str, learner: str) -> Workload:
    """Return a run of `dropin train`."""

    def start(directory: Path) -> None:
        main(["train", *arguments(game, learner), "--directory", str(directory)])

    def again(directory: Path) -> None:
        main(["train", "--resume", str(directory), "--report", "json"])

    return Workload(f"{learner}, {game}", start, again)


@dataclasses.dataclass(frozen=True)
class SmallEnsemble(Ensemble):
    """The recipe of G6 with little experience, which measures nothing but its weights."""

    steps: int = 1280
    num_envs: int = 8
    rollout_length: int = 8
    updates_per_chunk: int = 1

    def measure(self, params: Any) -> list[Measurement]:
        return [Measurement.from_values("bias", "G6", params.decide.layers[-1].bias)]


def train_recipe(directory: Path) -> None:
    """Train the recipe, saving its state after every chunk; do nothing if it is done."""
    recipes.SAVE_INTERVAL = 0.0
    weights = directory / f"{SmallEnsemble.name}.safetensors"
    if not weights.exists() or weights.with_suffix(".state.safetensors").exists():
        run_recipe(SmallEnsemble(), directory)


PPO = Workload("PPO (G6), fortattack", train_recipe, train_recipe)


def start_counter(directory: Path) -> None:
    """Train the learner that learns nothing."""
    with counter.counting():
        counter.start(directory, steps=4000)


def go_on_with_counter(directory: Path) -> None:
    """Continue the learner that learns nothing."""
    with counter.counting():
        counter.go_on(directory)


COUNTER = Workload("no learning", start_counter, go_on_with_counter)
"""Nothing but files, for many kills in little time."""
WORKLOADS = (*(training(game, learner) for game in TYPES for learner in LEARNERS), PPO)
"""All that is killed."""


def contents(directory: Path) -> dict[str, bytes]:
    """Return the content of all files but locks, by their paths in a directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.suffix != ".lock" and path.name != ".lock"
    }


def differing(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> list[str]:
    """Return the names of files that are not the same, or not there, in both."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def repeated_steps(directory: Path) -> list[str]:
    """Return the tables of metrics in which a step comes twice: two processes wrote them."""
    found = []
    for table in directory.rglob("metrics.csv"):
        steps = [int(row["step"]) for row in read_table(table)]
        if steps != sorted(set(steps)):
            found.append(os.fspath(table))
    return found
