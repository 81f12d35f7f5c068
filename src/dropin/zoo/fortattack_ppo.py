"""What the recipes of FortAttack that train by PPO share."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dropin.env import make
from dropin.games import fortattack
from dropin.games.fortattack.learned import FighterNetwork, LearnedFighter
from dropin.games.fortattack.observer import View
from dropin.games.fortattack.state import GUARD, NOTHING, State
from dropin.teams.types import TypeLike, ViewType
from dropin.zoo import ppo
from dropin.zoo.batched_env import BatchedEnv
from dropin.zoo.fortattack_matches import measure_behaviour
from dropin.zoo.recipe import Measurement, Recipe, make_once
from dropin.zoo.recipe import State as RecipeState
from dropin.zoo.updates import run_updates

__all__ = ["SLOTS", "PPORecipe", "TeamRecipe", "idle_type", "training_env"]

SLOTS = 5
"""Slots of each side."""
CONDITIONS = (("paper", 3), ("reference", 3), ("paper", 5), ("reference", 5))
"""The rules and team limits of training, in equal shares."""


def idle_type(name: str, side: int = GUARD) -> ViewType:
    """Return a type that does nothing, for agents whose actions an actor-critic chooses.

    Args:
        name: The name of the type.
        side: Its side.
    """
    return ViewType(name, "", _do_nothing, side=side)


def _do_nothing(view: View) -> Int[Array, ""]:
    del view
    return jnp.int32(NOTHING)


def training_env(types: Sequence[TypeLike], num_envs: int) -> BatchedEnv[State]:
    """Return environments under all rules and team limits; no episode ends with the learner.

    Args:
        types: The types of the agents that do not learn, and an idle one for those that do.
        num_envs: Number of parallel environments.
    """
    envs = [
        make(
            "fortattack",
            rules=rules,
            team_limit=team_limit,
            slots=SLOTS,
            types=types,
            heading_encoding="angle",
            ends_with_learner=False,
        )
        for rules, team_limit in CONDITIONS
    ]
    return BatchedEnv.from_envs(envs, num_envs)


@dataclass(frozen=True)
class PPORecipe(ppo.PPOConfig, Recipe[RecipeState, FighterNetwork]):
    """A recipe that trains by PPO."""

    game: ClassVar[ModuleType] = fortattack
    learning: ClassVar[Sequence[range]]
    """The slots that learn, one range for each actor-critic."""

    updates_per_chunk: int = 4
    """Updates between two reports."""

    @abstractmethod
    def make_env(self) -> BatchedEnv[State]:
        """Return the environments of training."""

    def init_train_state(self, seed: int) -> ppo.PPOState:
        """Return the train state of PPO before the first update."""
        return ppo.init(self, jax.random.key(seed), _env_of(self), self.learning)

    def run_chunk(self, state: ppo.PPOState) -> tuple[ppo.PPOState, Mapping[str, Float[Array, ""]]]:
        """Run a chunk of updates of PPO."""
        return run_updates(ppo.update, self.updates_per_chunk, state, self, _env_of(self))


@make_once
def _env_of(recipe: PPORecipe[Any]) -> BatchedEnv[State]:
    return recipe.make_env()


class TeamRecipe(PPORecipe[ppo.PPOState]):
    """A recipe that trains guards that share one actor-critic, and stores the last policy."""

    learning = (range(SLOTS),)

    def init(self, seed: int) -> ppo.PPOState:
        """Return the train state of PPO before the first update."""
        return self.init_train_state(seed)

    def train_chunk(
        self, state: ppo.PPOState
    ) -> tuple[ppo.PPOState, Mapping[str, Float[Array, ""]]]:
        """Run a chunk of updates of PPO."""
        return self.run_chunk(state)

    def policy_params(self, state: ppo.PPOState) -> FighterNetwork:
        """Return the guards' policy."""
        return ppo.policies(state)[0]

    def measure(self, params: FighterNetwork) -> list[Measurement]:
        """Measure how the guards behave against the attackers of the pool."""
        return measure_behaviour(LearnedFighter(self.name.rpartition("/")[2], "", params))
