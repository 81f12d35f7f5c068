"""What learners have in common whose policy is a `LearnerNetwork` trained with a target network.

A learning algorithm adds two things: what its train state holds besides, and how it computes the
gradients of an update.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.random import subkeys
from dropin.core.arrays import as_float
from dropin.core.metrics import Metric, Snapshot
from dropin.core.observation import Interface, Observation, TimeStep
from dropin.env import AnyEnv, AnyEnvState
from dropin.learners.base import LearnerNetwork, Memory
from dropin.learners.common import (
    EnvCarry,
    EpisodeReturns,
    apply_gradients,
    episode_metrics,
    reset_envs,
    update_target,
)
from dropin.learners.config import LearnerConfig, TrainConfig
from dropin.learners.network_policy import NetworkPolicy

__all__ = ["AnyNetwork", "NetworkLearner", "TrainState"]

AnyNetwork = LearnerNetwork[Any, Any]
Config = TypeVar("Config", bound=LearnerConfig)
State = TypeVar("State", bound="TrainState")


class TrainState(eqx.Module):
    """What changes between two updates."""

    network: AnyNetwork
    target: PyTree
    """A slow copy of the networks, or of those of them that targets are computed with."""
    opt_state: PyTree
    env: AnyEnvState
    observation: Observation
    memory: Memory
    running: EpisodeReturns
    updates: Int[Array, ""]
    key: PRNGKeyArray

    @property
    def carry(self) -> EnvCarry:
        """All environments before the next step."""
        return self.env, self.observation, self.memory


@dataclass(frozen=True)
class NetworkLearner(Generic[Config]):
    """A learning algorithm with its settings: see `dropin.core.specs.Learner`."""

    make_network: Callable[..., LearnerNetwork[Any, Config]]
    """`(interface, config, *, key) -> networks`."""
    config: Config
    training: TrainConfig

    def init(self, key: PRNGKeyArray, env: AnyEnv) -> PyTree:
        """Return the train state before the first update."""
        network_key, state_key = subkeys(key)
        network = self.make_network(env.interface, self.config, key=network_key)
        return self.init_with(network, state_key, env)

    @eqx.filter_jit
    def init_with(self, network: AnyNetwork, key: PRNGKeyArray, env: AnyEnv) -> PyTree:
        """Return the train state before the first update of given networks.

        Args:
            network: The networks.
            key: A random key, used for nothing else.
            env: The environment.
        """
        key, reset_key = subkeys(key)
        num_envs = self.training.num_envs
        states, observation, memory = reset_envs(env, network, num_envs, reset_key)
        state = TrainState(
            network=network,
            target=self.target_of(network),
            opt_state=self.training.optimizer.init(eqx.filter(network, eqx.is_array)),
            env=states,
            observation=observation,
            memory=memory,
            running=EpisodeReturns.zeros(num_envs),
            updates=jnp.int32(0),
            key=key,
        )
        return self.extend(state)

    @abstractmethod
    def target_of(self, network: AnyNetwork) -> PyTree:
        """Return the networks that the target is a slow copy of."""

    @abstractmethod
    def extend(self, state: TrainState) -> PyTree:
        """Add to a new train state what only this algorithm keeps."""

    def policy(self, state: TrainState) -> NetworkPolicy:
        """Return the policy that has been learned so far."""
        temperature = as_float(1)
        if self.config.anneals_temperature:
            temperature = self.exploration(state.updates)[1]
        return NetworkPolicy(state.network, temperature)

    def policy_template(self, interface: Interface) -> NetworkPolicy:
        """Return a policy of the right shapes with any weights."""
        # Tracing this generator, whose numbers nobody uses, takes a tenth of the time.
        key = jax.random.key(0, impl="unsafe_rbg")
        return NetworkPolicy(self.make_network(interface, self.config, key=key), as_float(1))

    @eqx.filter_jit  # One program instead of several if it is called on its own.
    def exploration(self, updates: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Return epsilon and the temperature after this many updates."""
        step = updates * self.training.steps_per_update
        return self.training.epsilon(step), self.training.temperature(step)

    def next_state(
        self,
        env: AnyEnv,
        state: State,
        gradients: PyTree,
        carry: EnvCarry,
        steps: TimeStep,
        key: PRNGKeyArray,
        **own: PyTree,
    ) -> tuple[State, dict[str, Metric]]:
        """Take one optimiser step and move the target.

        Args:
            env: The environment.
            state: The train state before the update.
            gradients: Gradients with the structure of the networks.
            carry: The environments after the rollout.
            steps: The steps of the rollout, with leading axes [time, env].
            key: The random key of the next update.
            **own: New values of what only this algorithm keeps.

        Returns:
            The train state after the update, and the metrics that do not depend on the algorithm.
        """
        network, opt_state = apply_gradients(
            self.training.optimizer, state.network, state.opt_state, gradients
        )
        running, metrics = episode_metrics(env, state.running, steps)
        epsilon, temperature = self.exploration(state.updates)
        metrics |= {"epsilon": Snapshot.of(epsilon), "temperature": Snapshot.of(temperature)}
        rate = self.training.target_update_rate
        env_state, observation, memory = carry
        following = replace(
            state,
            network=network,
            target=update_target(self.target_of(network), state.target, rate),
            opt_state=opt_state,
            env=env_state,
            observation=observation,
            memory=memory,
            running=running,
            updates=state.updates + 1,
            key=key,
            **own,
        )
        return following, metrics
