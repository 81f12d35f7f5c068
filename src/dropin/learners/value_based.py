"""Synchronous value-based learning over parallel environments (paper: appendix D).

An update takes a few steps in all environments with the current weights. What the networks compute
is recorded and replayed for the gradient, of all steps at once, so nothing is computed twice. One
step of Adam follows, and the target moves slowly towards the new weights. Memory is carried on
to the next update, without gradient.
"""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin._xla.random import categorical, split
from dropin.core.metrics import Mean, Metric
from dropin.core.observation import TimeStep
from dropin.env import AnyEnv
from dropin.learners.base import LearnerInput, Memory, Prediction, RecordedStep, ValueNetwork
from dropin.learners.common import (
    EnvCarry,
    epsilon_greedy,
)
from dropin.learners.config import LearnerConfig
from dropin.learners.network_learner import AnyNetwork, NetworkLearner, TrainState
from dropin.models.type_inference import TypeMemory

__all__ = [
    "Rollout",
    "ValueLearner",
    "ValueTrainState",
    "agent_model_loss",
    "bootstrap_value",
    "select_action",
]

Config = TypeVar("Config", bound=LearnerConfig)


class ValueTrainState(TrainState):
    """What changes between two updates of a value-based learner."""

    target_memory: TypeMemory
    """The memory of the target, a value network, after it has processed `observation`. Targets use
    the current teammate model."""


class Rollout(eqx.Module):
    """A few steps of all environments; leaves have leading axes [time, env]."""

    memory: Memory
    """What the learner remembered before the first step, with a leading axis [env]."""
    recorded: RecordedStep
    """What the networks computed."""
    steps: TimeStep
    next_inputs: LearnerInput
    """The observations that the steps led to, with what the learner added to them."""
    next_actions: Int[Array, "env slot"] | None
    """A joint action in the state after the last step, for a SARSA target."""


class ValueLearner(NetworkLearner[Config]):
    """A value-based learning algorithm."""

    def target_of(self, network: AnyNetwork) -> ValueNetwork:
        """Return the value network."""
        return network.value

    def extend(self, state: TrainState) -> ValueTrainState:
        """Let the target process the first observation."""
        network = state.network
        inputs, _ = jax.vmap(network.predict_teammates)(state.memory, state.observation)
        _, target_memory = jax.vmap(network.value.infer_types)(state.memory.value, inputs)
        return ValueTrainState(**vars(state), target_memory=target_memory)

    def update(
        self, env: AnyEnv, state: ValueTrainState
    ) -> tuple[ValueTrainState, dict[str, Metric]]:
        """Take a few steps in all environments, then one optimiser step.

        Args:
            env: The environment.
            state: The train state.

        Returns:
            The train state afterwards, and the metrics of the update.
        """
        key, rollout_key, target_key = split(state.key, 3)
        rollout, carry = self.collect_rollout(env, state, rollout_key)
        targets, target_memory = self.td_targets(state, rollout, target_key)
        gradients, losses = eqx.filter_grad(self.loss, has_aux=True)(
            state.network, rollout, targets
        )
        state, metrics = self.next_state(
            env, state, gradients, carry, rollout.steps, key, target_memory=target_memory
        )
        return state, metrics | losses

    def loss(
        self, network: AnyNetwork, rollout: Rollout, targets: Float[Array, "time env"]
    ) -> tuple[Float[Array, ""], dict[str, Metric]]:
        """Return the loss of a rollout, and metrics.

        It is the squared error of the value of the actions taken (Eq. 11, without the half), plus
        the negative log-likelihood of the teammates' actions (Eq. 10) if there is a teammate model.

        Args:
            network: The networks that acted, with respect to which the loss is differentiated.
            rollout: The steps.
            targets: The targets of the values.
        """
        predictions, steps = network.replay(rollout.memory, rollout.recorded), rollout.steps
        taken = jax.vmap(jax.vmap(network.value.value_of_taken))(
            predictions, steps.actions, steps.acted
        )
        loss, metrics = self.value_loss(predictions, steps, (taken - targets) ** 2)
        if predictions.teammate_logits is not None:
            each = jax.vmap(jax.vmap(agent_model_loss))
            nll, correct, count = map(
                jnp.sum, each(predictions.teammate_logits, steps.actions, steps.acted)
            )
            count = jnp.maximum(count, 1.0)  # Nobody but the learner may be there.
            loss = loss + nll / count
            metrics["prediction_loss"] = Mean.of(nll / count)
            metrics["prediction_accuracy"] = Mean.of(correct / count)
        return loss, metrics

    def value_loss(
        self, predictions: Prediction, steps: TimeStep, errors: Float[Array, "time env"]
    ) -> tuple[Float[Array, ""], dict[str, Metric]]:
        """Return the loss of the values: by default the mean of the squared errors. Also metrics.

        Args:
            predictions: What the networks predicted, with leading axes [time, env].
            steps: The steps, with the same axes.
            errors: The squared error of the value of the actions taken in each step.
        """
        del predictions, steps
        loss = jnp.mean(errors)
        return loss, {"value_loss": Mean.of(loss)}

    def collect_rollout(
        self, env: AnyEnv, state: ValueTrainState, key: PRNGKeyArray
    ) -> tuple[Rollout, EnvCarry]:
        """Take `rollout_length` steps in all environments.

        Args:
            env: The environment.
            state: The train state.
            key: A random key, used for nothing else.

        Returns:
            The steps, and the environments afterwards.
        """
        network = state.network
        epsilon, temperature = self.exploration(state.updates)

        def choose(q_values: Float[Array, " action"], key: PRNGKeyArray) -> Int[Array, ""]:
            return select_action(self.config.is_boltzmann, q_values, epsilon, temperature, key)

        def env_step(
            carry: EnvCarry, key: PRNGKeyArray
        ) -> tuple[EnvCarry, tuple[RecordedStep, TimeStep, Int[Array, "env slot"] | None]]:
            states, observation, memory = carry
            keys = split(key, (4, self.training.num_envs))
            thinking, acting, stepping, arriving = keys
            prediction, memory, recorded = jax.vmap(network.forward)(memory, observation, thinking)
            action = jax.vmap(choose)(prediction.q_values, acting)
            states, time_step = jax.vmap(env.step)(stepping, states, action)
            observation = time_step.observation
            memory = jax.vmap(network.on_arrival)(memory, observation, arriving)
            return (states, observation, memory), (recorded, time_step, memory.positions)

        keys = split(key, self.training.rollout_length + 1)
        # A loop and not four copies of the environment: those take most of the compile time.
        carry, (recorded, steps, positions) = jax.lax.scan(env_step, state.carry, keys[:-1])
        _, observation, memory = carry
        last, _ = jax.vmap(network.predict_teammates)(memory, observation)
        logits = recorded.inputs.teammate_logits
        if logits is not None and last.teammate_logits is not None:
            logits = jnp.concatenate([logits[1:], last.teammate_logits[None]])
        next_inputs = LearnerInput(steps.observation, logits, positions)
        next_actions = None
        if self.config.target == "sarsa":
            next_actions = env_step(carry, keys[-1])[1][1].actions
        return Rollout(state.memory, recorded, steps, next_inputs, next_actions), carry

    def td_targets(
        self,
        state: ValueTrainState,
        rollout: Rollout,
        key: PRNGKeyArray,
    ) -> tuple[Float[Array, "time env"], TypeMemory]:
        """Return the targets of the values of the actions taken, by the target network.

        The end of an episode, also by its time limit, has no next value.

        Args:
            state: The train state.
            rollout: The steps.
            key: A random key, used for nothing else.

        Returns:
            The targets, and the target's memory after the rollout.
        """
        steps, target = rollout.steps, state.target
        _, temperature = self.exploration(state.updates)
        types, memory = target.infer_types_over_time(state.target_memory, rollout.next_inputs)
        next_actions = steps.actions
        if rollout.next_actions is not None:
            next_actions = jnp.concatenate([steps.actions[1:], rollout.next_actions[None]])

        def next_value(
            types: Float[Array, "node type"],
            inputs: LearnerInput,
            actions: Int[Array, " slot"],
            key: PRNGKeyArray,
        ) -> Float[Array, ""]:
            prediction = target.predict_values(types, inputs, key)
            if self.config.target == "sarsa":
                return target.value_of_taken(prediction, actions, inputs.observation.present)
            return bootstrap_value(self.config.is_boltzmann, prediction.q_values, temperature)

        keys = split(key, steps.terminated.shape)
        next_values = jax.vmap(jax.vmap(next_value))(types, rollout.next_inputs, next_actions, keys)
        not_done = jnp.where(steps.done, 0.0, next_values)
        return steps.reward + self.config.discount * not_done, memory


def select_action(
    is_boltzmann: bool,
    q_values: Float[Array, " action"],
    epsilon: Float[Array, ""],
    temperature: Float[Array, ""],
    key: PRNGKeyArray,
) -> Int[Array, ""]:
    """Return an epsilon-greedy action, or one sampled from the Boltzmann policy (Eq. 12).

    Args:
        is_boltzmann: Which of the two.
        q_values: The value of each action.
        epsilon: Share of random actions of the first.
        temperature: Of the second.
        key: A random key, used for nothing else.
    """
    if is_boltzmann:
        return categorical(key, q_values / temperature).astype(jnp.int32)
    return epsilon_greedy(q_values, epsilon, key)


def bootstrap_value(
    is_boltzmann: bool, q_values: Float[Array, " action"], temperature: Float[Array, ""]
) -> Float[Array, ""]:
    """Return the value of a state: the maximum, or the mean under the Boltzmann policy.

    That policy is p(a) ~ exp(Q(s, a) / temperature) (Eq. 12).

    Args:
        is_boltzmann: Whether to take the mean.
        q_values: The value of each action.
        temperature: Of the Boltzmann policy.
    """
    if not is_boltzmann:
        return jnp.max(q_values)
    return jnp.sum(jax.nn.softmax(q_values / temperature) * q_values)


def agent_model_loss(
    logits: Float[Array, "slot action"], actions: Int[Array, " slot"], acted: Bool[Array, " slot"]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Return the negative log-likelihood of the teammates' actions (Eq. 10).

    Args:
        logits: Predicted logits of every agent's action.
        actions: The joint action.
        acted: Which agents acted.

    Returns:
        Sums over the teammates that acted: the negative log-likelihood, the number of correct
        predictions, and the number of teammates. The mean is taken over all of an update.
    """
    teammates = acted & (jnp.arange(acted.shape[0]) > 0)
    chosen = jax.nn.one_hot(actions, logits.shape[1], dtype=logits.dtype)
    log_prob = jnp.sum(jax.nn.log_softmax(logits) * chosen, axis=1)
    correct = jnp.argmax(logits, axis=1) == actions
    return (
        -jnp.sum(jnp.where(teammates, log_prob, 0.0)),
        jnp.sum(teammates & correct).astype(jnp.float32),
        jnp.sum(teammates).astype(jnp.float32),
    )
