"""One update of synchronous value-based learning over parallel environments (paper: appendix D).

All environments take a few steps with the current weights; the loss of just these steps is
differentiated through the passes that chose the actions, so nothing is computed twice; then one
step of Adam, and the target follows slowly. Memory is carried on, without gradient.
"""

from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.adhoc import AdHoc, EnvState, Observation, TimeStep
from dropin.learners.gpl import (
    GPL,
    GPLConfig,
    Memory,
    Outlook,
    ValuePart,
    expected_values,
    prediction_error,
    state_value,
    value_error,
)
from dropin.models.layers import LSTMState
from dropin.training.schedule import Linear


@dataclass(frozen=True)
class TrainConfig:
    """How to train. The defaults are the paper's for LBF and Wolfpack (appendix E.3)."""

    envs: int = 16
    """Parallel environments."""
    period: int = 4
    """Steps of every environment between two updates."""
    learning_rate: float = 2.5e-4
    """Of Adam."""
    target_rate: float = 1e-3
    """alpha: how far the target goes towards the weights at each update."""
    epsilon: Linear = field(default_factory=lambda: Linear(1.0, 0.05, 4_800_000))
    """Share of random actions of GPL-Q."""
    temperature: Linear = field(default_factory=lambda: Linear(1.0, 0.01, 4_800_000))
    """Of the Boltzmann policy of GPL-SPI (the authors' program; the paper gives no value)."""

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Adam with its usual constants."""
        return optax.adam(self.learning_rate)


class TrainState(eqx.Module):
    """Everything that a run is, between two updates."""

    learner: GPL
    target: ValuePart
    """Of the agent part there is no slow copy: targets use the current one."""
    optimiser: Any
    env: EnvState
    seen: Observation
    memory: Memory
    target_memory: LSTMState
    """What the target remembers, having read `seen`."""
    score: Float[Array, " env"]
    """Returns of the running episodes so far."""
    updates: Int[Array, ""]
    key: PRNGKeyArray


class Metrics(eqx.Module):
    """What an update can tell; sums where the counts differ."""

    value_loss: Float[Array, "*time"]
    prediction_loss: Float[Array, "*time"]
    accuracy: Float[Array, "*time"]
    """Share of the teammates' actions that the agent model held for the likeliest."""
    returns: Float[Array, "*time"]
    """Sum of the returns of the episodes that ended."""
    episodes: Float[Array, "*time"]
    team_size: Float[Array, "*time"]


def start(env: AdHoc, gpl: GPLConfig, config: TrainConfig, key: PRNGKeyArray) -> TrainState:
    """A run before its first update."""
    key, networks, placing = jax.random.split(key, 3)
    learner = GPL(env, gpl, key=networks)
    states, seen = jax.vmap(env.reset)(jax.random.split(placing, config.envs))
    slots = env.team.slots
    memory = jax.vmap(lambda _: learner.start(slots))(jnp.arange(config.envs))
    _, target_memory = jax.vmap(learner.value)(memory.value, seen)
    # A copy, since the buffers of the state are given away at every step.
    target = jax.tree.map(jnp.copy, learner.value)
    return TrainState(
        learner=learner,
        target=target,
        optimiser=config.optimiser.init(eqx.filter(learner, eqx.is_array)),
        env=states,
        seen=seen,
        memory=memory,
        target_memory=target_memory,
        score=jnp.zeros(config.envs),
        updates=jnp.int32(0),
        key=key,
    )


def choose(
    values: Float[Array, "env action"],
    policy: str,
    epsilon: Float[Array, ""],
    temperature: Float[Array, ""],
    key: PRNGKeyArray,
) -> Int[Array, " env"]:
    """Epsilon-greedy actions (GPL-Q) or samples of the Boltzmann policy (GPL-SPI)."""
    if policy == "spi":
        return jax.random.categorical(key, values / temperature, axis=-1).astype(jnp.int32)
    envs, actions = values.shape
    chance = jax.random.uniform(key, (2, envs))
    anything = (chance[0] * actions).astype(jnp.int32)
    greedy = jnp.argmax(values, axis=-1).astype(jnp.int32)
    return jnp.where(chance[1] < epsilon, anything, greedy)


def update(
    env: AdHoc, gpl: GPLConfig, config: TrainConfig, state: TrainState
) -> tuple[TrainState, Metrics]:
    """A few steps of all environments, then one step of the weights."""
    key, acting, stepping = jax.random.split(state.key, 3)
    step = state.updates * config.envs * config.period
    epsilon, temperature = config.epsilon(step), config.temperature(step)
    acting = jax.random.split(acting, config.period)
    stepping = jax.random.split(stepping, (config.period, config.envs))

    def collect_and_judge(learner: GPL) -> tuple[Float[Array, ""], Any]:
        states, seen, memory = state.env, state.seen, state.memory
        outlooks: list[Outlook] = []
        steps: list[TimeStep] = []
        for t in range(config.period):
            outlook, memory = jax.vmap(learner)(memory, seen)
            action = choose(outlook.values, gpl.policy, epsilon, temperature, acting[t])
            states, time_step = jax.vmap(env.step)(stepping[t], states, action)
            outlooks.append(outlook)
            steps.append(time_step)
            seen = time_step.observation
        ahead, _ = jax.vmap(learner.agent)(memory.agent, seen)
        logits = [*(outlook.logits for outlook in outlooks[1:]), ahead]

        target_memory, squared, predicted = state.target_memory, [], []
        for outlook, time_step, next_logits in zip(outlooks, steps, logits, strict=True):
            after = time_step.observation
            utilities, target_memory = jax.vmap(state.target)(target_memory, after)
            values = jax.vmap(expected_values)(utilities, next_logits, after.present)
            worth = jax.vmap(state_value, in_axes=(0, None, None))(values, gpl.policy, temperature)
            goal = time_step.reward + gpl.discount * jnp.where(time_step.done, 0.0, worth)
            did = (time_step.actions, time_step.acted)
            squared.append(jax.vmap(value_error)(outlook, *did, goal))
            predicted.append(jax.vmap(prediction_error)(outlook, *did))
        value_loss = jnp.mean(jnp.stack(squared))
        missed, right, count = (jnp.sum(jnp.stack(part)) for part in zip(*predicted, strict=True))
        prediction_loss = missed / count
        collected = (states, seen, memory, target_memory, steps)
        judged = (value_loss, prediction_loss, right / count)
        return value_loss + prediction_loss, (collected, judged)

    gradient, (collected, judged) = eqx.filter_grad(collect_and_judge, has_aux=True)(state.learner)
    states, seen, memory, target_memory, steps = collected
    with jax.numpy_dtype_promotion("standard"):  # Optax mixes its counter with floats.
        change, optimiser = config.optimiser.update(gradient, state.optimiser)
    learner = eqx.apply_updates(state.learner, change)
    rate = config.target_rate
    target = jax.tree.map(
        lambda slow, new: (1 - rate) * slow + rate * new, state.target, learner.value
    )

    score, returns, episodes = state.score, jnp.float32(0), jnp.float32(0)
    for time_step in steps:
        score = score + time_step.reward
        returns = returns + jnp.sum(jnp.where(time_step.done, score, 0.0))
        episodes = episodes + jnp.sum(time_step.done, dtype=jnp.float32)
        score = jnp.where(time_step.done, 0.0, score)
    size = jnp.mean(jnp.stack([jnp.sum(each.acted, axis=1) for each in steps]).astype(jnp.float32))
    following = TrainState(
        learner=learner,
        target=target,
        optimiser=optimiser,
        env=states,
        seen=seen,
        memory=memory,
        target_memory=target_memory,
        score=score,
        updates=state.updates + 1,
        key=key,
    )
    value_loss, prediction_loss, accuracy = judged
    metrics = Metrics(value_loss, prediction_loss, accuracy, returns, episodes, size)
    return following, metrics


@eqx.filter_jit(donate="all-except-first")
def advance(
    fixed: tuple[AdHoc, GPLConfig, TrainConfig, int], state: TrainState
) -> tuple[TrainState, Metrics]:
    """Many updates in one compiled call; the metrics of each, in order."""
    env, gpl, config, updates = fixed
    arrays, static = eqx.partition(state, eqx.is_array)

    def body(arrays: Any, _: None) -> tuple[Any, Metrics]:
        following, metrics = update(env, gpl, config, eqx.combine(arrays, static))
        return eqx.filter(following, eqx.is_array), metrics

    arrays, metrics = jax.lax.scan(body, arrays, None, length=updates)
    return eqx.combine(arrays, static), metrics
