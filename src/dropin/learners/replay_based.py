"""Joint off-policy learning from a replay buffer (paper: section 5.2, "MARL baselines").

In training all agents of the learner's side are controlled, use the same weights and get their own
reward of the game. An update takes a few steps in all environments and stores them; then one step
of Adam on transitions sampled from the buffer, and the target moves slowly towards the new weights.
Afterwards one of the agents is taken as the learner.
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar, cast, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.random import split
from dropin.core.metrics import Mean, Metric
from dropin.core.observation import Observation, TimeStep
from dropin.env import AnyEnv
from dropin.learners.base import LearnerInput, Memory
from dropin.learners.common import (
    EnvCarry,
    epsilon_greedy,
)
from dropin.learners.config import LearnerConfig
from dropin.learners.network_learner import AnyNetwork, NetworkLearner, TrainState
from dropin.learners.replay import ReplayBuffer

__all__ = [
    "LossTerms",
    "ReplayConfig",
    "ReplayLearner",
    "ReplayTrainState",
    "Transition",
    "epsilon_greedy_all",
    "num_controlled",
    "td_targets",
]


@dataclass(frozen=True, kw_only=True)
class ReplayConfig(LearnerConfig):
    """Settings of a learner with a replay buffer."""

    replay_capacity: int
    """Number of transitions that are kept: the newest ones of all parallel environments."""
    batch_size: int
    """Number of transitions sampled at every update."""


class Transition(eqx.Module):
    """A step of one environment for the controlled agents, who have the first slots."""

    inputs: LearnerInput
    actions: Int[Array, "*n controlled"]
    rewards: Float[Array, "*n controlled"]
    done: Bool[Array, "*n controlled"]
    """For which agents nothing follows: the episode ended, or the game removed them."""
    episode_done: Bool[Array, "*n"]
    """Whether the episode ended; then `next_inputs` is of the next one."""
    next_inputs: LearnerInput

    @property
    def has_target(self) -> Bool[Array, " controlled"]:
        """Which agents have a target: those that acted, and then were done or are still there.

        Nothing is known of the future of agents that left by openness.
        """
        number = self.actions.shape[-1]
        now, later = self.inputs.observation, self.next_inputs.observation
        stayed = (later.present & ~later.arrived)[:number]
        return now.present[:number] & (self.done | stayed)


class LossTerms(eqx.Module):
    """Sums over the controlled agents of one transition, and the numbers they are means over."""

    value: Float[Array, "*n"]
    """Squared errors of values."""
    value_count: Float[Array, "*n"]
    auxiliary: Float[Array, "*n"]
    """What the learner minimises besides."""
    auxiliary_count: Float[Array, "*n"]

    @property
    def means(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The value loss and the auxiliary loss of a batch."""
        return (
            jnp.sum(self.value) / jnp.maximum(jnp.sum(self.value_count), 1.0),
            jnp.sum(self.auxiliary) / jnp.maximum(jnp.sum(self.auxiliary_count), 1.0),
        )


@runtime_checkable
class JointNetwork(Protocol):
    """Networks that can act for all controlled agents and be trained from transitions."""

    def on_arrival(self, memory: Memory, observation: Observation, key: PRNGKeyArray) -> Memory:
        """Update the memory for agents that have just arrived."""
        ...

    def act_all(
        self, memory: Memory, observation: Observation, epsilon: Float[Array, ""], key: PRNGKeyArray
    ) -> Int[Array, " controlled"]:
        """Return the actions of all controlled agents, with exploration."""
        ...

    def loss_terms(self, target: PyTree, transition: Transition, key: PRNGKeyArray) -> LossTerms:
        """Return the loss of a transition, given the target networks."""
        ...


class StoredStep(eqx.Module):
    """What the buffer keeps of a step.

    The input before a step is `next_inputs` of the step before it, in the row above, so that every
    observation is stored once.
    """

    actions: Int[Array, "*n controlled"]
    rewards: Float[Array, "*n controlled"]
    removed: Bool[Array, "*n controlled"]
    """Which agents the game removed."""
    episode_done: Bool[Array, "*n"]
    next_inputs: LearnerInput
    """What was observed after the step; at the end of an episode, the first of the next one."""


class ReplayTrainState(TrainState):
    """What changes between two updates of a replay-based learner; the target has all networks."""

    replay: ReplayBuffer[StoredStep]


Config = TypeVar("Config", bound=ReplayConfig)


class ReplayLearner(NetworkLearner[Config]):
    """A joint, replay-based learning algorithm; its networks are a `JointNetwork`."""

    def target_of(self, network: AnyNetwork) -> AnyNetwork:
        """Return all networks."""
        return network

    def extend(self, state: TrainState) -> ReplayTrainState:
        """Add an empty buffer."""
        num_envs, rollout_length = self.training.num_envs, self.training.rollout_length
        zeros = jnp.zeros((num_envs, num_controlled(state.observation)))
        first = StoredStep(
            actions=zeros.astype(jnp.int32),
            rewards=zeros,
            removed=zeros.astype(bool),
            episode_done=jnp.zeros(num_envs, bool),
            next_inputs=LearnerInput(state.observation, positions=state.memory.positions),
        )
        blocks = -(-self.config.replay_capacity // self.training.steps_per_update)
        replay = ReplayBuffer.create(first, blocks * rollout_length, spare_rows=rollout_length)
        return ReplayTrainState(**vars(state), replay=replay)

    def update(
        self, env: AnyEnv, state: ReplayTrainState
    ) -> tuple[ReplayTrainState, dict[str, Metric]]:
        """Take a few steps in all environments, then one optimiser step on sampled transitions.

        Args:
            env: The environment.
            state: The train state.

        Returns:
            The train state afterwards, and the metrics of the update.
        """
        key, rollout_key, sample_key, loss_key = split(state.key, 4)
        carry, stored, steps = self.collect_rollout(env, state, rollout_key)
        replay = state.replay.add(stored)
        batch = sample_transitions(replay, sample_key, self.config.batch_size)
        gradients, (value_loss, auxiliary_loss) = eqx.filter_grad(self.batch_loss, has_aux=True)(
            state.network, state.target, batch, loss_key
        )
        losses = {"value_loss": Mean.of(value_loss), "auxiliary_loss": Mean.of(auxiliary_loss)}
        state, metrics = self.next_state(env, state, gradients, carry, steps, key, replay=replay)
        return state, metrics | losses

    def collect_rollout(
        self, env: AnyEnv, state: ReplayTrainState, key: PRNGKeyArray
    ) -> tuple[EnvCarry, StoredStep, TimeStep]:
        """Take `rollout_length` steps in all environments.

        Args:
            env: The environment.
            state: The train state.
            key: A random key, used for nothing else.

        Returns:
            The environments afterwards, what to store, and the steps; the last two have leading
            axes [time, env].
        """
        network = cast(JointNetwork, state.network)
        epsilon, _ = self.exploration(state.updates)

        def env_step(
            carry: EnvCarry, key: PRNGKeyArray
        ) -> tuple[EnvCarry, tuple[StoredStep, TimeStep]]:
            states, observation, memory = carry
            arriving, acting, stepping = split(key, (3, self.training.num_envs))
            act = jax.vmap(network.act_all, in_axes=(0, 0, None, 0))
            actions = act(memory, observation, epsilon, acting)
            states, step = jax.vmap(env.step_all)(stepping, states, actions)
            number, observation = actions.shape[1], step.observation
            memory = jax.vmap(network.on_arrival)(memory, observation, arriving)
            stored = StoredStep(
                actions=actions,
                rewards=step.rewards[:, :number],
                removed=step.removed[:, :number],
                episode_done=step.done,
                next_inputs=LearnerInput(observation, positions=memory.positions),
            )
            return (states, observation, memory), (stored, step)

        keys = split(key, self.training.rollout_length)
        carry, (stored, steps) = jax.lax.scan(env_step, state.carry, keys)
        return carry, stored, steps

    def batch_loss(
        self, network: PyTree, target: PyTree, batch: Transition, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], tuple[Float[Array, ""], Float[Array, ""]]]:
        """Return the loss of a batch of transitions, and its two parts.

        Args:
            network: The networks, with respect to which the loss is differentiated.
            target: The target networks.
            batch: Transitions, with a leading axis [batch].
            key: A random key, used for nothing else.
        """
        keys = split(key, len(batch.episode_done))
        terms = jax.vmap(network.loss_terms, in_axes=(None, 0, 0))(target, batch, keys)
        value_loss, auxiliary_loss = terms.means
        return value_loss + auxiliary_loss, (value_loss, auxiliary_loss)


def sample_transitions(
    replay: ReplayBuffer[StoredStep], key: PRNGKeyArray, batch_size: int
) -> Transition:
    """Sample transitions uniformly; the input before a step is in the row above it.

    Args:
        replay: The buffer.
        key: A random key, used for nothing else.
        batch_size: Number of transitions.
    """
    row, env = replay.sample_indices(key, batch_size)
    stored = replay[row, env]
    before = replay[(row - 1) % replay.num_rows, env]
    return Transition(
        inputs=before.next_inputs,
        actions=stored.actions,
        rewards=stored.rewards,
        done=stored.episode_done[:, None] | stored.removed,
        episode_done=stored.episode_done,
        next_inputs=stored.next_inputs,
    )


def num_controlled(observation: Observation) -> int:
    """Return how many slots are controlled in training: those of the learner's side."""
    return observation.sides.count(observation.sides[0])


def epsilon_greedy_all(
    q_values: Float[Array, "controlled action"], epsilon: Float[Array, ""], key: PRNGKeyArray
) -> Int[Array, " controlled"]:
    """Return an epsilon-greedy action for each controlled agent.

    Args:
        q_values: The value of each action of each agent.
        epsilon: Probability of a random action.
        key: A random key, used for nothing else.
    """
    keys = split(key, len(q_values))
    return jax.vmap(epsilon_greedy, in_axes=(0, None, 0))(q_values, epsilon, keys)


def td_targets(
    transition: Transition, discount: float, next_values: Float[Array, " controlled"]
) -> Float[Array, " controlled"]:
    """Return one-step targets.

    Args:
        transition: The transition.
        discount: gamma.
        next_values: The value of the next state for each agent.
    """
    not_done = jnp.where(transition.done, 0.0, next_values)
    return transition.rewards + discount * not_done
