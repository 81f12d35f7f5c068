"""H5 of Wolfpack: a relational network that learns to imitate teammate-aware hunters (H4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree

from dropin._xla.random import StepRNG
from dropin.core.metrics import Mean
from dropin.env import AdHocEnv, EnvState, make
from dropin.games import wolfpack
from dropin.games.wolfpack.learned import HunterNetwork, make_h5
from dropin.games.wolfpack.prey import learned_prey
from dropin.games.wolfpack.state import State
from dropin.learners.common import apply_gradients, masked_sum, values_of_actions
from dropin.zoo.recipe import Measurement, Recipe, make_once
from dropin.zoo.updates import TrainState, cosine_adam, run_updates
from dropin.zoo.wolfpack_captures import EPISODE_LENGTH, count_captures

__all__ = ["Imitation", "ImitationState", "held_out_accuracy", "training_env", "update"]

TEAM_LIMIT = 5


@make_once
def training_env() -> AdHocEnv[State]:
    """Return the environment of training: open teams of up to five H4, under the rules `paper`.

    Its prey are those without memory.
    """
    return make(
        "wolfpack",
        rules="paper",
        team_limit=TEAM_LIMIT,
        types=["H4"],
        prey_policy=learned_prey(),
    )


ImitationState = TrainState[HunterNetwork, EnvState[State]]
"""The train state of imitation."""


@dataclass(frozen=True)
class Imitation(Recipe[ImitationState, HunterNetwork]):
    """Supervised learning of the actions of teammate-aware hunters, on the states they visit."""

    name: ClassVar[str] = "wolfpack/H5"
    summary: ClassVar[str] = "a hunter that imitates teammate-aware hunters (H4)"
    method: ClassVar[str] = "supervised learning of the actions of open teams of H4"
    game: ClassVar[ModuleType] = wolfpack

    steps: int = 3_200_000
    num_envs: int = 64
    """Parallel environments; an update learns from one step of each."""
    learning_rate: float = 1e-3
    """Of Adam, at the start."""
    final_learning_rate: float = 5e-5
    """Of Adam, at the end."""
    updates_per_chunk: int = 1000
    """Updates between two reports."""

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """Adam with a learning rate that decays along a cosine."""
        num_updates = self.steps // self.num_envs
        return cosine_adam(self.learning_rate, self.final_learning_rate, num_updates)

    def init(self, seed: int) -> ImitationState:
        """Initialise the network and start an episode in every environment."""
        key, network_key, reset_key = jax.random.split(jax.random.key(seed), 3)
        params = HunterNetwork(network_key)
        reset_keys = jax.random.split(reset_key, self.num_envs)
        env_state, _ = jax.vmap(training_env().reset)(reset_keys)
        opt_state = self.optimizer.init(eqx.filter(params, eqx.is_array))
        return TrainState(params, opt_state, env_state, jnp.int32(0), key)

    def train_chunk(
        self, state: ImitationState
    ) -> tuple[ImitationState, Mapping[str, Float[Array, ""]]]:
        """Run a chunk of updates."""
        return run_updates(update, self.updates_per_chunk, state, self, training_env())

    def policy_params(self, state: ImitationState) -> HunterNetwork:
        """Return the network."""
        return state.params

    def measure(self, params: HunterNetwork) -> list[Measurement]:
        """Measure how often it predicts H4 on unseen states, and how well it hunts."""
        accuracy, baseline = held_out_accuracy(params)
        share = "share of H4's actions on held-out states"
        captures = "captures in 200 steps by three"
        hunters = {"H5": make_h5(params), "H4": "H4", "H1": "H1"}
        return [
            Measurement.from_values(share, "H5, its likeliest action", accuracy),
            Measurement.from_values(share, "the most common action", baseline),
            *(
                Measurement.from_values(captures, name, count_captures([hunter]))
                for name, hunter in hunters.items()
            ),
        ]


def update(
    config: Imitation, env: AdHocEnv[State], state: ImitationState
) -> tuple[ImitationState, dict[str, Mean]]:
    """Take one step in all environments and one optimiser step on it.

    Args:
        config: The settings.
        env: The environment.
        state: The train state.

    Returns:
        The train state after the update, the loss, and the accuracy of the predictions.
    """
    key, step_key = jax.random.split(state.key)
    step_keys = jax.random.split(step_key, config.num_envs)
    env_state, actions = jax.vmap(partial(_env_step, env))(state.env_state, step_keys)
    (loss, accuracy), gradients = eqx.filter_value_and_grad(_loss_fn, has_aux=True)(
        state.params, state.env_state.game, actions
    )
    params, opt_state = apply_gradients(config.optimizer, state.params, state.opt_state, gradients)
    after = TrainState(params, opt_state, env_state, state.steps + config.num_envs, key)
    return after, {"loss": Mean.of(loss), "accuracy": Mean.of(accuracy)}


def _env_step(
    env: AdHocEnv[State], state: EnvState[State], key: PRNGKeyArray
) -> tuple[EnvState[State], Int[Array, " slot"]]:
    """Take one step in which every hunter is an H4; also return their actions."""
    rng = StepRNG(key)
    # H4 has no memory, so the roster stays as it is.
    actions, _ = env.team.pool.act(rng, env.game, state.roster, state.game, state.arrived)
    after, _ = env.step_all(rng.key(), state, actions)
    return after, actions


def _loss_fn(
    params: HunterNetwork, states: State, actions: Int[Array, "env slot"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the mean cross-entropy of the actions of present hunters, and the accuracy.

    Args:
        params: The network.
        states: The states in which the hunters acted, with a leading env axis.
        actions: What they did.
    """
    logits = jax.vmap(params)(states)
    present = jax.vmap(lambda state: state.present)(states)
    num_present = jnp.sum(present, dtype=jnp.float32)
    log_prob = values_of_actions(jax.nn.log_softmax(logits, axis=-1), actions)
    loss = -masked_sum(present, log_prob) / num_present
    correct = (jnp.argmax(logits, axis=-1) == actions) & present
    return loss, jnp.sum(correct, dtype=jnp.float32) / num_present


def held_out_accuracy(
    params: HunterNetwork, episodes: int = 200, seed: int = 99
) -> tuple[np.ndarray, np.ndarray]:
    """Measure the accuracy in episodes that were not used for training.

    Args:
        params: The network.
        episodes: Number of episodes.
        seed: Seed of the episodes, different from that of training.

    Returns:
        For each episode the share of H4's actions that are the network's likeliest, and the share
        that are the action that is the most common over all episodes.
    """
    keys = jax.random.split(jax.random.key(seed), episodes)
    predicted, actions, present = map(np.asarray, _predict(training_env(), params, keys))
    most_common = np.bincount(actions[present]).argmax()

    def share(correct: np.ndarray) -> np.ndarray:
        return (correct & present).sum(axis=(1, 2)) / present.sum(axis=(1, 2))

    return share(predicted == actions), share(actions == most_common)


@eqx.filter_jit
def _predict(
    env: AdHocEnv[State], params: HunterNetwork, keys: Key[Array, " episode"]
) -> tuple[
    Int[Array, "episode time slot"],
    Int[Array, "episode time slot"],
    Bool[Array, "episode time slot"],
]:
    """Return the predicted and the chosen actions in episodes of H4, and who is present."""

    def episode(key: PRNGKeyArray) -> PyTree:
        reset_key, steps_key = jax.random.split(key)
        first, _ = env.reset(reset_key)

        def step(state: EnvState[State], key: PRNGKeyArray) -> PyTree:
            after, actions = _env_step(env, state, key)
            predicted = jnp.argmax(params(state.game), axis=-1)
            return after, (predicted, actions, state.game.present)

        # The step that ends the episode is left out.
        return jax.lax.scan(step, first, jax.random.split(steps_key, EPISODE_LENGTH - 1))[1]

    return jax.vmap(episode)(keys)
