"""A run's directory: never overwritten, never half-written.

run.json                 settings, and the versions of what it ran on
metrics.csv              what training told, a row every few thousand steps
evaluation.csv           returns at every checkpoint
checkpoints/             everything needed to go on, one file each; the latest are kept
agents/                  the agent of every checkpoint, if these are kept
agent.safetensors        the agent of the latest checkpoint
"""

import fcntl
import os
import platform
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from dropin import __version__
from dropin.adhoc import AdHoc
from dropin.agents import AGENT_FILE, Agent, describe, save_agent
from dropin.config import differences
from dropin.errors import InputError
from dropin.evaluation.evaluate import ratios
from dropin.files import read_arrays, read_json, write_arrays, write_json
from dropin.games import find as find_game
from dropin.games.base import Game
from dropin.training.chunk import Metrics, RunState
from dropin.training.config import WATCHING, RunConfig
from dropin.training.table import EVALUATION, EXTRA_LOSS, METRICS, Table
from dropin.weights import from_arrays, to_arrays

KeepRule = int | Literal["all", "agents"]
"""How many checkpoints to keep. With "agents" it is three, and of all others the agent."""
Keep = KeepRule | None
"""None: as the run was started, and three of a new one."""
KEPT = 3
_PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "safetensors")


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.metrics = Table(self.path / "metrics.csv", METRICS)
        self.evaluation = Table(self.path / "evaluation.csv", EVALUATION)
        self.checkpoints = self.path / "checkpoints"
        self.agents = self.path / "agents"
        self.agent = self.path / AGENT_FILE

    @property
    def exists(self) -> bool:
        """Whether there is a run."""
        return (self.path / "run.json").exists()

    def check_free(self) -> None:
        """Raise `InputError` if the directory holds anything."""
        if self.path.exists() and (not self.path.is_dir() or any(self._visible())):
            how = f", or go on with: dropin train --resume {self.path}" if self.exists else ""
            raise InputError(f"{self.path} exists already: give another directory{how}.")

    def create(self, config: RunConfig, keep: Keep = None) -> None:
        """Start a run's files; a directory that holds anything is refused."""
        self.check_free()
        check_keep(keep)
        self.path.mkdir(parents=True, exist_ok=True)
        self.metrics.create()
        self.evaluation.create()
        told = {"config": config.as_dict(), "versions": versions(), "keep": keep or KEPT}
        write_json(self.path / "run.json", told)

    def keep(self, given: Keep) -> KeepRule:
        """How many checkpoints to keep from now on; as before if nothing is given."""
        check_keep(given)
        told = read_json(self.path / "run.json")
        if given is not None and given != told.get("keep"):
            write_json(self.path / "run.json", told | {"keep": given})
        return given or told.get("keep", KEPT)

    def _visible(self) -> Iterator[Path]:
        return (each for each in self.path.iterdir() if not each.name.startswith("."))

    def config(self) -> RunConfig:
        """The settings of the run."""
        if not self.exists:
            raise InputError(f"{self.path} is not the directory of a run: it has no run.json.")
        kept = read_json(self.path / "run.json")
        try:
            return RunConfig.from_dict(kept["config"])
        except (KeyError, TypeError, AttributeError):
            raise InputError(f"{self.path / 'run.json'} does not describe a run.") from None

    def check_same(self, config: RunConfig) -> None:
        """Raise `InputError` if the run was started with other settings."""
        different = differences(self.config().as_dict(), config.as_dict())
        if different:
            raise InputError(
                f"{self.path} was started with other settings ({'; '.join(different)}): resume it"
                " without them, or start a run in another directory."
            )

    def check_versions(self) -> None:
        """Warn if the run was started with other versions."""
        kept = read_json(self.path / "run.json").get("versions", {})
        different = differences(kept, versions())
        if different:
            warnings.warn(
                f"{self.path} was started with other versions or flags ({'; '.join(different)}):"
                " the result may differ in the last bits.",
                stacklevel=2,
            )

    @contextmanager
    def locked(self, wait: float = 0.0) -> Iterator[None]:
        """Keep other processes from training in this directory, having waited for them to end."""
        self.path.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path / ".lock", os.O_CREAT | os.O_RDWR)
        until = time.monotonic() + wait
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() >= until:
                        raise InputError(f"Another process is training in {self.path}.") from None
                time.sleep(0.5)
            yield
        finally:
            os.close(handle)

    def steps(self) -> list[int]:
        """The steps of the checkpoints, in order."""
        return sorted(_steps(self.checkpoints))

    def checkpoint(self, step: int) -> Path:
        """The file of the checkpoint at a step."""
        return self.checkpoints / _name(step)

    def steps_with_agent(self) -> list[int]:
        """The steps of which the agent is there, in order."""
        return sorted({*_steps(self.agents), *_steps(self.checkpoints)})

    def agent_at(self, step: int) -> Path:
        """A file with the agent of a step: its own, or the checkpoint."""
        own = self.agents / _name(step)
        found = own if own.exists() else self.checkpoint(step)
        if not found.exists():
            raise InputError(f"{self.path} has no checkpoint of step {step:,}.")
        return found

    def save(
        self, state: Any, agent: Agent, step: int, keep: KeepRule, *, evaluated: bool = True
    ) -> None:
        """Write a checkpoint and its agent, then remove the oldest beyond those kept.

        The agents that last are those that were evaluated. They come first: after a checkpoint
        nobody would miss one.
        """
        self.metrics.sync()
        self.evaluation.sync()
        if keep == "agents" and evaluated:
            save_agent(agent, self.agents / _name(step), step=step)
        about = {"kind": "checkpoint", "step": step, **describe(agent)}
        about["temperature"] = float(agent.temperature)
        write_arrays(self.checkpoint(step), to_arrays(state), about)
        save_agent(agent, self.agent, step=step)
        if keep != "all":
            for old in self.steps()[: -(KEPT if keep == "agents" else keep)]:
                self.checkpoint(old).unlink()

    def restore(self, template: RunState) -> tuple[RunState, int]:
        """The latest checkpoint that is not damaged; tables are cut back to it."""
        for step in reversed(self.steps()):
            path = self.checkpoint(step)
            try:
                arrays, about = read_arrays(path)
                if about.get("kind") != "checkpoint" or about.get("step") != step:
                    raise InputError(f"{path} is not the checkpoint of step {step}.")
                state = from_arrays(template, arrays, path)
            except InputError as error:
                warnings.warn(f"{error} The checkpoint before it is used.", stacklevel=2)
                continue
            self.metrics.cut(step)
            self.evaluation.cut(step)
            return state, step
        raise InputError(f"{self.path} has no checkpoint that can be used.")


def _name(step: int) -> str:
    return f"step-{step:012d}.safetensors"


def _steps(directory: Path) -> list[int]:
    names = [each.stem.removeprefix("step-") for each in directory.glob("step-*.safetensors")]
    return [int(name) for name in names if name.isdigit()]


def check_keep(keep: Keep) -> None:
    """Raise `InputError` if it is no number of checkpoints."""
    if isinstance(keep, int) and keep < 1:
        raise InputError(f"Keep {keep} is too small: at least 1 checkpoint is kept.")
    if isinstance(keep, str) and keep not in ("all", "agents"):
        raise InputError(f"Keep {keep!r} is not a number of checkpoints, all or agents.")


def metrics_row(
    step: int,
    updates: int,
    totals: Metrics,
    game: Game[Any],
    epsilon: float,
    temperature: float,
    predicts: bool,
    joint: bool,
) -> dict[str, Any]:
    """A row of metrics from sums over so many updates.

    `predicts` with an agent model, `joint` if all of a side are trained.
    """
    episodes = int(totals.episodes)
    unshaped = float(totals.returns) - float(totals.shaping)
    return {
        "step": step,
        "episodes": episodes,
        "return": float(totals.returns) / episodes if episodes else "",
        "unshaped": unshaped / episodes if episodes and game.shaped else "",
        "value_loss": float(totals.value_loss) / updates,
        "prediction_loss": float(totals.prediction_loss) / updates if predicts else "",
        "accuracy": float(totals.accuracy) / updates if predicts else "",
        "team_size": float(totals.team_size) / updates,
        "epsilon": epsilon,
        "temperature": temperature,
        **({EXTRA_LOSS: float(totals.extra_loss) / updates} if joint else {}),
        **ratios(game, np.asarray(totals.counts)),
    }


def agent_of(config: RunConfig, state: RunState, temperature: float) -> Agent:
    """The learner of a run, ready to act."""
    warmth = temperature if config.settings.cools else 1.0
    return Agent(state.learner, jnp.float32(warmth), config.learner)


def versions() -> dict[str, str]:
    """What a run depends on."""
    packages = {name: version(name) for name in _PACKAGES}
    own = {"dropin": __version__, "python": platform.python_version()}
    return own | packages | {"XLA_FLAGS": os.environ.get("XLA_FLAGS", "")}


def run_environment(
    directory: Path, game: str | None = None, **other: Any
) -> tuple[AdHoc, RunConfig]:
    """The environment that a run was trained in, with what should differ, and its settings.

    `game` is what the user holds the run's game to be.
    """
    config = RunDirectory(directory).config()
    if config.own_environment:
        raise InputError(f"{directory} was trained in an environment of its own: use Python.")
    if game is not None and find_game(game).name != config.game:
        raise InputError(f"{directory} was trained in {config.game!r} and cannot play {game!r}.")
    return config.environment(**other), config


def runs_of_a_kind(directory: Path) -> list[Path]:
    """The runs in a directory, which must be there and differ in nothing but their seeds."""
    runs = runs_in(directory)
    if not runs:
        raise InputError(f"There is no run in {directory}: a run has a file run.json.")

    def kind(run: Path) -> dict[str, Any]:
        values = RunDirectory(run).config().as_dict()
        return {name: each for name, each in values.items() if name not in ("seed", *WATCHING)}

    first = kind(runs[0])
    for other in runs[1:]:
        different = differences(first, kind(other))
        if different:
            raise InputError(
                f"The runs in {directory} differ in more than their seeds ({different[0]}): name"
                " the directory of each kind."
            )
    return runs


def runs_in(directory: Path) -> list[Path]:
    """The runs in a directory: itself, or those one level below it."""
    found = [directory] if (directory / "run.json").exists() else []
    below = sorted(each.parent for each in directory.glob("*/run.json")) if not found else []
    return found or sorted(below, key=lambda each: (len(each.name), each.name))
