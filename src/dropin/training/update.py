"""One update of synchronous value-based learning over parallel environments (paper: appendix D).

All environments take a few steps with the current weights; the loss of just these steps is
differentiated through the passes that chose the actions, so nothing is computed twice; then one
step of Adam, and the target follows slowly. Memory is carried on, without gradient.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.adhoc import AdHoc, TimeStep
from dropin.learners.base import (
    LearnerConfig,
    Outlook,
    Sight,
    choose,
    prediction_error,
    state_value,
)
from dropin.models.type_inference import Recall
from dropin.training.chunk import (
    AnyLearner,
    Metrics,
    Place,
    RunState,
    Scores,
    TrainConfig,
    chunk,
    descend,
    drift,
    exploration,
    first_place,
    tell,
)


class TrainState(RunState):
    """A run; the target is a slow copy of the value part.

    Of an agent part there is none: targets use the current one.
    """

    target_memory: Recall
    """What the target remembers, having read `seen`."""


class Collected(eqx.Module):
    """What a few steps of all environments gave; leaves are [time, env, ...]."""

    outlooks: Outlook
    """What the learner made of the observations it acted on."""
    steps: TimeStep
    after: Sight
    """The observations that the steps led to, with what the learner added to them."""
    later: Int[Array, "env slot"] | None
    """A joint action in the state after the last step, if the target is SARSA's."""


@eqx.filter_jit
def start(env: AdHoc, learner: AnyLearner, config: TrainConfig, key: PRNGKeyArray) -> TrainState:
    """A run before its first update."""
    key, placing = jax.random.split(key)
    states, seen, memory = first_place(env, learner, config, placing)
    sight, _ = jax.vmap(learner.look)(memory, seen)
    _, target_memory = jax.vmap(learner.value.read)(memory.value, sight)
    return TrainState(
        learner=learner,
        target=learner.value,
        optimiser=config.optimiser.init(eqx.filter(learner, eqx.is_array)),
        env=states,
        seen=seen,
        memory=memory,
        target_memory=target_memory,
        scores=Scores.zero(config.envs),
        updates=jnp.int32(0),
        key=key,
    )


def collect(
    env: AdHoc,
    config: TrainConfig,
    learner: AnyLearner,
    state: TrainState,
    key: PRNGKeyArray,
) -> tuple[Collected, Place]:
    """A few steps of all environments, and where they are afterwards."""
    epsilon, temperature = exploration(config, state.updates)
    choosing = jax.vmap(partial(choose, learner.config.soft), in_axes=(0, None, None, 0))

    def step(
        before: Place, key: PRNGKeyArray
    ) -> tuple[Place, tuple[Outlook, TimeStep, Int[Array, "env slot"] | None]]:
        states, seen, memory = before
        thinking, acting, stepping = jax.random.split(key, (3, config.envs))
        outlook, memory = jax.vmap(learner)(memory, seen, thinking)
        action = choosing(outlook.values, epsilon, temperature, acting)
        states, time_step = jax.vmap(env.step)(stepping, states, action)
        seen = time_step.observation
        memory = jax.vmap(learner.greet)(memory, seen, thinking)
        return (states, seen, memory), (outlook, time_step, memory.seats)

    keys = jax.random.split(key, config.period + 1)
    before = (state.env, state.seen, state.memory)
    # A loop and not four copies of the environment: those take most of the compile time.
    place, (outlooks, steps, seats) = jax.lax.scan(step, before, keys[:-1])
    _, seen, memory = place
    ahead, _ = jax.vmap(learner.look)(memory, seen)
    logits = None
    if outlooks.logits is not None and ahead.logits is not None:
        logits = jnp.concatenate([outlooks.logits[1:], ahead.logits[None]])
    after = Sight(steps.observation, logits, seats)
    later = step(place, keys[-1])[1][1].actions if learner.config.target == "sarsa" else None
    return Collected(outlooks, steps, after, later), place


def targets(
    config: LearnerConfig,
    state: TrainState,
    collected: Collected,
    temperature: Float[Array, ""],
    key: PRNGKeyArray,
) -> tuple[Float[Array, "time env"], Recall]:
    """What the values of what was done should have been, by the slow copy; and its memory then."""
    steps, part = collected.steps, state.target

    def read(memory: Recall, sight: Sight) -> tuple[Recall, Float[Array, "..."]]:
        types, memory = jax.vmap(part.read)(memory, sight)
        return memory, types

    memory, types = jax.lax.scan(read, state.target_memory, collected.after, unroll=True)
    following = steps.actions
    if collected.later is not None:
        following = jnp.concatenate([steps.actions[1:], collected.later[None]])

    def worth(
        types: Float[Array, "node type"],
        sight: Sight,
        actions: Int[Array, " slot"],
        key: PRNGKeyArray,
    ) -> Float[Array, ""]:
        outlook = part.judge(types, sight, key)
        if config.target == "sarsa":
            return part.taken(outlook, actions, sight.seen.present)
        return state_value(config.soft, outlook.values, temperature)

    keys = jax.random.split(key, steps.terminated.shape)
    worths = jax.vmap(jax.vmap(worth))(types, collected.after, following, keys)
    return steps.reward + config.discount * jnp.where(steps.done, 0.0, worths), memory


class Judged(eqx.Module):
    """What the loss of an update leaves behind."""

    collected: Collected
    place: Place
    target_memory: Recall
    value_loss: Float[Array, ""]
    prediction_loss: Float[Array, ""]
    accuracy: Float[Array, ""]


def collect_and_judge(
    learner: AnyLearner, env: AdHoc, config: TrainConfig, state: TrainState
) -> tuple[Float[Array, ""], Judged]:
    """The loss of a few steps of all environments, as a function of the learner."""
    _, collecting, weighing = jax.random.split(state.key, 3)
    _, temperature = exploration(config, state.updates)
    collected, place = collect(env, config, learner, state, collecting)
    goals, target_memory = targets(learner.config, state, collected, temperature, weighing)
    outlooks, steps = collected.outlooks, collected.steps
    taken = jax.vmap(jax.vmap(learner.value.taken))(outlooks, steps.actions, steps.acted)
    # The squared error of the value of what was done (Eq. 11, without the half).
    value_loss = jnp.mean((taken - jax.lax.stop_gradient(goals)) ** 2)
    prediction_loss = accuracy = jnp.float32(0)
    if outlooks.logits is not None:
        judge = jax.vmap(jax.vmap(prediction_error))
        missed, right, count = map(jnp.sum, judge(outlooks.logits, steps.actions, steps.acted))
        count = jnp.maximum(count, 1.0)  # Nobody but the learner may be there.
        prediction_loss, accuracy = missed / count, right / count
    judged = Judged(collected, place, target_memory, value_loss, prediction_loss, accuracy)
    return value_loss + prediction_loss, judged


def update(env: AdHoc, config: TrainConfig, state: TrainState) -> tuple[TrainState, Metrics]:
    """A few steps of all environments, then one step of the weights."""
    gradient, judged = eqx.filter_grad(collect_and_judge, has_aux=True)(
        state.learner, env, config, state
    )
    counts = jax.vmap(jax.vmap(env.game.counts))(judged.collected.steps.happened)
    return follow(config, state, gradient, judged, jnp.sum(counts, axis=(0, 1)))


def follow(
    config: TrainConfig,
    state: TrainState,
    gradient: Any,
    judged: Judged,
    counts: Float[Array, "ratio 2"],
) -> tuple[TrainState, Metrics]:
    """One step of the weights along the gradient; the target follows slowly."""
    steps = judged.collected.steps
    learner, optimiser = descend(config, state.learner, state.optimiser, gradient)
    scores, metrics = tell(
        state.scores,
        steps,
        counts,
        value_loss=judged.value_loss,
        prediction_loss=judged.prediction_loss,
        accuracy=judged.accuracy,
    )
    states, seen, memory = judged.place
    following = TrainState(
        learner=learner,
        target=drift(config, state.target, learner.value),
        optimiser=optimiser,
        env=states,
        seen=seen,
        memory=memory,
        target_memory=judged.target_memory,
        scores=scores,
        updates=state.updates + 1,
        key=jax.random.split(state.key, 3)[0],
    )
    return following, metrics


advance = chunk(update)
