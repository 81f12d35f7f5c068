"""Episodes in which types of the pool act for everybody, the learner's slot included."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from dropin._xla.random import StepRNG
from dropin.core.observation import TimeStep
from dropin.env import AnyEnv, AnyEnvState

__all__ = ["act_by_types", "play_episode"]

Record = TypeVar("Record")


def act_by_types(
    env: AnyEnv, state: AnyEnvState, key: PRNGKeyArray
) -> tuple[Int[Array, " slot"], AnyEnvState]:
    """Let the type of each agent choose its action.

    Args:
        env: The environment.
        state: The state of the environment.
        key: A random key, used for nothing else.

    Returns:
        An action per slot, and the state with the types' memories afterwards.
    """
    actions, roster = env.team.pool.act(
        StepRNG(key), env.game, state.roster, state.game, state.arrived
    )
    return actions, replace(state, roster=roster)


def play_episode(
    env: AnyEnv,
    key: PRNGKeyArray,
    num_steps: int,
    record: Callable[[AnyEnvState, TimeStep], Record],
) -> tuple[Record, Bool[Array, " time"]]:
    """Play one episode in which all agents act by their types.

    Args:
        env: The environment.
        key: A random key, used for nothing else.
        num_steps: Number of steps, at least as many as the episode has. Those after its end are
            computed too, but do not belong to it.
        record: A function `(state before the step, step) -> pytree` that says what to keep.

    Returns:
        What was recorded, with a leading time axis, and which of the steps belong to the episode.
    """
    reset_key, steps_key = jax.random.split(key)
    first, _ = env.reset(reset_key)

    def step(
        carry: tuple[AnyEnvState, Bool[Array, ""]], key: PRNGKeyArray
    ) -> tuple[tuple[AnyEnvState, Bool[Array, ""]], tuple[Record, Bool[Array, ""]]]:
        state, over = carry
        act_key, step_key = jax.random.split(key)
        actions, state = act_by_types(env, state, act_key)
        after, time_step = env.step_all(step_key, state, actions, auto_reset=False)
        return (after, over | time_step.done), (record(state, time_step), ~over)

    keys = jax.random.split(steps_key, num_steps)
    _, (records, belongs) = jax.lax.scan(step, (first, jnp.array(False)), keys)
    return records, belongs
