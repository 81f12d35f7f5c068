"""Small runs that are to be disturbed, and how they are compared with one that was not."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import tiny

from chaos import counter
from chaos.moments import ANY_TIME, CHECKPOINT, CHUNK, EVALUATION, MOMENTS, RENAME, Place
from dropin.cli import main
from dropin.training import runs
from dropin.training.evaluator import Evaluator
from dropin.training.tables import read_table
from dropin.zoo import recipe as recipes
from dropin.zoo.fortattack_g6 import Ensemble
from dropin.zoo.lbf_h5 import BestOfFour
from dropin.zoo.recipe import Measurement, Recipe, run_recipe
from dropin.zoo.wolfpack_h6 import RelationalHunter

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
PLACES: Mapping[str, Place] = {CHUNK: (runs, "train_chunk"), EVALUATION: (Evaluator, "_measure")}
"""Where a run computes."""


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
    places: Mapping[str, Place]
    """The functions that compute, by kind of moment."""
    begun: str = "run.json"
    """The file that is there if it has to be gone on with."""

    @property
    def moments(self) -> tuple[str, ...]:
        """The kinds of moments at which it can be killed."""
        if self.begun == "run.json":
            return tuple(each for each in MOMENTS if each in self.places or each not in PLACES)
        return (ANY_TIME, CHUNK, CHECKPOINT, RENAME)

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

    return Workload(f"{learner}, {game}", start, again, PLACES)


@dataclasses.dataclass(frozen=True)
class SmallEnsemble(Ensemble):
    """PPO with little experience, which measures nothing but its weights."""

    steps: int = 1280
    num_envs: int = 8
    rollout_length: int = 8
    updates_per_chunk: int = 1

    def measure(self, params: Any) -> list[Measurement]:
        return [Measurement.from_values("bias", "G6", params.decide.layers[-1].bias)]


@dataclasses.dataclass(frozen=True)
class SmallBestOfFour(BestOfFour):
    """A2C, as small."""

    steps: int = 320
    num_envs: int = 4
    rollout_length: int = 2
    updates_per_chunk: int = 2

    def measure(self, params: Any) -> list[Measurement]:
        return [Measurement.from_values("bias", "H5", params.layers[-1].bias)]


@dataclasses.dataclass(frozen=True)
class SmallHunter(RelationalHunter):
    """DQN with a replay buffer, as small."""

    steps: int = 160
    num_envs: int = 2
    batch_size: int = 4
    exploration_steps: int = 80
    replay_rows: int = 8
    updates_per_chunk: int = 4

    def measure(self, params: Any) -> list[Measurement]:
        return [Measurement.from_values("weights", "H6", jax.tree.leaves(params)[0])]


def train_recipe(recipe: Recipe[Any, Any], directory: Path) -> None:
    """Train a recipe, saving its state after every chunk; do nothing if it is done."""
    recipes.SAVE_INTERVAL = 0.0
    weights = directory / f"{recipe.name}.safetensors"
    if not weights.exists() or weights.with_suffix(".state.safetensors").exists():
        run_recipe(recipe, directory)


def of_recipe(how: str, recipe: Recipe[Any, Any]) -> Workload:
    """Return the training of a recipe of the zoo.

    Args:
        how: The name of its algorithm.
        recipe: The recipe.
    """
    train = partial(train_recipe, recipe)
    name = f"{how} ({recipe.name.rpartition('/')[2]}), {recipe.name.partition('/')[0]}"
    return Workload(name, train, train, {CHUNK: (type(recipe), "train_chunk")}, "")


RECIPES = (
    of_recipe("PPO", SmallEnsemble()),
    of_recipe("A2C", SmallBestOfFour()),
    of_recipe("DQN", SmallHunter()),
)


def start_counter(directory: Path) -> None:
    """Train the learner that learns nothing."""
    with counter.counting():
        counter.start(directory, steps=4000)


def go_on_with_counter(directory: Path) -> None:
    """Continue the learner that learns nothing."""
    with counter.counting():
        counter.go_on(directory)


COUNTER = Workload("no learning", start_counter, go_on_with_counter, {CHUNK: (runs, "train_chunk")})
"""Nothing but files, for many kills in little time."""
WORKLOADS = (*(training(game, learner) for game in TYPES for learner in LEARNERS), *RECIPES)
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
