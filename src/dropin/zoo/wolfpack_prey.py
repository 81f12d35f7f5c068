"""Prey that learn to flee from wolves that learn to hunt them (paper: appendix B.1).

Six networks learn side by side, each for itself, by deep Q-learning: those of two prey, which lose
a point when they are captured, and those of four wolves, which get the rewards of the game. The
wolves are discarded in the end.
"""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin._xla.random import StepRNG
from dropin.games.wolfpack.game import Wolfpack, make_game
from dropin.games.wolfpack.prey import (
    RANDOM_ACTION_PROB,
    LearnedPrey,
    RandomPrey,
    init_networks,
    observe_patches,
    q_values,
)
from dropin.games.wolfpack.state import NUM_ACTIONS, State
from dropin.learners.common import values_of_actions
from dropin.models.layers import MLP
from dropin.teams.pool import select
from dropin.zoo.dqn import DQN, TrainState, epsilon_greedy
from dropin.zoo.recipe import Measurement
from dropin.zoo.wolfpack_captures import count_captures

__all__ = ["FleeingPrey", "Networks", "Transition", "init_wolves", "wolf_features", "wolf_values"]

NUM_WOLVES = 4
HIDDEN_SIZE = 64
CAPTURE_REWARD = -1.0
"""The reward of a prey that is captured, with which its life ends."""


class Transition(eqx.Module):
    """One step of the game."""

    before: State
    after: State
    wolf_action: Int[Array, " wolf"]
    prey_action: Int[Array, " prey"]
    wolf_reward: Float[Array, " wolf"]


class Networks(eqx.Module):
    """All networks that learn; those of prey and wolves have a leading axis for the individual."""

    prey: MLP
    wolves: MLP


@dataclass(frozen=True)
class FleeingPrey(DQN[MLP]):
    """Independent deep Q-learning of two prey and four wolves."""

    name: ClassVar[str] = "wolfpack/prey"
    summary: ClassVar[str] = "two prey that flee from the hunters they see"
    method: ClassVar[str] = "independent deep Q-learning together with four wolves"

    steps: int = 3_200_000
    exploration_steps: int = 1_600_000

    def make_game(self) -> Wolfpack:
        """Return the game with shaped rewards for the wolves; its own prey policy is not used."""
        return make_game("reference", prey_policy=RandomPrey())

    def init_params(self, game: Wolfpack, key: PRNGKeyArray) -> Networks:
        """Initialise the networks of two prey and four wolves."""
        prey_key, wolves_key = jax.random.split(key)
        return Networks(init_networks(prey_key), init_wolves(game, wolves_key))

    def reset(self, game: Wolfpack, key: PRNGKeyArray) -> State:
        """Start an episode of four wolves and two prey."""
        return game.reset(StepRNG(key), jnp.ones(NUM_WOLVES, bool))

    def env_step(
        self,
        game: Wolfpack,
        params: Networks,
        epsilon: Float[Array, ""],
        state: State,
        key: PRNGKeyArray,
    ) -> tuple[State, Transition]:
        """Let all prey and wolves act."""
        rng = StepRNG(key)
        prey = epsilon_greedy(rng, _prey_values(game, params.prey, state), epsilon)
        wolves = epsilon_greedy(rng, wolf_values(params.wolves, state), epsilon)
        after, outcome = game.apply_actions(game.respawn_prey(rng, state), wolves, prey)
        transition = Transition(state, after, wolves, prey, outcome.rewards)
        return select(outcome.truncated, self.reset(game, rng.key()), after), transition

    def td_loss(
        self, game: Wolfpack, params: Networks, target_params: Networks, transition: Transition
    ) -> Float[Array, ""]:
        """Return the sum of the squared TD errors of all prey and wolves.

        A prey's life ends with its capture. The time limit is not an end, so every other next
        state has a value.
        """
        before, after = transition.before, transition.after
        value = values_of_actions(_prey_values(game, params.prey, before), transition.prey_action)
        next_value = jnp.max(_prey_values(game, target_params.prey, after), axis=1)
        target = jnp.where(after.captured, CAPTURE_REWARD, self.discount * next_value)
        # A prey that has just been captured acts from the cell where it reappears, which it had
        # not seen when it chose.
        prey_error = jnp.where(before.captured, 0.0, value - target)

        value = values_of_actions(wolf_values(params.wolves, before), transition.wolf_action)
        next_value = jnp.max(wolf_values(target_params.wolves, after), axis=1)
        wolf_error = value - (transition.wolf_reward + self.discount * next_value)
        return jnp.sum(prey_error**2) + jnp.sum(wolf_error**2)

    def policy_params(self, state: TrainState) -> MLP:
        """Return the networks of the prey."""
        return state.params.prey

    def measure(self, params: MLP) -> list[Measurement]:
        """Measure how often three hunters capture these prey, beside random prey."""
        prey_policies = {
            "learned": LearnedPrey(params, RANDOM_ACTION_PROB),
            "learned, without random actions": LearnedPrey(params),
            "random": RandomPrey(),
        }
        return [
            Measurement.from_values(
                f"captures in 200 steps by three {hunter}",
                name,
                count_captures([hunter], prey_policy=policy),
            )
            for hunter in ("H2", "H4")
            for name, policy in prey_policies.items()
        ]


def init_wolves(game: Wolfpack, key: PRNGKeyArray) -> MLP:
    """Initialise the networks of four wolves, stacked along a leading axis.

    Args:
        game: The game, for the number of prey.
        key: A random key, used for nothing else.
    """
    sizes = [2 * (game.num_prey + NUM_WOLVES), HIDDEN_SIZE, HIDDEN_SIZE, NUM_ACTIONS]
    init = eqx.filter_vmap(lambda key: MLP(sizes, key=key))
    return init(jax.random.split(key, NUM_WOLVES))


def wolf_features(state: State) -> Float[Array, "wolf feature"]:
    """Return what each wolf sees: its own cell, and the offsets of all prey and other wolves."""
    others = np.array([[j for j in range(NUM_WOLVES) if j != i] for i in range(NUM_WOLVES)])
    to_prey = state.prey[None] - state.hunters[:, None]
    to_wolves = state.hunters[others] - state.hunters[:, None]
    rows = jnp.concatenate([state.hunters[:, None], to_prey, to_wolves], axis=1)
    return rows.reshape(NUM_WOLVES, -1).astype(jnp.float32) / 10.0


def wolf_values(networks: MLP, state: State) -> Float[Array, "wolf action"]:
    """Return the action values of each wolf.

    Args:
        networks: The networks of the wolves, stacked along a leading axis.
        state: The state of the game.
    """
    return eqx.filter_vmap(lambda network, row: network(row))(networks, wolf_features(state))


def _prey_values(game: Wolfpack, networks: MLP, state: State) -> Float[Array, "prey action"]:
    """Return the action values of each prey."""
    return q_values(networks, observe_patches(game.size, state))
