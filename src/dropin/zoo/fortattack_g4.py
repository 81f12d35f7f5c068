"""G4 of FortAttack: guards that learn in self-play with attackers.

Both sides learn at the same time, all agents of a side with one actor-critic, under both sets of
rules and with two team limits. The policies of both sides are kept at regular checkpoints. Of the
guards' checkpoints, the one that behaves most like the paper's description of the type is chosen:
guards that spread along the width and shoot only to hit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dropin.core.config import PlainMapping
from dropin.games.fortattack.learned import FighterNetwork, LearnedFighter
from dropin.games.fortattack.state import ATTACKER, GUARD, State
from dropin.zoo import ppo
from dropin.zoo.batched_env import BatchedEnv
from dropin.zoo.fortattack_matches import Matches, measure_behaviour, play_matches
from dropin.zoo.fortattack_ppo import SLOTS, PPORecipe, idle_type, training_env
from dropin.zoo.recipe import Measurement

__all__ = ["CheckpointedState", "SelfPlay", "selection_score"]


class CheckpointedState(eqx.Module):
    """The train state, and the policies of both sides at every checkpoint."""

    train_state: ppo.PPOState
    checkpoints: tuple[FighterNetwork, ...]
    """The policies of guards and of attackers, with a leading checkpoint axis. Checkpoint 0 is
    before training; those that have not been reached hold the same."""

    @property
    def steps(self) -> Int[Array, ""]:
        """Environment steps so far."""
        return self.train_state.steps


@dataclass(frozen=True)
class SelfPlay(PPORecipe[CheckpointedState]):
    """PPO of guards and attackers at the same time."""

    name: ClassVar[str] = "fortattack/G4"
    summary: ClassVar[str] = "guards that spread out and shoot to hit"
    method: ClassVar[str] = (
        "PPO in self-play, both sides at once; the checkpoint chosen by behaviour"
    )
    learning: ClassVar[tuple[range, ...]] = (range(SLOTS), range(SLOTS, 2 * SLOTS))

    steps: int = 4_000_000
    num_checkpoints: int = 20
    """Number of checkpoints after the initial weights."""

    def make_env(self) -> BatchedEnv[State]:
        """Return environments in which nobody acts by a type."""
        types = [idle_type("guard", GUARD), idle_type("attacker", ATTACKER)]
        return training_env(types, self.num_envs)

    def init(self, seed: int) -> CheckpointedState:
        """Return the train state of PPO with an actor-critic for each side."""
        train_state = self.init_train_state(seed)
        copies = self.num_checkpoints + 1
        return CheckpointedState(
            train_state,
            jax.tree.map(lambda leaf: jnp.stack([leaf] * copies), ppo.policies(train_state)),
        )

    def train_chunk(
        self, state: CheckpointedState
    ) -> tuple[CheckpointedState, Mapping[str, Float[Array, ""]]]:
        """Run a chunk of updates of PPO; store the policies when a checkpoint has been reached."""
        train_state, metrics = self.run_chunk(state.train_state)
        steps_per_checkpoint = -(-self.steps // self.num_checkpoints)
        number = min(int(train_state.steps) // steps_per_checkpoint, self.num_checkpoints)
        if int(train_state.steps) >= self.steps:
            number = self.num_checkpoints
        checkpoints = state.checkpoints
        if number != int(state.steps) // steps_per_checkpoint:
            checkpoints = jax.tree.map(
                lambda stored, new: stored.at[number].set(new),
                checkpoints,
                ppo.policies(train_state),
            )
        return CheckpointedState(train_state, checkpoints), metrics

    def policy_params(self, state: CheckpointedState) -> FighterNetwork:
        """Return the guards of the checkpoint with the highest `selection_score`."""
        scores = [
            selection_score(self.play_checkpoint(state, number))
            for number in range(self.num_checkpoints + 1)
        ]
        return _checkpoint(state.checkpoints[0], int(np.argmax(scores)))

    def play_checkpoint(self, state: CheckpointedState, number: int) -> Matches:
        """Play the guards of a checkpoint against the last attackers.

        Args:
            state: The train state, with its checkpoints.
            number: The number of the checkpoint.
        """
        guards, attackers = state.checkpoints
        return play_matches(
            LearnedFighter("guards", "", _checkpoint(guards, number)),
            LearnedFighter("attackers", "", _checkpoint(attackers, -1), side=ATTACKER),
        )

    def extra_files(self, state: CheckpointedState) -> PlainMapping:
        """Return the policies of all checkpoints."""
        return {"checkpoints": state.checkpoints}

    def measure(self, params: FighterNetwork) -> list[Measurement]:
        """Measure how the guards behave against the attackers of the pool."""
        return measure_behaviour(LearnedFighter("G4", "", params))


def selection_score(matches: Matches) -> float:
    """Return how well guards fit the description of G4, between 0 and 1.

    It is the product of the share of forts that hold, the mean spread and the mean shooting
    accuracy.
    """
    guards = matches.guards
    parts = (1 - matches.fort_fell, guards.spread, guards.shooting_accuracy)
    return float(np.prod([np.nanmean(part) for part in parts]))


def _checkpoint(policies: FighterNetwork, number: int) -> FighterNetwork:
    return jax.tree.map(lambda leaf: leaf[number], policies)
