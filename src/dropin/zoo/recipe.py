"""Recipes: how learned teammates and prey are made, and the cards that say how well they do."""

import hashlib
import sys
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TextIO

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dropin.compilation import use_cache
from dropin.errors import InputError
from dropin.evaluation.statistics import Estimate, estimate
from dropin.files import read_arrays, write_arrays, write_json
from dropin.training.directory import versions
from dropin.training.loop import interruptible
from dropin.training.reporters import Pace
from dropin.weights import from_arrays, to_arrays

SAVE_EVERY = 30.0
"""Seconds between two saves of a state that is being trained."""


@dataclass(frozen=True)
class Score:
    """Something that was measured of a learned policy, or of another for comparison."""

    what: str
    who: str
    estimate: Estimate

    @classmethod
    def of(cls, what: str, who: str, values: Any) -> "Score":
        """The mean of independent values."""
        return cls(what, who, estimate(np.asarray(values)))


@dataclass(frozen=True)
class Recipe:
    """How to train one policy. Everything follows from the seed."""

    name: ClassVar[str]
    """`game/name`, as the weights are called."""
    about: ClassVar[str]
    """What it is, in a line."""
    how: ClassVar[str]
    """How it is trained, in a line."""
    steps: int
    """Environment steps, all parallel environments together."""

    @abstractmethod
    def start(self, seed: int) -> Any:
        """The state before training: a pytree of arrays."""

    @abstractmethod
    def advance(self, state: Any) -> tuple[Any, dict[str, Any]]:
        """About a second of training: the state afterwards, and what to tell about it."""

    def step(self, state: Any) -> int:
        """Environment steps so far, which every state counts."""
        return int(state.steps)

    @abstractmethod
    def weights(self, state: Any) -> Any:
        """The pytree of weights that is kept; None if there are none."""

    def besides(self, state: Any) -> dict[str, Any]:
        """Other weights to keep in files of their own, by name."""
        del state
        return {}

    @abstractmethod
    def scores(self, weights: Any) -> list[Score]:
        """How well the weights do, measured anew, beside others."""


def repeat(
    once: Callable[[Any], tuple[Any, tuple[Array, ...]]], state: Any, number: int
) -> tuple[Any, tuple[Array, ...]]:
    """Train so many times; the state afterwards, and the means of the numbers that were told."""
    arrays, static = eqx.partition(state, eqx.is_array)

    def body(_: Any, carry: tuple[Any, tuple[Array, ...]]) -> tuple[Any, tuple[Array, ...]]:
        arrays, totals = carry
        following, told = once(eqx.combine(arrays, static))
        totals = jax.tree.map(jnp.add, totals, told)
        return eqx.filter(following, eqx.is_array), totals

    _, told = eqx.filter_eval_shape(once, state)
    nothing = jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype), told)
    arrays, totals = jax.lax.fori_loop(0, number, body, (arrays, nothing))
    return eqx.combine(arrays, static), jax.tree.map(lambda total: total / number, totals)


def prepare(
    recipe: Recipe, directory: Path, seed: int = 0, out: TextIO | None = None
) -> tuple[Path, Path]:
    """Follow a recipe to its end; the weights and the card are written to the directory.

    A state that was saved there by an interrupted run is gone on with; at the end it is removed.
    """
    use_cache()
    out = sys.stdout if out is None else out
    paths = directory / f"{recipe.name}.safetensors", directory / f"{recipe.name}.json"
    for path in paths:
        if path.exists():
            raise InputError(f"{path} exists already: remove it or give another directory.")
    kept = directory / f"{recipe.name}.state.safetensors"
    settings = {"name": recipe.name, "seed": seed, **asdict(recipe)}

    def tell(sentence: str) -> None:
        print(f"{recipe.name}: {sentence}", file=out, flush=True)

    def save() -> None:
        write_arrays(kept, to_arrays(state), settings)

    if kept.exists():
        arrays, about = read_arrays(kept)
        if about != settings:
            raise InputError(f"{kept} is the state of another recipe or seed: remove it.")
        state = from_arrays(eqx.filter_eval_shape(recipe.start, seed), arrays, kept)
        tell(f"goes on from step {recipe.step(state):,}")
    else:
        state = recipe.start(seed)
    pace, saved = Pace(recipe.steps), time.monotonic()
    with interruptible() as interrupted:
        while recipe.step(state) < recipe.steps:
            state, told = recipe.advance(state)
            step = recipe.step(state)
            rate, left = pace.tell(step)
            news = ", ".join(f"{name} {float(value):.3g}" for name, value in told.items())
            tell(f"step {step:,} of {recipe.steps:,}, {rate:,.0f} a second, {left} left, {news}")
            if interrupted() or time.monotonic() - saved > SAVE_EVERY:
                save()
                saved = time.monotonic()
            if interrupted():
                tell("saved; the same command goes on from here")
                raise KeyboardInterrupt
    save()
    tell("measuring how well it does")
    weights = recipe.weights(state)
    scores = recipe.scores(weights)
    about = {"name": recipe.name, "seed": seed}
    for what, more in recipe.besides(state).items():
        write_arrays(directory / f"{recipe.name}.{what}.safetensors", to_arrays(more), about)
    if weights is not None:
        write_arrays(paths[0], to_arrays(weights), about)
    write_json(paths[1], card(recipe, seed, paths[0], scores))
    kept.unlink()
    return paths


def card(recipe: Recipe, seed: int, weights: Path, scores: list[Score]) -> dict[str, Any]:
    """What there is to know about a learned policy."""
    return {
        "name": recipe.name,
        "about": recipe.about,
        "how": recipe.how,
        "settings": asdict(recipe),
        "seed": seed,
        "sha256": hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else None,
        "scores": [
            {"what": each.what, "who": each.who, **asdict(each.estimate)} for each in scores
        ],
        "versions": versions(),
    }
