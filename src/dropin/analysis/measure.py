"""Measuring what an agent thinks while it plays."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from dropin.adhoc import AdHoc, Observation, TimeStep
from dropin.agents import Agent, agent_player, consider
from dropin.compilation import compiled
from dropin.errors import InputError
from dropin.learners.base import Outlook


class Thought(eqx.Module):
    """A step of an agent."""

    state: Any
    """Of the game, when the agent looked at it."""
    seen: Observation
    outlook: Outlook
    """What the agent made of it."""
    step: TimeStep
    """What then happened."""


Question = Callable[[AdHoc, Thought], Any]
"""What to measure in a step: a pytree of arrays."""


def measure(
    agent: Agent,
    env: AdHoc,
    question: Question,
    *,
    steps: int = 3000,
    envs: int = 8,
    policy: str = "greedy",
    seed: int = 0,
) -> Any:
    """The answers to a question at every step, as NumPy arrays [time, env, ...].

    The agent plays in parallel environments; episodes follow one another.
    """
    if steps < 1 or envs < 1:
        raise InputError("A measurement takes at least one step of one environment.")
    agent_player(agent, env, policy)
    key = jax.random.key(seed)
    return jax.tree.map(np.asarray, _measure(env, agent, key, question, (steps, envs), policy))


def _measure(
    env: AdHoc,
    agent: Agent,
    key: PRNGKeyArray,
    question: Question,
    size: tuple[int, int],
    policy: str,
) -> Any:
    steps, envs = size
    placing, playing = jax.random.split(key)
    states, seen = jax.vmap(env.reset)(jax.random.split(placing, envs))
    memory = jax.vmap(lambda _: agent.start(env.slots))(jnp.arange(envs))

    def one(
        thinking: PRNGKeyArray, acting: PRNGKeyArray, state: Any, seen: Observation, memory: Any
    ) -> Any:
        action, outlook, memory = consider(agent, thinking, seen, memory, policy)
        after, step = env.step(acting, state, action)
        answer = question(env, Thought(state.game, seen, outlook, step))
        return (after, step.observation, memory), answer

    def step(place: Any, key: PRNGKeyArray) -> Any:
        return jax.vmap(one)(*jax.random.split(key, (2, envs)), *place)

    _, answers = jax.lax.scan(step, (states, seen, memory), jax.random.split(playing, steps))
    return answers


_measure = compiled(_measure)
