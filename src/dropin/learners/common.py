"""The pieces of an update that all learning algorithms share."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.random import split, uniform
from dropin.core.metrics import Difference, Mean, Metric, Sum
from dropin.core.observation import Observation, TimeStep
from dropin.env import AnyEnv, AnyEnvState
from dropin.learners.base import LearnerInput, LearnerNetwork, Memory

__all__ = [
    "EnvCarry",
    "EpisodeReturns",
    "apply_gradients",
    "episode_metrics",
    "epsilon_greedy",
    "masked_sum",
    "reset_envs",
    "teammate_action_probs",
    "update_target",
    "values_of_actions",
]

Params = TypeVar("Params")

EnvCarry = tuple[AnyEnvState, Observation, Memory]
"""All environments between two steps: states, observations, and memories that are up to date with
who has arrived."""


def reset_envs(
    env: AnyEnv, network: LearnerNetwork[Any, Any], num_envs: int, key: PRNGKeyArray
) -> EnvCarry:
    """Start an episode in every environment.

    Args:
        env: The environment.
        network: The networks whose memory is to be carried along.
        num_envs: Number of parallel environments.
        key: A random key, used for nothing else.
    """
    resetting, arriving = split(key, (2, num_envs))
    states, observation = jax.vmap(env.reset)(resetting)
    memory = jax.vmap(lambda _: network.init_memory(env.slots))(jnp.arange(num_envs))
    return states, observation, jax.vmap(network.on_arrival)(memory, observation, arriving)


def apply_gradients(
    optimizer: optax.GradientTransformation,
    params: Params,
    opt_state: PyTree,
    gradients: PyTree,
) -> tuple[Params, PyTree]:
    """Take one optimiser step.

    Args:
        optimizer: The Optax optimiser.
        params: A pytree of weights.
        opt_state: The state of the optimiser.
        gradients: Gradients with the structure of the weights.

    Returns:
        The weights and the optimiser's state after the step.
    """
    with jax.numpy_dtype_promotion("standard"):  # Optax mixes its counter with floats.
        updates, opt_state = optimizer.update(gradients, opt_state)
    return eqx.apply_updates(params, updates), opt_state


def update_target(params: Params, target: Params, rate: float) -> Params:
    """Move target weights towards the online weights.

    Args:
        params: The online weights.
        target: The target weights.
        rate: How far to move: 0 not at all, 1 all the way.
    """
    moved: Any = optax.incremental_update(cast(Any, params), cast(Any, target), rate)
    return moved


class EpisodeReturns(eqx.Module):
    """The returns of the running episodes so far."""

    returns: Float[Array, " env"]
    shaping: Float[Array, " env"]
    """The part of the returns that only guides learning."""

    @classmethod
    def zeros(cls, num_envs: int) -> "EpisodeReturns":
        """Return zeros for every environment."""
        return cls(jnp.zeros(num_envs), jnp.zeros(num_envs))


def episode_metrics(
    env: AnyEnv, running: EpisodeReturns, steps: TimeStep
) -> tuple[EpisodeReturns, dict[str, Metric]]:
    """Compute the metrics of a rollout that do not depend on the learner.

    Args:
        env: The environment.
        running: The returns of the running episodes before the rollout.
        steps: The steps of the rollout, with leading axes [time, env].

    Returns:
        The returns of the running episodes afterwards. The number of episodes that ended, their
        mean return with and without shaping, the mean team size, and the game's own metrics.
    """
    returns, total = _finished(running.returns, steps.reward, steps.done)
    shaping, total_shaping = _finished(running.shaping, steps.shaping[..., 0], steps.done)
    episodes = jnp.sum(steps.done, dtype=jnp.float32)
    metrics: dict[str, Metric] = {
        "episodes": Sum(episodes),
        "return": Mean(total, episodes),
        "unshaped_return": Difference(total, total_shaping, episodes),
        "team_size": Mean.of(jnp.mean(jnp.sum(steps.acted, axis=-1).astype(jnp.float32))),
    }
    own: Mapping[str, Mean] = jax.vmap(jax.vmap(env.game.metrics))(steps.events)
    metrics |= jax.tree.map(lambda leaf: jnp.sum(leaf, axis=(0, 1)), dict(own))
    return EpisodeReturns(returns, shaping), metrics


def _finished(
    running: Float[Array, " env"],
    rewards: Float[Array, "time env"],
    done: Bool[Array, "time env"],
) -> tuple[Float[Array, " env"], Float[Array, ""]]:
    """Return the sums of the running episodes, and the total of the episodes that ended."""
    total = jnp.float32(0)
    for reward, ended in zip(rewards, done, strict=True):
        running = running + reward
        total = total + jnp.sum(jnp.where(ended, running, 0.0))
        running = jnp.where(ended, 0.0, running)
    return running, total


def epsilon_greedy(
    q_values: Float[Array, " action"], epsilon: Float[Array, ""], key: PRNGKeyArray
) -> Int[Array, ""]:
    """Return the best action or, with probability epsilon, a uniformly random one.

    Args:
        q_values: The value of each action.
        epsilon: Probability of a random action.
        key: A random key, used for nothing else.
    """
    drawn = uniform(key, (2,))
    random_action = (drawn[0] * q_values.shape[0]).astype(jnp.int32)
    return jnp.where(drawn[1] < epsilon, random_action, jnp.argmax(q_values).astype(jnp.int32))


def values_of_actions(
    values: Float[Array, "*n action"], actions: Int[Array, "*n"]
) -> Float[Array, "*n"]:
    """Return the value of each row's action, without a gather.

    Args:
        values: Rows with a value per action.
        actions: The action of each row.
    """
    index = jnp.expand_dims(jnp.arange(values.shape[-1]), range(actions.ndim))
    return jnp.sum(jnp.where(actions[..., None] == index, values, 0.0), axis=-1)


def masked_sum(mask: Bool[Array, "*n"], values: Float[Array, "*n"]) -> Float[Array, ""]:
    """Return the sum of the values where the mask is true.

    Args:
        mask: Which values to add up.
        values: The values.
    """
    return jnp.sum(jnp.where(mask, values, 0.0))


def teammate_action_probs(inputs: LearnerInput) -> Float[Array, "slot action"]:
    """Return the predicted action probabilities of teammates, as input of a value network.

    No gradient flows through them. The rows of the learner and of absent agents are -1.
    """
    assert inputs.teammate_logits is not None
    probs = jax.nn.softmax(jax.lax.stop_gradient(inputs.teammate_logits))
    teammates = inputs.observation.present & (jnp.arange(probs.shape[0]) > 0)
    return jnp.where(teammates[:, None], probs, -1.0)
