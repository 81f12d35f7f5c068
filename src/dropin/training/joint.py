"""One update of joint training: all agents of the learner's side are under control.

All environments take a few steps with the current weights and what happened is kept; then one step
of Adam on transitions drawn from all that is kept, and the target follows slowly.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from dropin.adhoc import AdHoc, TimeStep
from dropin.learners.base import Sight
from dropin.learners.joint import Transition, controlled
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
from dropin.training.replay import Moment, Replay


class JointState(RunState):
    """A run of a `JointLearner`; the target is a slow copy of all of it."""

    replay: Replay


@eqx.filter_jit
def start(env: AdHoc, learner: AnyLearner, config: TrainConfig, key: PRNGKeyArray) -> JointState:
    """A run before its first update."""
    key, placing = jax.random.split(key)
    states, seen, memory = first_place(env, learner, config, placing)
    nothing = jnp.zeros((config.envs, controlled(seen)))
    first = Moment(
        actions=nothing.astype(jnp.int32),
        rewards=nothing,
        out=nothing.astype(bool),
        over=jnp.zeros(config.envs, bool),
        after=Sight(seen, seats=memory.seats),
    )
    return JointState(
        learner=learner,
        target=learner,
        optimiser=config.optimiser.init(eqx.filter(learner, eqx.is_array)),
        env=states,
        seen=seen,
        memory=memory,
        replay=Replay.empty(first, learner.config.replay, config.period),
        scores=Scores.zero(config.envs),
        updates=jnp.int32(0),
        key=key,
    )


def play(
    env: AdHoc, config: TrainConfig, state: JointState, key: PRNGKeyArray
) -> tuple[Place, Moment, TimeStep]:
    """A few steps of all environments: where they are afterwards, and all that happened."""
    learner: Any = state.learner
    epsilon, _ = exploration(config, state.updates)

    def step(before: Place, key: PRNGKeyArray) -> tuple[Place, tuple[Moment, TimeStep]]:
        states, seen, memory = before
        greeting, acting, stepping = jax.random.split(key, (3, config.envs))
        act = jax.vmap(learner.act_all, in_axes=(0, 0, None, 0))
        actions = act(memory, seen, epsilon, acting)
        states, result = jax.vmap(env.step_all)(stepping, states, actions)
        number, seen = actions.shape[1], result.observation
        memory = jax.vmap(learner.greet)(memory, seen, greeting)
        moment = Moment(
            actions=actions,
            rewards=result.rewards[:, :number],
            out=result.out[:, :number],
            over=result.done,
            after=Sight(seen, seats=memory.seats),
        )
        return (states, seen, memory), (moment, result)

    place = (state.env, state.seen, state.memory)
    place, (moments, steps) = jax.lax.scan(step, place, jax.random.split(key, config.period))
    return place, moments, steps


def loss(
    learner: Any, target: Any, batch: Transition, key: PRNGKeyArray
) -> tuple[Float[Array, ""], tuple[Float[Array, ""], Float[Array, ""]]]:
    """The loss of a batch, and its two parts: of values, and what the learner has besides."""
    keys = jax.random.split(key, len(batch.over))
    errors = jax.vmap(learner.errors, in_axes=(None, 0, 0))(target, batch, keys)
    value, extra = errors.means
    return value + extra, (value, extra)


def update(env: AdHoc, config: TrainConfig, state: JointState) -> tuple[JointState, Metrics]:
    """A few steps of all environments, then one step of the weights."""
    key, playing, drawing, judging = jax.random.split(state.key, 4)
    (states, seen, memory), moments, steps = play(env, config, state, playing)
    replay = state.replay.add(moments)
    batch = replay.sample(drawing, state.learner.config.batch)
    gradient, (value, extra) = eqx.filter_grad(loss, has_aux=True)(
        state.learner, state.target, batch, judging
    )
    learner, optimiser = descend(config, state.learner, state.optimiser, gradient)
    counts = jnp.sum(jax.vmap(jax.vmap(env.game.counts))(steps.happened), axis=(0, 1))
    scores, metrics = tell(state.scores, steps, counts, value_loss=value, extra_loss=extra)
    following = JointState(
        learner=learner,
        target=drift(config, state.target, learner),
        optimiser=optimiser,
        env=states,
        seen=seen,
        memory=memory,
        replay=replay,
        scores=scores,
        updates=state.updates + 1,
        key=key,
    )
    return following, metrics


advance = chunk(update)
