"""Players: whoever can play in the learner's place."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from dropin.adhoc import AdHoc, EnvState, Observation
from dropin.dice import Dice
from dropin.errors import unknown
from dropin.teams.pool import Pool, select

RANDOM = "random"


class Player(eqx.Module):
    """Chooses the action of slot 0. A pure function of one environment: `vmap` it.

    `seen.arrived` says when to forget, so that episodes can follow one another.
    """

    @abstractmethod
    def start(self, slots: int) -> Any:
        """The memory at the start of an episode."""

    @abstractmethod
    def act(
        self, key: PRNGKeyArray, state: EnvState, seen: Observation, memory: Any
    ) -> tuple[Int[Array, ""], Any]:
        """An action, and the memory afterwards. Only a type looks at the state."""


class RandomPlayer(Player):
    """Every action with the same chance."""

    actions: int = eqx.field(static=True)

    def start(self, slots: int) -> tuple[()]:
        """Nothing to remember."""
        del slots
        return ()

    def act(
        self, key: PRNGKeyArray, state: EnvState, seen: Observation, memory: Any
    ) -> tuple[Int[Array, ""], Any]:
        """Any action."""
        del state, seen
        return jax.random.randint(key, (), 0, self.actions), memory


class TypePlayer(Player):
    """Acts as a teammate of the only type in its pool would in slot 0."""

    pool: Pool

    def start(self, slots: int) -> Any:
        """The type's memory."""
        return tuple(each.start(slots) for each in self.pool.types)

    def act(
        self, key: PRNGKeyArray, state: EnvState, seen: Observation, memory: Any
    ) -> tuple[Int[Array, ""], Any]:
        """What the type does; its character stays what it was at the start of the episode."""
        memory = select(seen.arrived, self.start(seen.arrived.shape[0]), memory)
        cast = replace(state.cast, type=jnp.zeros_like(state.cast.type), memory=memory)
        actions, cast = self.pool.act(Dice(key), cast, state.game, state.arrived)
        return actions[0], cast.memory


def player(env: AdHoc, name: str) -> Player:
    """`random`, or a type of the learner's side in the environment's pool by its name."""
    if name == RANDOM:
        return RandomPlayer(len(env.game.actions))
    pool = env.team.pool
    own = {each.name: each for each in pool.types if each.side == env.sides[0]}
    if name not in own:
        raise unknown("type", name, (RANDOM, *own))
    return TypePlayer(Pool([own[name]], pool.look))
