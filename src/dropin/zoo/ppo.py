"""Proximal policy optimisation (PPO) for the guards and attackers of FortAttack.

Three pure functions over a train state, like those of every learner (`dropin.core.specs.Learner`):

* `init` makes the train state;
* `update` collects a rollout in all environments, estimates the advantages, and takes optimiser
  steps on minibatches of the rollout, several times;
* `policies` returns what has been learned.

Agents in neighbouring slots share one actor-critic. There can be one for each side, which is
self-play; agents without an actor-critic act by a type of the pool. For the agent that is shot the
episode ends there: it does not learn from what happens while it is away.

References:
    Schulman et al. (2017), Proximal Policy Optimization Algorithms, arXiv:1707.06347.
    Schulman et al. (2016), High-Dimensional Continuous Control Using Generalized Advantage
    Estimation, arXiv:1506.02438.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from dropin.core.metrics import Mean
from dropin.core.observation import TimeStep
from dropin.env import AdHocEnv, EnvState
from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.learned import FighterNetwork, NetworkInput
from dropin.games.fortattack.state import State
from dropin.learners.common import apply_gradients, values_of_actions
from dropin.zoo.actor_critic import ActorCritic
from dropin.zoo.batched_env import BatchedEnv
from dropin.zoo.updates import ActorCriticConfig, TrainState, cosine_adam

__all__ = [
    "Batch",
    "PPOConfig",
    "PPOState",
    "Transition",
    "init",
    "policies",
    "update",
]


@dataclass(frozen=True)
class PPOConfig(ActorCriticConfig):
    """The settings of PPO."""

    steps: int = 10_000_000
    """Environment steps of training, all parallel environments together."""
    num_envs: int = 64
    """Parallel environments."""
    rollout_length: int = 32
    """Steps of every environment between two updates."""
    num_epochs: int = 2
    """Passes over the rollout in an update."""
    num_minibatches: int = 4
    """Parts of the environments in a pass, with one optimiser step each."""
    gae_lambda: float = 0.95
    """lambda of the generalised advantage estimation."""
    clip_eps: float = 0.2
    """How far the probability ratio of an action may move from 1 before it is clipped."""
    approach_bonus: float = 2.0
    """Extra reward of attackers for each unit by which they come closer to the fort."""

    @property
    def steps_per_update(self) -> int:
        """Environment steps between two updates, all environments together."""
        return self.num_envs * self.rollout_length

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """Adam with clipped gradients and a learning rate that decays along a cosine."""
        num_updates = self.num_epochs * self.num_minibatches * (self.steps // self.steps_per_update)
        return cosine_adam(self.learning_rate, self.final_learning_rate, num_updates, 0.5)


class Transition(eqx.Module):
    """One step of the agents that share an actor-critic.

    In a rollout the leading axes are [time, env, agent].
    """

    inputs: NetworkInput
    """What each agent saw, as the networks get it."""
    action: Int[Array, "*n agent"]
    log_prob: Float[Array, "*n agent"]
    """The log-probability of the action under the policy that chose it."""
    reward: Float[Array, "*n agent"]
    not_done: Bool[Array, "*n agent"]
    """Whether the agent's life continued: neither was it shot nor did the episode end."""
    acted: Bool[Array, "*n agent"]
    """Whether the agent was present; if not, nothing of its row counts."""


class Batch(eqx.Module):
    """A rollout of the agents that share an actor-critic, ready to learn from."""

    transition: Transition
    advantages: Float[Array, "time env agent"]
    targets: Float[Array, "time env agent"]
    """What the values should have been: the lambda-returns."""


PPOState = TrainState[tuple[ActorCritic, ...], EnvState[State]]
"""The train state of PPO."""


def init(
    config: PPOConfig, key: PRNGKeyArray, env: BatchedEnv[State], learning: Sequence[range]
) -> PPOState:
    """Return the train state before the first update.

    Args:
        config: The settings.
        key: A random key, used for nothing else.
        env: The parallel environments.
        learning: The slots that learn, one range of slots for each actor-critic.
    """
    key, *network_keys = jax.random.split(key, 1 + len(learning))
    params = tuple(map(ActorCritic.init, learning, network_keys))
    key, reset_key = jax.random.split(key)
    return TrainState(
        params=params,
        opt_state=config.optimizer.init(eqx.filter(params, eqx.is_array)),
        env_state=eqx.filter_jit(BatchedEnv.reset)(env, reset_key),
        steps=jnp.int32(0),
        key=key,
    )


def update(
    config: PPOConfig, env: BatchedEnv[State], state: PPOState
) -> tuple[PPOState, dict[str, Mean]]:
    """Collect a rollout and learn from it.

    Args:
        config: The settings.
        env: The parallel environments.
        state: The train state.

    Returns:
        The train state after the update, and metrics: for each actor-critic the mean reward of a
        step and the mean entropy, and the share of finished episodes in which the fort fell.
    """
    key, rollout_key, views_key = jax.random.split(state.key, 3)
    step = partial(_env_step, config, env, state.params)
    step_keys = jax.random.split(rollout_key, config.rollout_length)
    env_state, (transitions, done, fort_fell) = jax.lax.scan(step, state.env_state, step_keys)

    views = env.views(views_key, env_state)
    batches = []
    for agents, transition in zip(state.params, transitions, strict=True):
        last_value = agents.value(agents.inputs(views, env.sides))
        values = agents.value(transition.inputs)
        advantages = _calculate_gae(config, transition, values, last_value)
        batches.append(Batch(transition, advantages, advantages + values))

    params, opt_state, entropies = _update_params(
        config, state.params, state.opt_state, tuple(batches)
    )
    metrics = {
        f"reward {number}": jnp.sum(transition.reward) / _count(transition.acted)
        for number, transition in enumerate(transitions, start=1)
    }
    metrics |= {f"entropy {number}": each for number, each in enumerate(entropies, start=1)}
    metrics["forts fallen"] = jnp.sum(fort_fell, dtype=jnp.float32) / _count(done)
    after = TrainState(params, opt_state, env_state, state.steps + config.steps_per_update, key)
    return after, {name: Mean.of(value) for name, value in metrics.items()}


def policies(state: PPOState) -> tuple[FighterNetwork, ...]:
    """Return the policy of each actor-critic."""
    return tuple(agents.actor for agents in state.params)


def _env_step(
    config: PPOConfig,
    env: BatchedEnv[State],
    params: tuple[ActorCritic, ...],
    env_state: EnvState[State],
    key: PRNGKeyArray,
) -> tuple[
    EnvState[State], tuple[tuple[Transition, ...], Bool[Array, " env"], Bool[Array, " env"]]
]:
    """Take one step in all environments.

    Returns:
        The states afterwards; the step of each actor-critic, which episodes ended, and in which
        of the environments the fort fell.
    """
    views_key, sample_key, types_key, step_key = jax.random.split(key, 4)
    views = env.views(views_key, env_state)
    if sum(len(agents.slots) for agents in params) == len(env.sides):
        actions = jnp.zeros((env.num_envs, len(env.sides)), jnp.int32)
    else:
        actions, env_state = env.act_by_types(types_key, env_state)
    choices = []
    for agents, agents_key in zip(params, jax.random.split(sample_key, len(params)), strict=True):
        inputs = agents.inputs(views, env.sides)
        logits = agents.actor(inputs)
        action = jax.random.categorical(agents_key, logits).astype(jnp.int32)
        choices.append((inputs, action, values_of_actions(jax.nn.log_softmax(logits), action)))
        actions = jax.lax.dynamic_update_slice_in_dim(actions, action, agents.slots.start, axis=1)
    after, step = env.step(step_key, env_state, actions)

    final = step.final_observation
    stayed = final.present & ~final.arrived
    approach = env.vmap(_approach, env_state, step)
    rewards = step.rewards + config.approach_bonus * jnp.where(stayed & step.acted, approach, 0.0)
    not_done = stayed & ~step.done[:, None]
    transitions = tuple(
        Transition(
            inputs=inputs,
            action=action,
            log_prob=log_prob,
            reward=agents.rows(rewards),
            not_done=agents.rows(not_done),
            acted=agents.rows(step.acted),
        )
        for agents, (inputs, action, log_prob) in zip(params, choices, strict=True)
    )
    return after, (transitions, step.done, step.events.fort_fell)


def _approach(
    env: AdHocEnv[State], before: EnvState[State], step: TimeStep
) -> Float[Array, " slot"]:
    """Return by how much each attacker came closer to the fort; 0 for guards."""
    assert isinstance(env.game, FortAttack)
    x, y = step.final_observation.agents[:, 0], step.final_observation.agents[:, 1]
    distance = jnp.hypot(x, env.game.half_height - y)
    closer = env.game.distance_to_fort(before.game) - distance
    return jnp.where(before.game.is_attacker, closer, 0.0)


def _calculate_gae(
    config: PPOConfig,
    transition: Transition,
    values: Float[Array, "time env agent"],
    last_value: Float[Array, "env agent"],
) -> Float[Array, "time env agent"]:
    """Return the generalised advantage estimates (Schulman et al. 2016, Eq. 16).

    Args:
        config: The settings.
        transition: The rollout.
        values: The value of what each agent saw before each step.
        last_value: The value of what each agent sees after the last step.
    """

    def backwards(
        advantage: Float[Array, "env agent"], step: tuple[Array, ...]
    ) -> tuple[Float[Array, "env agent"], Float[Array, "env agent"]]:
        reward, value, next_value, not_done = step
        delta = reward + config.discount * jnp.where(not_done, next_value, 0.0) - value
        decay = config.discount * config.gae_lambda
        advantage = delta + decay * jnp.where(not_done, advantage, 0.0)
        return advantage, advantage

    next_values = jnp.concatenate([values[1:], last_value[None]])
    steps = (transition.reward, values, next_values, transition.not_done)
    return jax.lax.scan(backwards, jnp.zeros_like(last_value), steps, reverse=True)[1]


def _loss_fn(
    params: tuple[ActorCritic, ...], config: PPOConfig, batches: tuple[Batch, ...]
) -> tuple[Float[Array, ""], tuple[Float[Array, ""], ...]]:
    """Return the loss of PPO (Schulman et al. 2017, Eq. 9), and the entropy of each actor.

    The losses of all actor-critics are added. Only agents that acted count.
    """
    loss, entropies = jnp.float32(0), []
    for agents, batch in zip(params, batches, strict=True):
        transition = batch.transition
        acted, num_acted = transition.acted.astype(jnp.float32), _count(transition.acted)

        def mean(values: Array, acted: Array = acted, num_acted: Array = num_acted) -> Array:
            return jnp.sum(values * acted) / num_acted

        centred = batch.advantages - mean(batch.advantages)
        normalised_advantages = centred / (jnp.sqrt(mean(centred**2)) + 1e-6)
        log_probs = jax.nn.log_softmax(agents.actor(transition.inputs))
        log_prob = values_of_actions(log_probs, transition.action)
        ratio = jnp.exp(log_prob - transition.log_prob)
        clipped_ratio = jnp.clip(ratio, 1 - config.clip_eps, 1 + config.clip_eps)
        actor_loss = -mean(
            jnp.minimum(ratio * normalised_advantages, clipped_ratio * normalised_advantages)
        )
        critic_loss = mean((agents.value(transition.inputs) - batch.targets) ** 2)
        entropy = mean(-jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1))
        loss = loss + actor_loss + 0.5 * critic_loss - config.entropy_coef * entropy
        entropies.append(entropy)
    return loss, tuple(entropies)


def _update_params(
    config: PPOConfig,
    params: tuple[ActorCritic, ...],
    opt_state: PyTree,
    batches: tuple[Batch, ...],
) -> tuple[tuple[ActorCritic, ...], PyTree, list[Float[Array, ""]]]:
    """Take the optimiser steps of one update.

    A minibatch is all steps of some environments. The minibatches are the same in every epoch:
    shuffling is slow on a CPU, and each rollout is used for few epochs only.

    Returns:
        The weights, the optimiser's state, and the mean entropy of each actor.
    """
    arrays, static = eqx.partition(params, eqx.is_array)
    size = config.num_envs // config.num_minibatches

    def _update_minibatch(
        carry: tuple[PyTree, PyTree], number: Int[Array, ""]
    ) -> tuple[tuple[PyTree, PyTree], tuple[Float[Array, ""], ...]]:
        arrays, opt_state = carry
        params = eqx.combine(arrays, static)
        minibatch = jax.tree.map(
            lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, number * size, size, axis=1), batches
        )
        gradients, entropies = eqx.filter_grad(_loss_fn, has_aux=True)(params, config, minibatch)
        params, opt_state = apply_gradients(config.optimizer, params, opt_state, gradients)
        return (eqx.filter(params, eqx.is_array), opt_state), entropies

    def _update_epoch(
        carry: tuple[PyTree, PyTree], _: None
    ) -> tuple[tuple[PyTree, PyTree], tuple[Float[Array, " minibatch"], ...]]:
        return jax.lax.scan(_update_minibatch, carry, jnp.arange(config.num_minibatches))

    (arrays, opt_state), entropies = jax.lax.scan(
        _update_epoch, (arrays, opt_state), length=config.num_epochs
    )
    return eqx.combine(arrays, static), opt_state, [jnp.mean(each) for each in entropies]


def _count(mask: Bool[Array, "..."]) -> Float[Array, ""]:
    """Return how many entries are true, at least 1."""
    return jnp.maximum(jnp.sum(mask, dtype=jnp.float32), 1.0)
