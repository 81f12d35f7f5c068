"""One update of synchronous value-based learning over parallel environments (paper: appendix D).

All environments take a few steps with the current weights; the loss of just these steps is
differentiated through the passes that chose the actions, so nothing is computed twice; then one
step of Adam, and the target follows slowly. Memory is carried on, without gradient.
"""

import dataclasses
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.adhoc import AdHoc, EnvState, Observation, TimeStep
from dropin.compilation import compiled
from dropin.config import Checked
from dropin.learners.base import (
    Learner,
    LearnerConfig,
    Memory,
    Outlook,
    Sight,
    ValuePart,
    choose,
    prediction_error,
    state_value,
)
from dropin.models.layers import LSTMState
from dropin.training.schedule import Linear


@dataclass(frozen=True)
class TrainConfig(Checked):
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
    """Share of random actions of an epsilon-greedy policy."""
    temperature: Linear = field(default_factory=lambda: Linear(1.0, 0.01, 4_800_000))
    """Of a Boltzmann policy, GPL-SPI's (the authors' program; the paper gives no value)."""

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Adam with its usual constants, over all weights in one array."""
        return optax.flatten(optax.adam(self.learning_rate))


AnyLearner = Learner[Any, Any]


class TrainState(eqx.Module):
    """Everything that a run is, between two updates."""

    learner: AnyLearner
    target: ValuePart
    """Of an agent part there is no slow copy: targets use the current one."""
    optimiser: Any
    env: EnvState
    seen: Observation
    memory: Memory
    target_memory: LSTMState
    """What the target remembers, having read `seen`."""
    score: Float[Array, " env"]
    """Returns of the running episodes so far."""
    shaping: Float[Array, " env"]
    """The part of them that only guides learning."""
    updates: Int[Array, ""]
    key: PRNGKeyArray


class Metrics(eqx.Module):
    """What an update can tell."""

    value_loss: Float[Array, ""]
    prediction_loss: Float[Array, ""]
    accuracy: Float[Array, ""]
    """Share of the teammates' actions that the agent model held for the likeliest; both are 0
    without an agent model."""
    team_size: Float[Array, ""]
    """Mean number of agents, the learner included."""
    returns: Float[Array, ""]
    """Sum of the returns of the episodes that ended."""
    shaping: Float[Array, ""]
    """The part of it that only guides learning."""
    episodes: Float[Array, ""]
    """How many ended."""
    counts: Float[Array, "ratio 2"]
    """The parts and wholes of the game's ratios."""


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
    keys = jax.random.split(placing, config.envs)
    states, seen = jax.vmap(env.reset)(keys)
    memory = jax.vmap(lambda _: learner.start(env.slots))(jnp.arange(config.envs))
    memory = jax.vmap(learner.greet)(memory, seen, keys)
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
        score=jnp.zeros(config.envs),
        shaping=jnp.zeros(config.envs),
        updates=jnp.int32(0),
        key=key,
    )


Place = tuple[EnvState, Observation, Memory]
"""Where all environments are: their states, what is seen, and the memory that has met it."""


def collect(
    env: AdHoc,
    config: TrainConfig,
    learner: AnyLearner,
    state: TrainState,
    key: PRNGKeyArray,
) -> tuple[Collected, Place]:
    """A few steps of all environments, and where they are afterwards."""
    epsilon, temperature = exploration(config, state)
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


def exploration(
    config: TrainConfig, state: TrainState
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Epsilon and temperature of the update that follows."""
    step = state.updates * config.envs * config.period
    return config.epsilon(step), config.temperature(step)


def targets(
    config: LearnerConfig,
    state: TrainState,
    collected: Collected,
    temperature: Float[Array, ""],
    key: PRNGKeyArray,
) -> tuple[Float[Array, "time env"], LSTMState]:
    """What the values of what was done should have been, by the slow copy; and its memory then."""
    steps, part = collected.steps, state.target

    def read(memory: LSTMState, sight: Sight) -> tuple[LSTMState, Float[Array, "..."]]:
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
    target_memory: LSTMState
    value_loss: Float[Array, ""]
    prediction_loss: Float[Array, ""]
    accuracy: Float[Array, ""]


def collect_and_judge(
    learner: AnyLearner, env: AdHoc, config: TrainConfig, state: TrainState
) -> tuple[Float[Array, ""], Judged]:
    """The loss of a few steps of all environments, as a function of the learner."""
    _, collecting, weighing = jax.random.split(state.key, 3)
    _, temperature = exploration(config, state)
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
    with jax.numpy_dtype_promotion("standard"):  # Optax mixes its counter with floats.
        change, optimiser = config.optimiser.update(gradient, state.optimiser)
    learner = eqx.apply_updates(state.learner, change)
    rate = config.target_rate
    target = jax.tree.map(
        lambda slow, new: (1 - rate) * slow + rate * new, state.target, learner.value
    )

    score, returns = _ended(state.score, steps.reward, steps.done)
    shaping, shaped = _ended(state.shaping, steps.shaping[..., 0], steps.done)
    size = jnp.mean(jnp.sum(steps.acted, axis=-1).astype(jnp.float32))
    states, seen, memory = judged.place
    following = TrainState(
        learner=learner,
        target=target,
        optimiser=optimiser,
        env=states,
        seen=seen,
        memory=memory,
        target_memory=judged.target_memory,
        score=score,
        shaping=shaping,
        updates=state.updates + 1,
        key=jax.random.split(state.key, 3)[0],
    )
    metrics = Metrics(
        value_loss=judged.value_loss,
        prediction_loss=judged.prediction_loss,
        accuracy=judged.accuracy,
        team_size=size,
        returns=returns,
        shaping=shaped,
        episodes=jnp.sum(steps.done, dtype=jnp.float32),
        counts=counts,
    )
    return following, metrics


def _ended(
    score: Float[Array, " env"],
    rewards: Float[Array, "time env"],
    done: Bool[Array, "time env"],
) -> tuple[Float[Array, " env"], Float[Array, ""]]:
    """The sums of the running episodes after these steps, and the total of those that ended."""
    total = jnp.float32(0)
    for reward, over in zip(rewards, done, strict=True):
        score = score + reward
        total = total + jnp.sum(jnp.where(over, score, 0.0))
        score = jnp.where(over, 0.0, score)
    return score, total


class Alarm(eqx.Module):
    """The first update in which something was not finite, or the last one if all is well."""

    loss: Int[Array, ""]
    """A loss."""
    game: Int[Array, ""]
    """The state of an agent in one of the environments."""
    slot: Int[Array, ""]
    """The slot of that agent."""


def _watch(env: AdHoc, alarm: Alarm, after: TrainState, metrics: Metrics) -> Alarm:
    """Raise the alarm if it is the first time."""
    number = after.updates - 1
    fine = jnp.isfinite(metrics.value_loss + metrics.prediction_loss)
    flaws = jnp.any(jax.vmap(env.game.flaws)(after.env.game), axis=0)
    new = jnp.any(flaws) & (number < alarm.game)
    return Alarm(
        loss=jnp.where(fine, alarm.loss, jnp.minimum(alarm.loss, number)),
        game=jnp.where(new, number, alarm.game),
        slot=jnp.where(new, jnp.argmax(flaws), alarm.slot),
    )


def _advance(
    fixed: tuple[AdHoc, TrainConfig, Int[Array, ""]], state: TrainState
) -> tuple[TrainState, Metrics, Alarm]:
    """Many updates in one compiled call: the state, sums of the metrics, and what went wrong.

    The number of updates is a runtime value, so chunks of all lengths are compiled once.
    """
    env, config, updates = fixed
    arrays, static = eqx.partition(state, eqx.is_array)
    last = state.updates + updates

    def body(_: Int[Array, ""], carry: Any) -> Any:
        arrays, totals, alarm = carry
        following, metrics = update(env, config, eqx.combine(arrays, static))
        alarm = _watch(env, alarm, following, metrics)
        return eqx.filter(following, eqx.is_array), jax.tree.map(jnp.add, totals, metrics), alarm

    nothing = dict.fromkeys((each.name for each in dataclasses.fields(Metrics)), jnp.float32(0))
    totals = Metrics(**{**nothing, "counts": jnp.zeros((len(env.game.ratios), 2))})
    alarm = Alarm(last, last, jnp.int32(0))
    arrays, totals, alarm = jax.lax.fori_loop(0, updates, body, (arrays, totals, alarm))
    return eqx.combine(arrays, static), totals, alarm


advance = compiled(_advance, donate="all-except-first")
