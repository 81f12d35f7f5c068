"""Deep Q-learning with a replay buffer (DQN), for the hunters and prey of Wolfpack.

Reference:
    Mnih et al. (2015), Human-level control through deep reinforcement learning, Nature 518. The
    target network follows the weights slowly (Lillicrap et al. 2016, arXiv:1509.02971).
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.random import StepRNG
from dropin.core.metrics import Mean
from dropin.games import wolfpack
from dropin.games.wolfpack.game import Wolfpack
from dropin.games.wolfpack.state import State
from dropin.learners.common import apply_gradients
from dropin.learners.config import LinearSchedule
from dropin.learners.replay import ReplayBuffer
from dropin.zoo.recipe import Params, Recipe, make_once
from dropin.zoo.updates import run_updates

__all__ = ["DQN", "TrainState", "epsilon_greedy", "update"]


class TrainState(eqx.Module):
    """Everything that changes from one update to the next."""

    params: PyTree
    target_params: PyTree
    opt_state: PyTree
    game_state: State
    """With a leading env axis."""
    replay: ReplayBuffer[PyTree]
    """The transitions of the last steps."""
    steps: Int[Array, ""]
    """Environment steps so far, all environments together."""
    key: PRNGKeyArray


@dataclass(frozen=True)
class DQN(Recipe[TrainState, Params]):
    """A recipe that trains by deep Q-learning.

    An update takes one epsilon-greedy step in all environments, one optimiser step on the squared
    TD errors of a batch from the replay buffer, and moves the target network a little.
    """

    game: ClassVar[ModuleType] = wolfpack

    steps: int = 6_400_000
    num_envs: int = 64
    """Parallel environments."""
    batch_size: int = 128
    """Transitions drawn from the replay buffer in an update."""
    learning_rate: float = 5e-4
    """Of Adam."""
    target_update_rate: float = 5e-3
    """How far the target network moves towards the weights in an update."""
    discount: float = 0.97
    """gamma."""
    exploration_steps: int = 3_200_000
    """Environment steps over which epsilon falls from 1 to `final_epsilon`."""
    final_epsilon: float = 0.05
    """Share of random actions after that."""
    replay_rows: int = 1500
    """Most recent steps of all environments that the replay buffer holds."""
    updates_per_chunk: int = 1000
    """Updates between two reports."""

    @abstractmethod
    def make_game(self) -> Wolfpack:
        """Return the game of training."""

    @abstractmethod
    def init_params(self, game: Wolfpack, key: PRNGKeyArray) -> PyTree:
        """Initialise the networks.

        Args:
            game: The game.
            key: A random key for the initial weights.
        """

    @abstractmethod
    def reset(self, game: Wolfpack, key: PRNGKeyArray) -> State:
        """Start an episode in one environment.

        Args:
            game: The game.
            key: A random key, used for nothing else.
        """

    @abstractmethod
    def env_step(
        self,
        game: Wolfpack,
        params: PyTree,
        epsilon: Float[Array, ""],
        state: State,
        key: PRNGKeyArray,
    ) -> tuple[State, PyTree]:
        """Take one step in one environment; a new episode starts after the last step.

        Args:
            game: The game.
            params: The networks.
            epsilon: The probability of a random action.
            state: The state of the game.
            key: A random key, used for nothing else.

        Returns:
            The state afterwards, and the transition to store. The transition has a field `after`,
            the state before a new episode started.
        """

    @abstractmethod
    def td_loss(
        self, game: Wolfpack, params: PyTree, target_params: PyTree, transition: PyTree
    ) -> Float[Array, ""]:
        """Return the squared TD error of one transition.

        Args:
            game: The game.
            params: The networks.
            target_params: The target networks.
            transition: What `env_step` stored.
        """

    def sample(self, replay: ReplayBuffer[PyTree], key: PRNGKeyArray) -> PyTree:
        """Draw a batch from the replay buffer.

        Args:
            replay: The buffer.
            key: A random key, used for nothing else.

        Returns:
            What `td_loss` gets, with a leading axis [batch].
        """
        return replay.sample(key, self.batch_size)

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """Adam over all weights in one array."""
        return optax.flatten(optax.adam(self.learning_rate))

    @property
    def epsilon(self) -> LinearSchedule:
        """The share of random actions."""
        return LinearSchedule(1.0, self.final_epsilon, self.exploration_steps)

    def init(self, seed: int) -> TrainState:
        """Initialise the networks and an empty buffer; start an episode in every environment."""
        key, network_key, reset_key, step_key = jax.random.split(jax.random.key(seed), 4)
        game = _game_of(self)
        params = self.init_params(game, network_key)
        reset_keys = jax.random.split(reset_key, self.num_envs)
        game_state = jax.vmap(partial(self.reset, game))(reset_keys)
        _, transition = eqx.filter_eval_shape(
            _step_all, self, game, params, jnp.float32(1), game_state, step_key
        )
        return TrainState(
            params=params,
            target_params=params,
            opt_state=self.optimizer.init(eqx.filter(params, eqx.is_array)),
            game_state=game_state,
            replay=ReplayBuffer.create(transition, self.replay_rows),
            steps=jnp.int32(0),
            key=key,
        )

    def train_chunk(self, state: TrainState) -> tuple[TrainState, Mapping[str, Float[Array, ""]]]:
        """Run a chunk of updates."""
        state, metrics = run_updates(update, self.updates_per_chunk, state, self, _game_of(self))
        return state, {
            "captures in 200 steps": 200 * metrics["captures"],
            "loss": metrics["loss"],
        }


@make_once
def _game_of(recipe: DQN[PyTree]) -> Wolfpack:
    return recipe.make_game()


def update(
    recipe: DQN[PyTree], game: Wolfpack, state: TrainState
) -> tuple[TrainState, dict[str, Mean]]:
    """Take one step in all environments and one optimiser step on a batch of stored transitions.

    Args:
        recipe: The recipe: its settings, and what a step and an error are.
        game: The game.
        state: The train state.

    Returns:
        The train state after the update, the captures of a step, and the loss.
    """
    key, step_key, sample_key = jax.random.split(state.key, 3)
    epsilon = recipe.epsilon(state.steps)
    game_state, transition = _step_all(
        recipe, game, state.params, epsilon, state.game_state, step_key
    )
    replay = state.replay.add(jax.tree.map(lambda leaf: leaf[None], transition))
    batch = recipe.sample(replay, sample_key)
    loss, gradients = eqx.filter_value_and_grad(_loss_fn)(
        state.params, recipe, game, state.target_params, batch
    )
    params, opt_state = apply_gradients(recipe.optimizer, state.params, state.opt_state, gradients)
    after = TrainState(
        params=params,
        target_params=optax.incremental_update(
            params, state.target_params, recipe.target_update_rate
        ),
        opt_state=opt_state,
        game_state=game_state,
        replay=replay,
        steps=state.steps + recipe.num_envs,
        key=key,
    )
    captures = jnp.mean(jnp.sum(transition.after.captured, axis=1, dtype=jnp.float32))
    return after, {"captures": Mean.of(captures), "loss": Mean.of(loss)}


def _step_all(
    recipe: DQN[PyTree],
    game: Wolfpack,
    params: PyTree,
    epsilon: Float[Array, ""],
    game_state: State,
    key: PRNGKeyArray,
) -> tuple[State, PyTree]:
    """Take one step in all environments."""
    step = partial(recipe.env_step, game, params, epsilon)
    return jax.vmap(step)(game_state, jax.random.split(key, recipe.num_envs))


def _loss_fn(
    params: PyTree, recipe: DQN[PyTree], game: Wolfpack, target_params: PyTree, batch: PyTree
) -> Float[Array, ""]:
    """Return the mean squared TD error of a batch of transitions."""
    td_loss = partial(recipe.td_loss, game, params, target_params)
    return jnp.mean(jax.vmap(td_loss)(batch))


def epsilon_greedy(
    rng: StepRNG, q_values: Float[Array, "agent action"], epsilon: Float[Array, ""]
) -> Int[Array, " agent"]:
    """Return the best action of each agent or, with probability epsilon each, a random one.

    Args:
        rng: Random numbers of this step.
        q_values: The action values of each agent.
        epsilon: The probability of a random action.
    """
    num_agents, num_actions = q_values.shape
    random_actions = rng.integers(0, num_actions - 1, num_agents)
    best = jnp.argmax(q_values, axis=1).astype(jnp.int32)
    return jnp.where(rng.uniform(num_agents) < epsilon, random_actions, best)
