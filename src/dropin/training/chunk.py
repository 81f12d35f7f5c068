"""Chunks of updates in one compiled call, and what is the same in all ways to train."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.adhoc import AdHoc, EnvState, Observation, TimeStep
from dropin.compilation import compiled
from dropin.config import Checked
from dropin.learners.base import Learner, Memory
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


class Scores(eqx.Module):
    """Of the running episodes so far."""

    returns: Float[Array, " env"]
    shaping: Float[Array, " env"]
    """The part of the returns that only guides learning."""

    @classmethod
    def zero(cls, envs: int) -> "Scores":
        """Nothing yet."""
        return cls(jnp.zeros(envs), jnp.zeros(envs))


Place = tuple[EnvState, Observation, Memory]
"""Where all environments are: their states, what is seen, and the memory that has met it."""


def first_place(env: AdHoc, learner: AnyLearner, config: TrainConfig, key: PRNGKeyArray) -> Place:
    """All environments at the start of an episode."""
    keys = jax.random.split(key, config.envs)
    states, seen = jax.vmap(env.reset)(keys)
    memory = jax.vmap(lambda _: learner.start(env.slots))(jnp.arange(config.envs))
    return states, seen, jax.vmap(learner.greet)(memory, seen, keys)


class RunState(eqx.Module):
    """Everything that a run is between two updates, whatever the way to train."""

    learner: AnyLearner
    target: Any
    """A slow copy of the learner, or of a part of it."""
    optimiser: Any
    env: EnvState
    seen: Observation
    memory: Memory
    scores: Scores
    updates: Int[Array, ""]
    key: PRNGKeyArray


class Metrics(eqx.Module):
    """What an update can tell."""

    value_loss: Float[Array, ""]
    prediction_loss: Float[Array, ""]
    accuracy: Float[Array, ""]
    """Share of the teammates' actions that the agent model held for the likeliest; both are 0
    without an agent model."""
    extra_loss: Float[Array, ""]
    """What jointly trained learners have besides the value loss; 0 for others."""
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


def exploration(
    config: TrainConfig, updates: Int[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Epsilon and temperature after so many updates."""
    step = updates * config.envs * config.period
    return config.epsilon(step), config.temperature(step)


Tree = TypeVar("Tree")


def descend(config: TrainConfig, learner: Tree, optimiser: Any, gradient: Any) -> tuple[Tree, Any]:
    """One step of the weights along the gradient, and the optimiser's state afterwards."""
    with jax.numpy_dtype_promotion("standard"):  # Optax mixes its counter with floats.
        change, optimiser = config.optimiser.update(gradient, optimiser)
    return eqx.apply_updates(learner, change), optimiser


def drift(config: TrainConfig, target: Tree, now: Tree) -> Tree:
    """The slow copy, a little nearer to what there is now."""
    rate = config.target_rate
    return jax.tree.map(lambda slow, new: (1 - rate) * slow + rate * new, target, now)


def tell(
    scores: Scores,
    steps: TimeStep,
    counts: Float[Array, "ratio 2"],
    **losses: Float[Array, ""],
) -> tuple[Scores, Metrics]:
    """The running scores after these steps [time, env], and what the update can tell."""
    returns, total = _ended(scores.returns, steps.reward, steps.done)
    shaping, shaped = _ended(scores.shaping, steps.shaping[..., 0], steps.done)
    nothing = {
        each.name: jnp.float32(0)
        for each in dataclasses.fields(Metrics)
        if each.name.endswith("loss") or each.name == "accuracy"
    }
    metrics = Metrics(
        **{**nothing, **losses},
        team_size=jnp.mean(jnp.sum(steps.acted, axis=-1).astype(jnp.float32)),
        returns=total,
        shaping=shaped,
        episodes=jnp.sum(steps.done, dtype=jnp.float32),
        counts=counts,
    )
    return Scores(returns, shaping), metrics


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


def _watch(env: AdHoc, alarm: Alarm, after: RunState, metrics: Metrics) -> Alarm:
    """Raise the alarm if it is the first time."""
    number = after.updates - 1
    fine = jnp.isfinite(metrics.value_loss + metrics.prediction_loss + metrics.extra_loss)
    flaws = jnp.any(jax.vmap(env.game.flaws)(after.env.game), axis=0)
    new = jnp.any(flaws) & (number < alarm.game)
    return Alarm(
        loss=jnp.where(fine, alarm.loss, jnp.minimum(alarm.loss, number)),
        game=jnp.where(new, number, alarm.game),
        slot=jnp.where(new, jnp.argmax(flaws), alarm.slot),
    )


State = TypeVar("State", bound=RunState)
Fixed = tuple[AdHoc, TrainConfig, Int[Array, ""]]
"""The environment, the settings, and how many updates."""


def chunk(
    update: Callable[[AdHoc, TrainConfig, State], tuple[State, Metrics]],
) -> Callable[[Fixed, State], tuple[State, Metrics, Alarm]]:
    """Many updates in one compiled call: the state, sums of the metrics, and what went wrong.

    The number of updates is a runtime value, so chunks of all lengths are compiled once.
    """

    def advance(fixed: Fixed, state: State) -> tuple[State, Metrics, Alarm]:
        env, config, updates = fixed
        arrays, static = eqx.partition(state, eqx.is_array)
        last = state.updates + updates

        def body(_: Int[Array, ""], carry: Any) -> Any:
            arrays, totals, alarm = carry
            following, metrics = update(env, config, eqx.combine(arrays, static))
            alarm = _watch(env, alarm, following, metrics)
            arrays = eqx.filter(following, eqx.is_array)
            return arrays, jax.tree.map(jnp.add, totals, metrics), alarm

        names = (each.name for each in dataclasses.fields(Metrics))
        nothing = dict.fromkeys(names, jnp.float32(0))
        totals = Metrics(**{**nothing, "counts": jnp.zeros((len(env.game.ratios), 2))})
        alarm = Alarm(last, last, jnp.int32(0))
        arrays, totals, alarm = jax.lax.fori_loop(0, updates, body, (arrays, totals, alarm))
        return eqx.combine(arrays, static), totals, alarm

    return compiled(advance, donate="all-except-first")
