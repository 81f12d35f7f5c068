"""Recordings of single episodes, step by step, to show them."""

from collections.abc import Iterator
from dataclasses import dataclass

import equinox as eqx
import jax

from dropin._xla.random import subkeys
from dropin.core.observation import TimeStep
from dropin.env import AnyEnv, AnyEnvState
from dropin.policies import Policy

__all__ = ["Frame", "record_episode"]


@dataclass(frozen=True)
class Frame:
    """A state of an episode and the step that follows it."""

    state: AnyEnvState
    step: TimeStep | None
    """None for the last state."""
    score: float
    """The learner's return so far."""


def record_episode(env: AnyEnv, policy: Policy, seed: int) -> Iterator[Frame]:
    """Play one episode and yield its frames, the last state included.

    Args:
        env: The environment.
        policy: The policy in slot 0.
        seed: The same seed gives the same episode.
    """
    key = jax.random.key(seed)
    act, advance = eqx.filter_jit(policy.act), eqx.filter_jit(env.step)
    key, reset_key = subkeys(key)
    state, observation = eqx.filter_jit(env.reset)(reset_key)
    memory = policy.init_memory(env.slots)
    score, done = 0.0, False
    while not done:
        key, act_key, step_key = subkeys(key, 3)
        action, memory = act(act_key, env, state, observation, memory)
        following, step = advance(step_key, state, action, auto_reset=False)
        yield Frame(state, step, score)
        state, observation = following, step.final_observation
        score, done = score + float(step.reward), bool(step.done)
    yield Frame(state, None, score)
