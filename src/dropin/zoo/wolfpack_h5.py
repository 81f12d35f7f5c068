"""H5 of Wolfpack: a relational network that learns to imitate teammate-aware hunters (H4)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.adhoc import EnvState, make
from dropin.compilation import compiled
from dropin.dice import Dice
from dropin.teams.wolfpack.learned import HunterNet, imitator
from dropin.zoo.hunts import captures
from dropin.zoo.recipe import Recipe, Score, repeat

TEAM = 5
ENV = make("wolfpack", rules="paper", team_limit=TEAM, types=["H4"])
"""Open teams of teammate-aware hunters, of up to five."""


class Learning(eqx.Module):
    """Everything that changes."""

    network: HunterNet
    optimiser: Any
    states: EnvState
    steps: Int[Array, ""]
    key: PRNGKeyArray


@dataclass(frozen=True)
class Imitation(Recipe):
    """Supervised learning of what teammate-aware hunters do, on the states that they meet."""

    name: ClassVar[str] = "wolfpack/H5"
    about: ClassVar[str] = "a hunter that imitates teammate-aware hunters (H4)"
    how: ClassVar[str] = "supervised learning of the actions of open teams of H4"

    steps: int = 3_200_000
    envs: int = 64
    learning_rate: float = 1e-3
    last_rate: float = 5e-5
    """The learning rate falls to this at the end."""
    chunk: int = 1000
    """Steps of all environments between two reports."""

    @property
    def _adam(self) -> optax.GradientTransformation:
        rate = optax.cosine_decay_schedule(
            self.learning_rate, self.steps // self.envs, self.last_rate / self.learning_rate
        )
        return optax.flatten(optax.adam(rate))

    def start(self, seed: int) -> Learning:
        """A fresh network, and a game in each environment."""
        key, building, placing = jax.random.split(jax.random.key(seed), 3)
        network = HunterNet(building)
        states, _ = jax.vmap(ENV.reset)(jax.random.split(placing, self.envs))
        optimiser = self._adam.init(eqx.filter(network, eqx.is_array))
        return Learning(network, optimiser, states, jnp.int32(0), key)

    def weights(self, state: Learning) -> HunterNet:
        """The network."""
        return state.network

    def advance(self, state: Learning) -> tuple[Learning, dict[str, Any]]:
        """A chunk of steps."""
        state, (loss, right) = _advance(self, state)
        return state, {"loss": loss, "accuracy": right}

    def scores(self, weights: HunterNet) -> list[Score]:
        """On states it has not seen, how often it is right; and how well it hunts."""
        right, common = held_out(weights)
        what = "share of H4's actions on held-out states"
        hunt = "captures in 200 steps by three"
        kinds = {"H5": imitator(weights), "H4": "H4", "H1": "H1"}
        return [
            Score.of(what, "H5, its likeliest action", right),
            Score.of(what, "the most common action", common),
            *(Score.of(hunt, who, captures([kind])) for who, kind in kinds.items()),
        ]


def teach(states: EnvState, key: PRNGKeyArray) -> tuple[EnvState, Int[Array, " slot"]]:
    """A step in which all are teammate-aware: the state afterwards, and what they did."""
    dice = Dice(key)
    actions, _ = ENV.team.pool.act(dice, states.cast, states.game, states.arrived)
    following, _ = ENV.step_all(dice.key(), states, actions)
    return following, actions


def _lesson(
    network: HunterNet, states: EnvState, actions: Int[Array, "env slot"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The cross-entropy of the actions of those present, and the share predicted."""
    logits = jax.vmap(network)(states.game)
    present = states.game.present
    likely = jax.nn.log_softmax(logits, axis=-1)
    chosen = actions[..., None] == jnp.arange(logits.shape[-1])[None, None]
    count = jnp.sum(present, dtype=jnp.float32)
    missed = -jnp.sum(jnp.where(chosen & present[..., None], likely, 0.0)) / count
    right = jnp.sum((jnp.argmax(logits, axis=-1) == actions) & present, dtype=jnp.float32) / count
    return missed, right


def _once(
    recipe: Imitation, before: Learning
) -> tuple[Learning, tuple[Float[Array, ""], Float[Array, ""]]]:
    """A step of every environment and one of the weights; the loss and the share predicted."""
    key, playing = jax.random.split(before.key)
    states, actions = jax.vmap(teach)(before.states, jax.random.split(playing, recipe.envs))
    grad = eqx.filter_value_and_grad(_lesson, has_aux=True)
    told, gradient = grad(before.network, before.states, actions)
    with jax.numpy_dtype_promotion("standard"):  # Optax mixes its counter with floats.
        change, optimiser = recipe._adam.update(gradient, before.optimiser)
    network = eqx.apply_updates(before.network, change)
    return Learning(network, optimiser, states, before.steps + recipe.envs, key), told


def _many(recipe: Imitation, learning: Learning) -> Any:
    return repeat(partial(_once, recipe), learning, recipe.chunk)


_advance = compiled(_many)


def held_out(network: HunterNet, envs: int = 200, seed: int = 99) -> tuple[np.ndarray, np.ndarray]:
    """In episodes of other seeds than those of training: the share of H4's actions that are the
    network's likeliest, and the share that is the most common one, for each episode."""

    @eqx.filter_jit
    def play(network: HunterNet, keys: PRNGKeyArray) -> Any:
        def episode(key: PRNGKeyArray) -> Any:
            first, key = jax.random.split(key)
            state, _ = ENV.reset(first)

            def step(state: EnvState, key: PRNGKeyArray) -> Any:
                following, actions = teach(state, key)
                guess = jnp.argmax(network(state.game), axis=-1)
                return following, (guess, actions, state.game.present)

            return jax.lax.scan(step, state, jax.random.split(key, 199))[1]

        return jax.vmap(episode)(keys)

    keys = jax.random.split(jax.random.key(seed), envs)
    guess, actions, present = map(np.asarray, play(network, keys))
    most_common = np.bincount(actions[present]).argmax()
    count = present.sum(axis=(1, 2))

    def share(right: np.ndarray) -> np.ndarray:
        return (right & present).sum(axis=(1, 2)) / count

    return share(guess == actions), share(actions == most_common)
