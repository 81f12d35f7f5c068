"""Policies: anything that can act in the learner's place."""

from abc import abstractmethod
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from dropin._xla.random import StepRNG
from dropin.core.errors import unknown
from dropin.core.observation import Observation
from dropin.env import AnyEnv, AnyEnvState
from dropin.teams.pool import Observer, Pool, select
from dropin.teams.types import Type

__all__ = ["RANDOM", "Policy", "RandomPolicy", "TypePolicy", "make_policy"]

RANDOM = "random"
"""The name of the policy that acts at random."""


class Policy(eqx.Module):
    """Chooses the action of slot 0: a pure function of one environment, to be used under `vmap`.

    `observation.arrived` says when memory has to be cleared, so that episodes can follow one
    another without a reset of the policy.
    """

    @abstractmethod
    def init_memory(self, slots: int) -> PyTree:
        """Return the memory at the start of an episode."""

    @abstractmethod
    def act(
        self,
        key: PRNGKeyArray,
        env: AnyEnv,
        state: AnyEnvState,
        observation: Observation,
        memory: PyTree,
    ) -> tuple[Int[Array, ""], PyTree]:
        """Choose an action.

        Args:
            key: A random key, used for nothing else.
            env: The environment, with the parameters of its game.
            state: Its state. Only the policy of a type looks at it.
            observation: What the learner sees.
            memory: What `init_memory` or the last call returned.

        Returns:
            The action, and the memory afterwards.
        """


class RandomPolicy(Policy):
    """Takes every action with the same probability."""

    def init_memory(self, slots: int) -> tuple[()]:
        """Return an empty memory."""
        del slots
        return ()

    def act(
        self,
        key: PRNGKeyArray,
        env: AnyEnv,
        state: AnyEnvState,
        observation: Observation,
        memory: PyTree,
    ) -> tuple[Int[Array, ""], PyTree]:
        """Draw an action."""
        del state, observation
        return jax.random.randint(key, (), 0, len(env.game.actions)), memory


class TypePolicy(Policy):
    """Acts in slot 0 as a teammate of one type would.

    Args:
        type: The type.
        observer: What an agent of this type sees.
    """

    pool: Pool

    def __init__(self, type: Type, observer: Observer) -> None:
        self.pool = Pool([type], observer)

    def init_memory(self, slots: int) -> PyTree:
        """Return the memory of the type."""
        return tuple(each.init_memory(slots) for each in self.pool.types)

    def act(
        self,
        key: PRNGKeyArray,
        env: AnyEnv,
        state: AnyEnvState,
        observation: Observation,
        memory: PyTree,
    ) -> tuple[Int[Array, ""], PyTree]:
        """Act as the type does, with the agent seed of slot 0 in the environment."""
        memory = select(observation.arrived, self.init_memory(observation.arrived.shape[0]), memory)
        roster = replace(state.roster, type=jnp.zeros_like(state.roster.type), memory=memory)
        actions, roster = self.pool.act(StepRNG(key), env.game, roster, state.game, state.arrived)
        return actions[0], roster.memory


def make_policy(env: AnyEnv, name: str) -> Policy:
    """Make a policy for an environment by its name.

    Args:
        env: The environment.
        name: `random`, or a type of the learner's side in the environment's pool.

    Raises:
        InputError: If there is no such type.
    """
    if name == RANDOM:
        return RandomPolicy()
    pool = env.team.pool
    own = {each.name: each for each in pool.types if each.side == env.sides[0]}
    if name not in own:
        raise unknown("type", name, (RANDOM, *own))
    return TypePolicy(own[name], pool.observer)
