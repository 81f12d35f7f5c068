"""Deep Q-learning with replay, for recipes."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.compilation import compiled
from dropin.dice import Dice
from dropin.training.schedule import Linear
from dropin.zoo.recipe import Recipe, repeat
from dropin.zoo.replay import Replay


class Learning(eqx.Module):
    """Everything that changes."""

    networks: Any
    targets: Any
    optimiser: Any
    states: Any
    """One for each environment."""
    replay: Replay
    steps: Int[Array, ""]
    key: PRNGKeyArray


@dataclass(frozen=True)
class QLearning(Recipe):
    """All environments take a step with some random actions; then one step of Adam on the squared
    errors of steps drawn from the last ones; then the targets follow slowly."""

    steps: int = 6_400_000
    envs: int = 64
    batch: int = 128
    learning_rate: float = 5e-4
    target_rate: float = 5e-3
    discount: float = 0.97
    exploring: int = 3_200_000
    """Steps until the share of random actions has come down."""
    epsilon: float = 0.05
    """To this."""
    memory: int = 1500
    """How many steps of all environments are remembered."""
    chunk: int = 1000
    """Steps of all environments between two reports."""

    @abstractmethod
    def fresh(self, key: PRNGKeyArray) -> Any:
        """Networks that know nothing."""

    @abstractmethod
    def place(self, key: PRNGKeyArray) -> Any:
        """The first state of an environment."""

    @abstractmethod
    def live(
        self, networks: Any, state: Any, epsilon: Float[Array, ""], key: PRNGKeyArray
    ) -> tuple[Any, Any, Float[Array, ""]]:
        """A step of an environment: its state, what to remember of it, and captures."""

    @abstractmethod
    def error(self, networks: Any, targets: Any, lived: Any) -> Float[Array, ""]:
        """The squared error of Q-learning, for one step that is remembered."""

    @property
    def _adam(self) -> optax.GradientTransformation:
        return optax.flatten(optax.adam(self.learning_rate))

    def start(self, seed: int) -> Learning:
        """Fresh networks, and a game in each environment."""
        key, building, placing, trying = jax.random.split(jax.random.key(seed), 4)
        networks = self.fresh(building)
        states = jax.vmap(self.place)(jax.random.split(placing, self.envs))
        one = jax.vmap(self.live, in_axes=(None, 0, None, 0))
        trying = jax.random.split(trying, self.envs)
        _, lived, _ = eqx.filter_eval_shape(one, networks, states, jnp.float32(1), trying)
        return Learning(
            networks=networks,
            targets=networks,
            optimiser=self._adam.init(eqx.filter(networks, eqx.is_array)),
            states=states,
            replay=Replay.like(lived, self.memory),
            steps=jnp.int32(0),
            key=key,
        )

    def weights(self, state: Learning) -> Any:
        """The networks."""
        return state.networks

    def advance(self, state: Learning) -> tuple[Learning, dict[str, Any]]:
        """A chunk of steps."""
        state, (captures, loss) = _advance(self, state)
        return state, {"captures in 200 steps": 200 * captures, "loss": loss}

    def once(self, learning: Learning) -> tuple[Learning, tuple[Float[Array, ""], ...]]:
        """A step of every environment and one of the weights; captures a step, and the loss."""
        key, living, sampling = jax.random.split(learning.key, 3)
        epsilon = Linear(1.0, self.epsilon, self.exploring)(learning.steps)
        states, lived, captures = jax.vmap(self.live, in_axes=(None, 0, None, 0))(
            learning.networks, learning.states, epsilon, jax.random.split(living, self.envs)
        )
        replay = learning.replay.add(lived)
        some = replay.sample(sampling, self.batch)

        def loss(networks: Any) -> Float[Array, ""]:
            each = jax.vmap(self.error, in_axes=(None, None, 0))
            return jnp.mean(each(networks, learning.targets, some))

        value, gradient = eqx.filter_value_and_grad(loss)(learning.networks)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes its counter with floats.
            change, optimiser = self._adam.update(gradient, learning.optimiser)
        networks = eqx.apply_updates(learning.networks, change)
        rate = self.target_rate
        following = Learning(
            networks=networks,
            targets=jax.tree.map(
                lambda slow, new: (1 - rate) * slow + rate * new, learning.targets, networks
            ),
            optimiser=optimiser,
            states=states,
            replay=replay,
            steps=learning.steps + self.envs,
            key=key,
        )
        return following, (jnp.mean(captures), value)


def _many(recipe: QLearning, learning: Learning) -> Any:
    return repeat(recipe.once, learning, recipe.chunk)


_advance = compiled(_many)


def explore(
    dice: Dice, values: Float[Array, "n action"], epsilon: Float[Array, ""]
) -> Int[Array, " n"]:
    """The best actions, but now and then any."""
    count, actions = values.shape
    anything = dice.integers(0, actions - 1, count)
    best = jnp.argmax(values, axis=1).astype(jnp.int32)
    return jnp.where(dice.uniform(count) < epsilon, anything, best)


def of_actions(values: Float[Array, "n action"], actions: Int[Array, " n"]) -> Float[Array, " n"]:
    """The values of the actions that were chosen."""
    chosen = actions[:, None] == jnp.arange(values.shape[1])[None]
    return jnp.sum(jnp.where(chosen, values, 0.0), axis=1)
