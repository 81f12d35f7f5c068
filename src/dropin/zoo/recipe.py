"""Recipes: how a learned teammate or prey is trained, stored, measured and reported on a card."""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, wraps
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, ParamSpec, TextIO, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from dropin._xla.cache import use_cache
from dropin.core.arrays import from_arrays, to_arrays
from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import InputError, StoppedError
from dropin.core.files import (
    file_checksum,
    make_directory,
    read_arrays,
    remove_unfinished,
    write_arrays,
    write_json,
)
from dropin.core.locks import hold
from dropin.evaluation.statistics import Estimate, estimate
from dropin.training.loop import interruptible
from dropin.training.provenance import versions
from dropin.training.reporters import Pace

__all__ = ["Measurement", "Recipe", "make_card", "make_once", "run_recipe"]

SAVE_INTERVAL = 30.0
"""Seconds between two saves of a train state."""

State = TypeVar("State")
Params = TypeVar("Params")
P = ParamSpec("P")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Measurement:
    """A measured quantity of a policy: the learned one, or another for comparison."""

    quantity: str
    """What was measured."""
    policy: str
    """Whose quantity it is."""
    estimate: Estimate

    @classmethod
    def from_values(cls, quantity: str, policy: str, values: ArrayLike) -> "Measurement":
        """Return the mean of independent values, with its interval.

        Args:
            quantity: What was measured.
            policy: The policy that was measured.
            values: The values.
        """
        return cls(quantity, policy, estimate(np.asarray(values)))

    def to_dict(self) -> PlainDict:
        """Return the measurement as plain values, as it is on a card."""
        return {"quantity": self.quantity, "policy": self.policy, **asdict(self.estimate)}


@dataclass(frozen=True)
class Recipe(ABC, Generic[State, Params]):
    """How to train one policy. The fields are the settings; the result depends on them and a seed.

    `State` is the train state, a pytree of arrays; `Params` are the weights that are stored.
    """

    name: ClassVar[str]
    """`game/name`, as the weights are called."""
    summary: ClassVar[str]
    """One line that says what the policy does."""
    method: ClassVar[str]
    """One line that says how it is trained."""
    game: ClassVar[ModuleType]
    """The package of the game, in whose folder the weights are installed."""
    steps: int
    """Environment steps of training, all parallel environments together."""

    @property
    def weights_path(self) -> Path:
        """The file in the game's folder that holds the weights."""
        (folder,) = self.game.__path__
        return Path(folder) / "weights" / f"{self.name.rpartition('/')[2]}.safetensors"

    @abstractmethod
    def init(self, seed: int) -> State:
        """Return the train state before the first update."""

    @abstractmethod
    def train_chunk(self, state: State) -> tuple[State, Mapping[str, Float[Array, ""]]]:
        """Train for about a second.

        Returns:
            The train state afterwards, and metrics of the chunk to report, by name.
        """

    def steps_done(self, state: State) -> int:
        """Return the environment steps so far, by default the field `steps` of the train state."""
        return int(state.steps)  # pyright: ignore[reportAttributeAccessIssue]

    @abstractmethod
    def policy_params(self, state: State) -> Params:
        """Return the weights to store, a pytree; None if there are none."""

    def extra_files(self, state: State) -> PlainMapping:
        """Return further pytrees of arrays to store in files of their own, by name."""
        del state
        return {}

    def measure_training(self, state: State) -> list[Measurement]:
        """Measure something of the training itself, such as what was tried; nothing by default."""
        del state
        return []

    def card_notes(self) -> PlainMapping:
        """Return further entries of the card, such as what was tried before; none by default."""
        return {}

    @abstractmethod
    def measure(self, params: Params) -> list[Measurement]:
        """Measure how well the policy with these weights does, and others for comparison."""


def make_once(make: Callable[P, Result]) -> Callable[P, Result]:
    """Call a function once for the same arguments and return the same result afterwards.

    Its arrays are computed at once, even while JAX traces the caller, so that no tracer is kept.

    Args:
        make: A function of hashable arguments, such as one that makes an environment.
    """

    @cache
    def make_eagerly(*args: Any, **kwargs: Any) -> Result:
        with jax.ensure_compile_time_eval():
            return make(*args, **kwargs)

    @wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> Result:
        return make_eagerly(*args, **kwargs)

    return call


def run_recipe(
    recipe: Recipe[State, Params], directory: Path, seed: int = 0, out: TextIO | None = None
) -> tuple[Path, Path]:
    """Train and measure a policy; write its weights and its card to a directory.

    The train state is saved every `SAVE_INTERVAL` seconds and when the run is interrupted. A run
    continues from a saved state. The state is removed last: as long as it is there, the files are
    not finished, and they are written again.

    Args:
        recipe: The recipe.
        directory: Where to write `NAME.safetensors` and `NAME.json`.
        seed: The same seed gives the same weights.
        out: Where to report progress; standard output by default.

    Returns:
        The paths of the weights and of the card.

    Raises:
        InputError: If one of the files exists, if the saved state is of another recipe or seed, or
            if another process trains the recipe there.
        StoppedError: If a file cannot be read or written.
    """
    use_cache()
    lock = (directory / recipe.name).with_name(f".{recipe.name.rpartition('/')[2]}.lock")
    try:
        make_directory(lock.parent)
        with hold(lock, f"Another process is training {recipe.name} in {directory}"):
            return _run_locked(recipe, directory, seed, out)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StoppedError(
            f"{recipe.name} stopped, since {error.filename or directory} cannot be read or written:"
            f" {error.strerror}. Mend this and run the same command to continue."
        ) from None


def _run_locked(
    recipe: Recipe[State, Params], directory: Path, seed: int, out: TextIO | None
) -> tuple[Path, Path]:
    """Train and measure a policy, while no other process does; see `run_recipe`."""

    def report(sentence: str) -> None:
        print(f"{recipe.name}: {sentence}", file=out or sys.stdout, flush=True)

    weights_path, card_path = (
        directory / f"{recipe.name}.{end}" for end in ("safetensors", "json")
    )
    state_path = directory / f"{recipe.name}.state.safetensors"
    for path in (weights_path, card_path):
        if path.exists() and not state_path.exists():
            raise InputError(f"{path} exists already: remove it or give another directory.")
    remove_unfinished(weights_path.parent, f"{weights_path.stem}.")
    state = _train(recipe, state_path, seed, report)
    report("measuring how well it does")
    params = recipe.policy_params(state)
    measurements = [*recipe.measure(params), *recipe.measure_training(state)]
    about = {"name": recipe.name, "seed": seed}
    for name, tree in recipe.extra_files(state).items():
        write_arrays(directory / f"{recipe.name}.{name}.safetensors", to_arrays(tree), about)
    if params is not None:
        write_arrays(weights_path, to_arrays(params), about)
    write_json(card_path, make_card(recipe, seed, weights_path, measurements))
    state_path.unlink()
    return weights_path, card_path


def _train(
    recipe: Recipe[State, Any], state_path: Path, seed: int, report: Callable[[str], None]
) -> State:
    """Train to the end, from the saved state if there is one; the last state is saved too."""
    settings = {"name": recipe.name, "seed": seed, **asdict(recipe)}

    def save() -> None:
        write_arrays(state_path, to_arrays(state), settings)

    if state_path.exists():
        arrays, about = read_arrays(state_path)
        if about != settings:
            raise InputError(f"{state_path} is the state of another recipe or seed: remove it.")
        state = from_arrays(eqx.filter_eval_shape(recipe.init, seed), arrays, state_path)
        report(f"continues from step {recipe.steps_done(state):,}")
    else:
        state = recipe.init(seed)
    pace, saved_at = Pace(recipe.steps), time.monotonic()
    with interruptible() as interrupted:
        while recipe.steps_done(state) < recipe.steps:
            state, metrics = recipe.train_chunk(state)
            step = recipe.steps_done(state)
            rate, left = pace.update(step)
            shown = ", ".join(f"{name} {float(value):.3g}" for name, value in metrics.items())
            report(f"step {step:,} of {recipe.steps:,}, {rate:,.0f} a second, {left} left, {shown}")
            if interrupted() or time.monotonic() - saved_at > SAVE_INTERVAL:
                save()
                saved_at = time.monotonic()
            if interrupted():
                report("saved; run the same command to continue")
                raise KeyboardInterrupt
    save()
    return state


def make_card(
    recipe: Recipe[Any, Any], seed: int, weights_path: Path, measurements: list[Measurement]
) -> PlainDict:
    """Return the card of a trained policy, as it is written to JSON.

    Args:
        recipe: The recipe that made it.
        seed: The seed of training.
        weights_path: The file with the weights; it does not exist if there are none.
        measurements: How well the policy does.
    """
    has_weights = weights_path.exists()
    return {
        "name": recipe.name,
        "summary": recipe.summary,
        "method": recipe.method,
        "settings": asdict(recipe),
        "seed": seed,
        "sha256": file_checksum(weights_path) if has_weights else None,
        "measurements": [each.to_dict() for each in measurements],
        **recipe.card_notes(),
        "versions": versions(),
    }
