"""Wolves that learn to hunt prey that act at random: the head start of those in other recipes."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin._xla.random import StepRNG
from dropin.games.wolfpack.game import Wolfpack, make_game
from dropin.games.wolfpack.prey import RandomPrey
from dropin.games.wolfpack.state import State
from dropin.learners.common import values_of_actions
from dropin.models.layers import MLP
from dropin.teams.pool import select
from dropin.zoo.dqn import DQN, TrainState, epsilon_greedy
from dropin.zoo.recipe import Measurement
from dropin.zoo.wolfpack_prey import NUM_WOLVES, init_wolves, wolf_values

__all__ = ["Wolves", "WolvesTransition"]


class WolvesTransition(eqx.Module):
    """One step of the game."""

    before: State
    after: State
    action: Int[Array, " wolf"]
    reward: Float[Array, " wolf"]


@dataclass(frozen=True)
class Wolves(DQN[MLP]):
    """Independent deep Q-learning of four wolves; the prey act at random and do not learn."""

    name: ClassVar[str] = "wolfpack/wolves"
    summary: ClassVar[str] = "four wolves that hunt prey that act at random"
    method: ClassVar[str] = "independent deep Q-learning"

    steps: int = 640_000
    exploration_steps: int = 320_000
    final_epsilon: float = 0.1
    lone_penalty: float = 0.1
    """What it costs a wolf to be next to a prey alone."""

    def make_game(self) -> Wolfpack:
        """Return the game with shaped rewards and prey that act at random."""
        return make_game("reference", prey_policy=RandomPrey(), lone_penalty=self.lone_penalty)

    def init_params(self, game: Wolfpack, key: PRNGKeyArray) -> MLP:
        """Initialise the networks of four wolves."""
        return init_wolves(game, key)

    def reset(self, game: Wolfpack, key: PRNGKeyArray) -> State:
        """Start an episode of four wolves and two prey."""
        return game.reset(StepRNG(key), jnp.ones(NUM_WOLVES, bool))

    def env_step(
        self,
        game: Wolfpack,
        params: MLP,
        epsilon: Float[Array, ""],
        state: State,
        key: PRNGKeyArray,
    ) -> tuple[State, WolvesTransition]:
        """Let all wolves act."""
        rng = StepRNG(key)
        actions = epsilon_greedy(rng, wolf_values(params, state), epsilon)
        after, outcome = game.step(rng, state, actions)
        transition = WolvesTransition(state, after, actions, outcome.rewards)
        return select(outcome.truncated, self.reset(game, rng.key()), after), transition

    def td_loss(
        self, game: Wolfpack, params: MLP, target_params: MLP, transition: WolvesTransition
    ) -> Float[Array, ""]:
        """Return the sum of the squared TD errors of all wolves."""
        del game
        value = values_of_actions(wolf_values(params, transition.before), transition.action)
        next_value = jnp.max(wolf_values(target_params, transition.after), axis=1)
        return jnp.sum((value - (transition.reward + self.discount * next_value)) ** 2)

    def policy_params(self, state: TrainState) -> MLP:
        """Return the networks of the wolves."""
        return state.params

    def measure(self, params: MLP) -> list[Measurement]:
        """Return nothing: the wolves are not stored."""
        del params
        return []
