"""Joint off-policy learning from a replay buffer (paper: section 5.2, "MARL baselines").

In training all agents of the learner's side are controlled, use the same weights and get their own
reward of the game. An update takes a few steps in all environments and stores them; then one step
of Adam on transitions sampled from the buffer, and the target moves slowly towards the new weights.
Afterwards one of the agents is taken as the learner.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from dropin.core.config import Checked
from dropin.core.metrics import Mean, Metric, Snapshot
from dropin.core.observation import Interface, Observation, TimeStep
from dropin.env import AnyEnv, AnyEnvState
from dropin.learners.base import LearnerInput, Memory, NetworkPolicy
from dropin.learners.common import (
    EnvCarry,
    EpisodeReturns,
    apply_gradients,
    episode_metrics,
    epsilon_greedy,
    reset_envs,
    update_target,
)
from dropin.learners.config import TrainConfig
from dropin.learners.replay import ReplayBuffer

__all__ = [
    "LossTerms",
    "ReplayConfig",
    "ReplayLearner",
    "TrainState",
    "Transition",
    "epsilon_greedy_all",
    "num_controlled",
    "td_targets",
]


@dataclass(frozen=True)
class ReplayConfig(Checked):
    """Settings of the replay buffer."""

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

    @property
    def config(self) -> Any:
        """The settings."""
        ...

    def init_memory(self, slots: int) -> Memory:
        """Return the memory at the start of an episode."""
        ...

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


class TrainState(eqx.Module):
    """Everything that changes between two updates."""

    network: PyTree
    target: PyTree
    """A slow copy of all networks."""
    opt_state: PyTree
    env: AnyEnvState
    observation: Observation
    memory: Memory
    running: EpisodeReturns
    updates: Int[Array, ""]
    key: PRNGKeyArray
    replay: ReplayBuffer[StoredStep]


Config = TypeVar("Config", bound=ReplayConfig)


@dataclass(frozen=True)
class ReplayLearner(Generic[Config]):
    """A joint, replay-based learning algorithm: see `dropin.core.specs.Learner`."""

    make_network: Callable[..., PyTree]
    """`(interface, config, *, key) -> networks`, a `JointNetwork`."""
    config: Config
    training: TrainConfig

    def init(self, key: PRNGKeyArray, env: AnyEnv) -> TrainState:
        """Return the train state before the first update."""
        network_key, state_key = jax.random.split(key)
        network = self.make_network(env.interface, self.config, key=network_key)
        return _init_state(self, env, network, state_key)

    def policy(self, state: TrainState) -> NetworkPolicy:
        """Return the policy that has been learned so far."""
        temperature = jnp.float32(1)
        if state.network.config.anneals_temperature:
            temperature = self.training.temperature(self._step(state.updates))
        return NetworkPolicy(state.network, temperature)

    def policy_template(self, interface: Interface) -> NetworkPolicy:
        """Return a policy of the right shapes with any weights."""
        network = self.make_network(interface, self.config, key=jax.random.key(0))
        return NetworkPolicy(network, jnp.float32(1))

    def _step(self, updates: Int[Array, ""]) -> Int[Array, ""]:
        return updates * self.training.num_envs * self.training.rollout_length

    def update(self, env: AnyEnv, state: TrainState) -> tuple[TrainState, dict[str, Metric]]:
        """Take a few steps in all environments, then one optimiser step on sampled transitions.

        Args:
            env: The environment.
            state: The train state.

        Returns:
            The train state afterwards, and the metrics of the update.
        """
        key, rollout_key, sample_key, loss_key = jax.random.split(state.key, 4)
        carry, stored, steps = self.collect_rollout(env, state, rollout_key)
        replay = state.replay.add(stored)
        batch = sample_transitions(replay, sample_key, self.config.batch_size)
        gradients, (value_loss, auxiliary_loss) = eqx.filter_grad(self.batch_loss, has_aux=True)(
            state.network, state.target, batch, loss_key
        )
        network, opt_state = apply_gradients(
            self.training.optimizer, state.network, state.opt_state, gradients
        )
        running, metrics = episode_metrics(env, state.running, steps)
        step = self._step(state.updates)
        metrics |= {
            "value_loss": Mean.of(value_loss),
            "auxiliary_loss": Mean.of(auxiliary_loss),
            "epsilon": Snapshot.of(self.training.epsilon(step)),
            "temperature": Snapshot.of(self.training.temperature(step)),
        }
        env_state, observation, memory = carry
        following = TrainState(
            network=network,
            target=update_target(network, state.target, self.training.target_update_rate),
            opt_state=opt_state,
            env=env_state,
            observation=observation,
            memory=memory,
            running=running,
            updates=state.updates + 1,
            key=key,
            replay=replay,
        )
        return following, metrics

    def collect_rollout(
        self, env: AnyEnv, state: TrainState, key: PRNGKeyArray
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
        network: JointNetwork = state.network
        epsilon = self.training.epsilon(self._step(state.updates))

        def env_step(
            carry: EnvCarry, key: PRNGKeyArray
        ) -> tuple[EnvCarry, tuple[StoredStep, TimeStep]]:
            states, observation, memory = carry
            arriving, acting, stepping = jax.random.split(key, (3, self.training.num_envs))
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

        carry = (state.env, state.observation, state.memory)
        keys = jax.random.split(key, self.training.rollout_length)
        carry, (stored, steps) = jax.lax.scan(env_step, carry, keys)
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
        keys = jax.random.split(key, len(batch.episode_done))
        terms = jax.vmap(network.loss_terms, in_axes=(None, 0, 0))(target, batch, keys)
        value_loss, auxiliary_loss = terms.means
        return value_loss + auxiliary_loss, (value_loss, auxiliary_loss)


@eqx.filter_jit
def _init_state(
    learner: ReplayLearner[Any], env: AnyEnv, network: PyTree, key: PRNGKeyArray
) -> TrainState:
    """Start an episode in every environment, with new networks and an empty buffer."""
    key, reset_key = jax.random.split(key)
    num_envs, rollout_length = learner.training.num_envs, learner.training.rollout_length
    states, observation, memory = reset_envs(env, network, num_envs, reset_key)
    zeros = jnp.zeros((num_envs, num_controlled(observation)))
    first = StoredStep(
        actions=zeros.astype(jnp.int32),
        rewards=zeros,
        removed=zeros.astype(bool),
        episode_done=jnp.zeros(num_envs, bool),
        next_inputs=LearnerInput(observation, positions=memory.positions),
    )
    blocks = -(-learner.config.replay_capacity // (num_envs * rollout_length))
    return TrainState(
        network=network,
        target=network,
        opt_state=learner.training.optimizer.init(eqx.filter(network, eqx.is_array)),
        env=states,
        observation=observation,
        memory=memory,
        running=EpisodeReturns.zeros(num_envs),
        updates=jnp.int32(0),
        key=key,
        replay=ReplayBuffer.create(first, blocks * rollout_length, spare_rows=rollout_length),
    )


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
    """Return an epsilon-greedy action for each controlled agent."""
    keys = jax.random.split(key, len(q_values))
    return jax.vmap(epsilon_greedy, in_axes=(0, None, 0))(q_values, epsilon, keys)


def td_targets(
    transition: Transition, discount: float, next_values: Float[Array, " controlled"]
) -> Float[Array, " controlled"]:
    """Return one-step targets, given the values of what follows."""
    not_done = jnp.where(transition.done, 0.0, next_values)
    return transition.rewards + discount * not_done
