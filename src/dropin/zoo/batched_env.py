"""Parallel environments whose parameters differ."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key, PRNGKeyArray, PyTree

from dropin._xla.random import StepRNG
from dropin.core.observation import TimeStep
from dropin.env import AdHocEnv, EnvState
from dropin.games.base import Game, GameState
from dropin.zoo.episodes import act_by_types

__all__ = ["BatchedEnv"]

State = TypeVar("State", bound=GameState)
Result = TypeVar("Result")


class BatchedEnv(eqx.Module, Generic[State]):
    """Parallel environments with different parameters of the game and different team limits.

    Pool, openness and all shapes are the same in all of them.
    """

    env: AdHocEnv[State]
    """One of the environments; only its pool, openness and shapes are used."""
    games: Game[State]
    """The game of each environment: its arrays have a leading env axis."""
    team_limits: Int[Array, " env"]

    @classmethod
    def from_envs(cls, envs: Sequence[AdHocEnv[State]], num_envs: int) -> "BatchedEnv[State]":
        """Return `num_envs` environments, by taking the given ones in turn.

        Args:
            envs: Environments with the same shapes. Pool and openness are those of the first.
            num_envs: Number of parallel environments.
        """
        batch = [envs[index % len(envs)] for index in range(num_envs)]
        games = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[each.game for each in batch])
        return cls(envs[0], games, jnp.stack([each.team.limit for each in batch]))

    @property
    def num_envs(self) -> int:
        """Number of parallel environments."""
        return len(self.team_limits)

    @property
    def sides(self) -> tuple[int, ...]:
        """The side of every slot."""
        return self.env.sides

    def vmap(self, function: Callable[..., Result], *arrays: PyTree) -> Result:
        """Apply `function(env, *arrays)` to each environment.

        Args:
            function: A function of one environment.
            *arrays: Pytrees with a leading env axis.
        """

        def call(game: Game[State], limit: Int[Array, ""], *rows: PyTree) -> Result:
            env = eqx.tree_at(lambda env: (env.game, env.team.limit), self.env, (game, limit))
            return function(env, *rows)

        return jax.vmap(call)(self.games, self.team_limits, *arrays)

    def reset(self, key: PRNGKeyArray) -> EnvState[State]:
        """Start an episode in every environment."""
        return self.vmap(lambda env, key: env.reset(key)[0], self._split(key))

    def step(
        self, key: PRNGKeyArray, state: EnvState[State], actions: Int[Array, "env slot"]
    ) -> tuple[EnvState[State], TimeStep]:
        """Take the actions of all agents in every environment.

        Args:
            key: A random key, used for nothing else.
            state: The states, with a leading env axis.
            actions: The action of each slot in each environment.
        """
        return self.vmap(AdHocEnv.step_all, self._split(key), state, actions)

    def act_by_types(
        self, key: PRNGKeyArray, state: EnvState[State]
    ) -> tuple[Int[Array, "env slot"], EnvState[State]]:
        """Let types choose all actions, see `dropin.zoo.episodes.act_by_types`.

        Args:
            key: A random key, used for nothing else.
            state: The states, with a leading env axis.
        """
        return self.vmap(act_by_types, state, self._split(key))

    def views(self, key: PRNGKeyArray, state: EnvState[State]) -> PyTree:
        """Return what every agent sees, a pytree with leading axes [env, slot].

        Args:
            key: A random key, used for nothing else.
            state: The states, with a leading env axis.
        """

        def look(env: AdHocEnv[State], key: PRNGKeyArray, state: EnvState[State]) -> PyTree:
            observer = env.team.pool.observer
            return observer(env.game, StepRNG(key), state.game, state.roster.agent_seed)

        return self.vmap(look, self._split(key), state)

    def _split(self, key: PRNGKeyArray) -> Key[Array, " env"]:
        return jax.random.split(key, self.num_envs)
