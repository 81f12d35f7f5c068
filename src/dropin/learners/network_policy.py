"""The policy of a learner's networks, with or without training around it."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin._xla.random import categorical, split
from dropin.core.observation import Interface, Observation
from dropin.learners.base import LearnerNetwork, Memory, Prediction

__all__ = ["NetworkPolicy"]


class NetworkPolicy(eqx.Module):
    """The policy of a learner's networks."""

    network: LearnerNetwork[Any, Any]
    temperature: Float[Array, ""]
    """Of the Boltzmann policy, where there is one."""

    @property
    def interface(self) -> Interface:
        """The features and actions that it was trained for."""
        return self.network.interface

    @property
    def modes(self) -> Sequence[str]:
        """How it can choose actions."""
        return ("greedy", "sampled") if self.network.config.is_boltzmann else ("greedy",)

    def init_memory(self, slots: int) -> Memory:
        """Return the memory at the start of an episode."""
        return self.network.init_memory(slots)

    def act(
        self, key: PRNGKeyArray, observation: Observation, memory: Memory, mode: str = "greedy"
    ) -> tuple[Int[Array, ""], Memory]:
        """Choose an action.

        Args:
            key: A random key, used for nothing else.
            observation: What the learner sees.
            memory: What `init_memory` or the last call returned.
            mode: `greedy` or `sampled`.

        Returns:
            The action, and the memory afterwards.
        """
        action, _, memory = self.act_with_prediction(key, observation, memory, mode)
        return action, memory

    def act_with_prediction(
        self, key: PRNGKeyArray, observation: Observation, memory: Memory, mode: str = "greedy"
    ) -> tuple[Int[Array, ""], Prediction, Memory]:
        """Choose an action as `act` does; also return the prediction behind it.

        Args:
            key: A random key, used for nothing else.
            observation: What the learner observes.
            memory: The memory after the previous observation.
            mode: `greedy` or `sampled`.
        """
        arriving, thinking, acting = split(key, 3)
        memory = self.network.on_arrival(memory, observation, arriving)
        prediction, memory = self.network(memory, observation, thinking)
        if mode == "greedy":
            return jnp.argmax(prediction.q_values).astype(jnp.int32), prediction, memory
        sampled = categorical(acting, prediction.q_values / self.temperature)
        return sampled.astype(jnp.int32), prediction, memory
