"""Returns of whole episodes, of many environments in parallel."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.compile import compiled
from dropin._xla.random import split
from dropin.core.metrics import Mean
from dropin.core.observation import Observation
from dropin.env import AnyEnv, AnyEnvState, nonfinite_slots
from dropin.policies import Policy

__all__ = ["Episodes", "rollout"]


class Episodes(eqx.Module):
    """The same number of episodes of every environment, one after another."""

    returns: Float[Array, "env episode"]
    shaping: Float[Array, "env episode"]
    """The part of each return that only guides learning."""
    ends: Int[Array, "env episode"]
    """The step at which each episode ended, counted from the start of the first one."""
    metrics: dict[str, Mean]
    """The game's metrics over all these episodes."""
    nonfinite: Int[Array, " 2"]
    """The step after which, and the slot in which a state was not finite; -1 if none was."""


class _Carry(eqx.Module):
    state: AnyEnvState
    observation: Observation
    memory: PyTree
    running_return: Float[Array, " env"]
    running_shaping: Float[Array, " env"]
    finished: Int[Array, " env"]
    """Number of episodes that have ended."""
    step: Int[Array, ""]
    episodes: Episodes


def _rollout(
    env: AnyEnv, policy: Policy, key: PRNGKeyArray, num_envs: int, episodes: int
) -> Episodes:
    """Play until every environment has had its number of episodes.

    No episode is left out for being long, so the mean of the returns is an unbiased estimate.

    Args:
        env: The environment.
        policy: Who plays in the learner's place.
        key: A random key, used for nothing else.
        num_envs: Number of parallel environments.
        episodes: Number of episodes of each environment.
    """
    reset_key, step_key = split(key)
    states, observation = jax.vmap(env.reset)(split(reset_key, num_envs))
    memory = jax.vmap(lambda _: policy.init_memory(env.slots))(jnp.arange(num_envs))
    zeros = jnp.zeros((num_envs, episodes))

    def act(key: PRNGKeyArray, state: AnyEnvState, seen: Observation, memory: PyTree) -> PyTree:
        return policy.act(key, env, state, seen, memory)

    def not_finished(carry: _Carry) -> Array:
        return jnp.any(carry.finished < episodes)

    def step(carry: _Carry) -> _Carry:
        keys = split(jax.random.fold_in(step_key, carry.step), (2, num_envs))
        actions, memory = jax.vmap(act)(keys[0], carry.state, carry.observation, carry.memory)
        state, time_step = jax.vmap(env.step)(keys[1], carry.state, actions)
        running_return = carry.running_return + time_step.reward
        running_shaping = carry.running_shaping + time_step.shaping[:, 0]
        ended = jnp.arange(episodes)[None] == carry.finished[:, None]
        ended &= time_step.done[:, None]
        after = carry.step + 1
        counted = carry.finished < episodes
        before = carry.episodes
        metrics = {
            name: each.add(jax.tree.map(lambda leaf: jnp.sum(jnp.where(counted, leaf, 0.0)), new))
            for (name, each), new in zip(
                before.metrics.items(), _metrics(env, time_step.events).values(), strict=True
            )
        }
        bad = nonfinite_slots(state)
        first = jnp.any(bad) & (before.nonfinite[0] < 0)
        nonfinite = jnp.where(first, jnp.stack([after, jnp.argmax(bad)]), before.nonfinite)
        return _Carry(
            state=state,
            observation=time_step.observation,
            memory=memory,
            running_return=jnp.where(time_step.done, 0.0, running_return),
            running_shaping=jnp.where(time_step.done, 0.0, running_shaping),
            finished=carry.finished + time_step.done.astype(jnp.int32),
            step=after,
            episodes=Episodes(
                jnp.where(ended, running_return[:, None], before.returns),
                jnp.where(ended, running_shaping[:, None], before.shaping),
                jnp.where(ended, after, before.ends),
                metrics,
                nonfinite,
            ),
        )

    shapes = eqx.filter_eval_shape(lambda: _metrics(env, _events(env, states)))
    first = _Carry(
        state=states,
        observation=observation,
        memory=memory,
        running_return=jnp.zeros(num_envs),
        running_shaping=jnp.zeros(num_envs),
        finished=jnp.zeros(num_envs, jnp.int32),
        step=jnp.int32(0),
        episodes=Episodes(
            returns=zeros,
            shaping=zeros,
            ends=zeros.astype(jnp.int32),
            metrics={name: Mean(jnp.float32(0), jnp.float32(0)) for name in shapes},
            nonfinite=jnp.full(2, -1),
        ),
    )
    return jax.lax.while_loop(not_finished, step, first).episodes


def _metrics(env: AnyEnv, events: PyTree) -> dict[str, Mean]:
    """Return the game's metrics of a step of all environments, leaves [env]."""
    return dict(jax.vmap(env.game.metrics)(events))


def _events(env: AnyEnv, states: AnyEnvState) -> PyTree:
    """Return the events of a step of the game alone, for their shapes."""
    rng = env._step_rng(jax.random.key(0))
    slots = env.slots

    def one(state: PyTree) -> PyTree:
        return env.game.step(rng, state, jnp.zeros(slots, jnp.int32))[1].events

    return jax.vmap(one)(states.game)


rollout = compiled(_rollout, quick=True)
