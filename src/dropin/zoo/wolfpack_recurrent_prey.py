"""Prey with memory that learn to flee from wolves that learn to hunt them (paper: appendix B.1).

As in `dropin.zoo.wolfpack_prey` six networks learn side by side by deep Q-learning: two prey and
four wolves. The prey have the network of the authors' prey, so they learn from sequences of frames.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.materialize import materialize
from dropin._xla.random import StepRNG
from dropin.games.wolfpack.game import Wolfpack, make_game
from dropin.games.wolfpack.prey import RandomPrey, observe_patches
from dropin.games.wolfpack.recurrent_prey import (
    NUM_FRAMES,
    PreyNetwork,
    RecurrentPrey,
    init_recurrent_networks,
    normalise,
    unstack,
    window_values,
)
from dropin.games.wolfpack.state import NUM_ACTIONS, State
from dropin.learners.common import values_of_actions
from dropin.learners.replay import ReplayBuffer
from dropin.models.layers import MLP
from dropin.teams.pool import select
from dropin.zoo.dqn import DQN, TrainState, epsilon_greedy
from dropin.zoo.recipe import Measurement, make_once
from dropin.zoo.wolfpack_prey import NUM_WOLVES, init_wolves, wolf_values
from dropin.zoo.wolfpack_wolves import Wolves

__all__ = ["RecurrentFleeingPrey", "RecurrentNetworks", "SequenceRow"]


NUM_EXAMPLES, EXAMPLE_STEPS = 512, 20
"""Number of episodes by whose last frames the networks are normalised, and their length."""


class SequenceRow(eqx.Module):
    """One step of the game; the state after it is that of the next row."""

    before: State
    """Without the memory of the prey."""
    after: State
    """Without the memory of the prey."""
    wolf_action: Int[Array, " wolf"]
    prey_action: Int[Array, " prey"]
    wolf_reward: Float[Array, " wolf"]
    prey_reward: Float[Array, " prey"]


class RecurrentNetworks(eqx.Module):
    """All networks that learn; those of prey and wolves have a leading axis for the individual."""

    prey: PreyNetwork
    wolves: MLP


@dataclass(frozen=True)
class RecurrentFleeingPrey(DQN[PreyNetwork]):
    """Independent deep Q-learning of two prey with memory and four wolves."""

    name: ClassVar[str] = "wolfpack/recurrent-prey-training"
    summary: ClassVar[str] = "two prey that flee from the hunters they remember"
    method: ClassVar[str] = "independent deep Q-learning together with four wolves"

    steps: int = 76_800
    exploration_steps: int = 51_200
    final_epsilon: float = 0.1
    num_envs: int = 64
    batch_size: int = 8
    """Sequences drawn from the replay buffer in an update."""
    sequence_length: int = 8
    """Transitions of a sequence."""
    penalty_per_hunter: bool = False
    """Whether a captured prey loses a point for each hunter of the pack, not one in all."""
    head_start: int = 640_000
    """Environment steps in which the wolves learn to hunt prey that act at random."""
    gate_deviation: float = 40.0
    """Standard deviation of what frames add to the gates of the LSTMs at the start."""
    value_deviation: float = 0.5
    """Standard deviation of the prey's action values at the start."""
    lone_penalty: float = 0.1
    """What it costs a wolf to be next to a prey alone."""
    prey_discount: float = 0.9
    """gamma of the prey; that of the wolves is `discount`."""
    ends_at_capture: bool = True
    """Whether a prey's life ends with its capture."""
    replay_rows: int = 3000
    updates_per_chunk: int = 300

    def make_game(self) -> Wolfpack:
        """Return the game with shaped rewards for the wolves; its prey have initial weights."""
        networks = init_recurrent_networks(jax.random.key(0))
        policy = RecurrentPrey(networks)
        return make_game("reference", prey_policy=policy, lone_penalty=self.lone_penalty)

    def init_params(self, game: Wolfpack, key: PRNGKeyArray) -> RecurrentNetworks:
        """Initialise the networks of two prey and four wolves."""
        prey_key, wolves_key = jax.random.split(key)
        networks_key, frames_key = jax.random.split(prey_key)
        prey = normalise(
            init_recurrent_networks(networks_key),
            _example_frames(game, frames_key),
            self.gate_deviation,
            self.value_deviation,
        )
        return RecurrentNetworks(prey, init_wolves(game, wolves_key))

    def init(self, seed: int) -> TrainState:
        """Initialise all networks, and let the wolves learn to hunt prey that act at random."""
        state = super().init(seed)
        wolves = _train_wolves(
            Wolves(
                steps=self.head_start,
                exploration_steps=self.head_start // 2,
                final_epsilon=self.final_epsilon,
                discount=self.discount,
                lone_penalty=self.lone_penalty,
            )
        )
        return eqx.tree_at(
            lambda state: (state.params.wolves, state.target_params.wolves),
            state,
            (wolves.params, wolves.target_params),
        )

    def reset(self, game: Wolfpack, key: PRNGKeyArray) -> State:
        """Start an episode of four wolves and two prey."""
        return game.reset(StepRNG(key), jnp.ones(NUM_WOLVES, bool))

    def env_step(
        self,
        game: Wolfpack,
        params: RecurrentNetworks,
        epsilon: Float[Array, ""],
        state: State,
        key: PRNGKeyArray,
    ) -> tuple[State, SequenceRow]:
        """Let all prey and wolves act."""
        rng = StepRNG(key)
        policy = RecurrentPrey(params.prey)
        prey_values, memory = policy.q_values(game.size, state)
        prey = epsilon_greedy(rng, prey_values, epsilon)
        wolf_epsilon = jnp.float32(self.final_epsilon)
        wolves = epsilon_greedy(rng, wolf_values(params.wolves, state), wolf_epsilon)
        after, outcome = game.apply_actions(game.respawn_prey(rng, state), wolves, prey)
        pack_size = jnp.sum(outcome.events.captured, axis=0, dtype=jnp.float32)
        penalty = pack_size if self.penalty_per_hunter else jnp.minimum(pack_size, 1.0)
        row = SequenceRow(
            before=replace(state, memory=()),
            after=replace(after, memory=()),
            wolf_action=wolves,
            prey_action=prey,
            wolf_reward=outcome.rewards,
            prey_reward=-penalty,
        )
        first = self.reset(eqx.tree_at(lambda game: game.prey_policy, game, policy), rng.key())
        return select(outcome.truncated, first, replace(after, memory=memory)), row

    def sample(self, replay: ReplayBuffer[PyTree], key: PRNGKeyArray) -> SequenceRow:
        """Draw sequences: the frames before the first transition, and the state after the last.

        Args:
            replay: The buffer.
            key: A random key, used for nothing else.
        """
        length = NUM_FRAMES + self.sequence_length
        # Stored once: otherwise frames are read from the buffer again wherever they are used.
        rows = replay.sample_sequences(key, self.batch_size, length)
        return jax.tree.map(materialize, rows)

    def td_loss(
        self,
        game: Wolfpack,
        params: RecurrentNetworks,
        target_params: RecurrentNetworks,
        transition: SequenceRow,
    ) -> Float[Array, ""]:
        """Return the squared TD errors of all prey and wolves, averaged over a sequence.

        Steps with which an episode was cut are left out: the state after them is not in the
        sequence.
        """
        times = transition.before.time
        patches = jax.vmap(lambda state: observe_patches(game.size, state))(transition.before)
        frames = materialize(patches)
        rows = jax.tree.map(lambda leaf: leaf[NUM_FRAMES - 1 :], transition)
        before = jax.tree.map(lambda leaf: leaf[:-1], rows)
        after = jax.tree.map(lambda leaf: leaf[1:], rows.before)
        counts = after.time > 0
        total = jnp.float32(0)
        networks = zip(unstack(params.prey), unstack(target_params.prey), strict=True)
        for prey, (network, target_network) in enumerate(networks):
            values = window_values(network, frames[:, prey], times)[:-1]
            next_values = window_values(target_network, frames[:, prey], times)[1:]
            value = values_of_actions(values, before.prey_action[:, prey])
            goes_on = ~after.captured[:, prey] | (not self.ends_at_capture)
            next_value = jnp.where(goes_on, jnp.max(next_values, axis=1), 0.0)
            error = value - (before.prey_reward[:, prey] + self.prey_discount * next_value)
            # A prey that has just been captured acts from the cell where it reappears, which it
            # had not seen when it chose.
            counts_here = counts & ~before.before.captured[:, prey]
            total = total + jnp.sum(jnp.where(counts_here, error**2, 0.0))
        value = values_of_actions(
            jax.vmap(lambda state: wolf_values(params.wolves, state))(before.before),
            before.wolf_action,
        )
        next_values = jax.vmap(lambda state: wolf_values(target_params.wolves, state))(after)
        error = value - (before.wolf_reward + self.discount * jnp.max(next_values, axis=-1))
        total = total + jnp.sum(jnp.where(counts[:, None], error**2, 0.0))
        return total / self.sequence_length

    def policy_params(self, state: TrainState) -> PreyNetwork:
        """Return the networks of the prey."""
        return state.params.prey

    def measure(self, params: PreyNetwork) -> list[Measurement]:
        """Return nothing: `dropin.zoo.wolfpack_prey_search` measures them."""
        del params
        return []


@make_once
def _train_wolves(recipe: Wolves) -> TrainState:
    """Train wolves; the same ones for all seeds of the prey."""
    state = recipe.init(0)
    while recipe.steps_done(state) < recipe.steps:
        state, _ = recipe.train_chunk(state)
    return state


def _example_frames(game: Wolfpack, key: PRNGKeyArray) -> Float[Array, "n frame input"]:
    """Return sequences of five frames of a prey while all hunters and prey act at random."""
    game = eqx.tree_at(lambda game: game.prey_policy, game, RandomPrey())

    def sequence(key: PRNGKeyArray) -> Float[Array, "frame input"]:
        def step(state: State, key: PRNGKeyArray) -> tuple[State, Float[Array, " input"]]:
            rng = StepRNG(key)
            after, _ = game.step(rng, state, rng.integers(0, NUM_ACTIONS - 1, NUM_WOLVES))
            return after, observe_patches(game.size, state)[0]

        reset_key, steps_key = jax.random.split(key)
        keys = jax.random.split(steps_key, EXAMPLE_STEPS)
        return jax.lax.scan(step, game.reset(StepRNG(reset_key), jnp.ones(NUM_WOLVES, bool)), keys)[
            1
        ][-NUM_FRAMES:]

    return jax.vmap(sequence)(jax.random.split(key, NUM_EXAMPLES))
