"""Measuring what an agent predicts while it plays."""

from collections.abc import Callable
from typing import TypedDict, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from dropin._xla.compile import compiled
from dropin._xla.random import split
from dropin.agents import Agent, agent_policy
from dropin.core.errors import InputError
from dropin.core.observation import Observation, TimeStep
from dropin.env import AnyEnv
from dropin.learners.base import Prediction
from dropin.learners.network_policy import NetworkPolicy
from dropin.models.coordination import Utilities

__all__ = [
    "AgentStep",
    "MeasureOptions",
    "Measurement",
    "measure",
    "require_game",
    "require_utilities",
]

Game = TypeVar("Game")


class AgentStep(eqx.Module):
    """One step of an agent: what it saw and predicted, and what happened."""

    state: PyTree
    """The state of the game before the step."""
    observation: Observation
    prediction: Prediction
    """What the agent computed from the observation."""
    step: TimeStep
    """The result of the step."""


Measurement = Callable[[AnyEnv, AgentStep], PyTree]
"""`(env, agent_step) -> values`: what to measure in a step, a pytree of arrays."""


class MeasureOptions(TypedDict, total=False):
    """Options of `measure`; see there."""

    steps: int
    num_envs: int
    mode: str
    seed: int


def measure(
    agent: Agent,
    env: AnyEnv,
    measurement: Measurement,
    *,
    steps: int = 3000,
    num_envs: int = 8,
    mode: str = "greedy",
    seed: int = 0,
) -> PyTree:
    """Let an agent play and measure something at every step.

    The agent plays in parallel environments, and one episode follows another.

    Args:
        agent: The agent; its policy has to be a `NetworkPolicy`, as those of all learners of the
            package are.
        env: The environment, which the agent has to fit.
        measurement: What to measure: a pure function of the environment and an `AgentStep`. It is
            compiled, once for each function object.
        steps: Steps in each environment.
        num_envs: Parallel environments.
        mode: How the agent chooses actions, `greedy` or `sampled`.
        seed: The same seed gives the same values.

    Returns:
        The measured values as NumPy arrays [time, env, ...].

    Raises:
        InputError: If the agent does not fit, or makes no predictions.
    """
    if steps < 1 or num_envs < 1:
        raise InputError("A measurement takes at least one step of one environment.")
    agent_policy(agent, env, mode)
    policy = _network_policy(agent)
    key = jax.random.key(seed)
    return jax.tree.map(
        np.asarray, _measure(env, policy, key, measurement, (steps, num_envs), mode)
    )


def require_game(env: AnyEnv, kind: type[Game]) -> Game:
    """Return the game of an environment if it is of one class.

    Args:
        env: The environment.
        kind: The class that its game has to be of.

    Raises:
        InputError: If it is another game.
    """
    if not isinstance(env.game, kind):
        raise InputError(f"This analysis is for {kind.__name__}, not for {env.game.name!r}.")
    return env.game


def require_utilities(agent: Agent, env: AnyEnv) -> None:
    """Check that an agent predicts the utilities of a coordination graph, as GPL does.

    Args:
        agent: The agent.
        env: An environment that it can act in.

    Raises:
        InputError: If it does not, or if it does not fit the environment.
    """
    agent_policy(agent, env)
    policy = _network_policy(agent)
    prediction = eqx.filter_eval_shape(_first_prediction, env, policy, jax.random.key(0))
    if not isinstance(prediction.utilities, Utilities):
        raise InputError(
            f"{agent.learner} has no utilities: only learners with a coordination graph have, such"
            " as gpl-q."
        )


def _first_prediction(env: AnyEnv, policy: NetworkPolicy, key: PRNGKeyArray) -> Prediction:
    _, observation = env.reset(key)
    return policy.act_with_prediction(key, observation, policy.init_memory(env.slots))[1]


def _network_policy(agent: Agent) -> NetworkPolicy:
    """Return the policy of an agent if it makes predictions."""
    if not isinstance(agent.policy, NetworkPolicy):
        raise InputError(
            f"The agent of {agent.learner} cannot be analysed: its policy is no NetworkPolicy, so"
            " there are no predictions to look at."
        )
    return agent.policy


def _measure_steps(
    env: AnyEnv,
    policy: NetworkPolicy,
    key: PRNGKeyArray,
    measurement: Measurement,
    size: tuple[int, int],
    mode: str,
) -> PyTree:
    """Return the measured values [time, env, ...] of `size` = (steps, environments)."""
    steps, num_envs = size
    reset_key, play_key = split(key)
    states, observations = jax.vmap(env.reset)(split(reset_key, num_envs))
    memory = jax.vmap(lambda _: policy.init_memory(env.slots))(jnp.arange(num_envs))

    def one_env(
        act_key: PRNGKeyArray,
        step_key: PRNGKeyArray,
        state: PyTree,
        observation: Observation,
        memory: PyTree,
    ) -> PyTree:
        action, prediction, memory = policy.act_with_prediction(act_key, observation, memory, mode)
        following, step = env.step(step_key, state, action)
        values = measurement(env, AgentStep(state.game, observation, prediction, step))
        return (following, step.observation, memory), values

    def all_envs(carry: PyTree, key: PRNGKeyArray) -> PyTree:
        return jax.vmap(one_env)(*split(key, (2, num_envs)), *carry)

    carry = (states, observations, memory)
    return jax.lax.scan(all_envs, carry, split(play_key, steps))[1]


_measure = compiled(_measure_steps)
