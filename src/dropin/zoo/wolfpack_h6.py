"""H6 of Wolfpack: a relational network that learns to hunt by deep Q-learning.

One network plays for the whole team: the action values of a hunter come from its own node, and
each hunter learns from its own reward. The size of the team, two to five hunters, is drawn for each
episode.
"""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin._xla.random import StepRNG
from dropin.games.wolfpack.game import Wolfpack, make_game
from dropin.games.wolfpack.learned import HunterNetwork, make_h6
from dropin.games.wolfpack.prey import learned_prey
from dropin.games.wolfpack.state import State
from dropin.learners.common import values_of_actions
from dropin.teams.pool import select
from dropin.zoo.dqn import DQN, TrainState, epsilon_greedy
from dropin.zoo.recipe import Measurement
from dropin.zoo.wolfpack_captures import count_captures

__all__ = ["RelationalHunter", "Transition"]

MIN_HUNTERS, MAX_HUNTERS = 2, 5


class Transition(eqx.Module):
    """One step of the game."""

    before: State
    after: State
    action: Int[Array, " slot"]
    reward: Float[Array, " slot"]


@dataclass(frozen=True)
class RelationalHunter(DQN[HunterNetwork]):
    """Deep Q-learning of one network for all hunters."""

    name: ClassVar[str] = "wolfpack/H6"
    summary: ClassVar[str] = "a hunter that learned from rewards"
    method: ClassVar[str] = "deep Q-learning of one relational network for teams of two to five"

    def make_game(self) -> Wolfpack:
        """Return the game with the prey of the zoo that have no memory, and shaped rewards."""
        return make_game("reference", prey_policy=learned_prey())

    def init_params(self, game: Wolfpack, key: PRNGKeyArray) -> HunterNetwork:
        """Initialise the network of all hunters."""
        del game
        return HunterNetwork(key)

    def reset(self, game: Wolfpack, key: PRNGKeyArray) -> State:
        """Start an episode of two to five hunters."""
        rng = StepRNG(key)
        return game.reset(rng, jnp.arange(MAX_HUNTERS) < rng.integers(MIN_HUNTERS, MAX_HUNTERS))

    def env_step(
        self,
        game: Wolfpack,
        params: HunterNetwork,
        epsilon: Float[Array, ""],
        state: State,
        key: PRNGKeyArray,
    ) -> tuple[State, Transition]:
        """Let all hunters act."""
        rng = StepRNG(key)
        actions = epsilon_greedy(rng, params(state), epsilon)
        after, outcome = game.step(rng, state, actions)
        transition = Transition(state, after, actions, outcome.rewards)
        return select(outcome.truncated, self.reset(game, rng.key()), after), transition

    def td_loss(
        self,
        game: Wolfpack,
        params: HunterNetwork,
        target_params: HunterNetwork,
        transition: Transition,
    ) -> Float[Array, ""]:
        """Return the squared TD error, averaged over the hunters that are present.

        Episodes have no end but a time limit, so every next state has a value.
        """
        del game
        value = values_of_actions(params(transition.before), transition.action)
        next_value = jnp.max(target_params(transition.after), axis=1)
        target = transition.reward + self.discount * next_value
        present = transition.before.present
        error = jnp.where(present, value - target, 0.0)
        return jnp.sum(error**2) / jnp.sum(present, dtype=jnp.float32)

    def policy_params(self, state: TrainState) -> HunterNetwork:
        """Return the network."""
        return state.params

    def measure(self, params: HunterNetwork) -> list[Measurement]:
        """Measure how often three hunters capture a prey, beside other types."""
        hunters = {"H6": make_h6(params), "H1": "H1", "H2": "H2", "H4": "H4"}
        return [
            Measurement.from_values(
                "captures in 200 steps by three", name, count_captures([hunter])
            )
            for name, hunter in hunters.items()
        ]
