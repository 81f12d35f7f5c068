"""What GPL predicts about its teammates in Wolfpack (paper: appendix H)."""

from typing import Unpack

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dropin.agents import Agent
from dropin.analysis.measure import (
    AgentStep,
    MeasureOptions,
    measure,
    require_game,
    require_utilities,
)
from dropin.env import AnyEnv
from dropin.games.wolfpack.game import Wolfpack
from dropin.games.wolfpack.state import State, manhattan_distance
from dropin.models.coordination import Utilities

__all__ = ["capture_utilities", "teammate_utilities"]


class _Teammates(eqx.Module):
    """The utility of each teammate, and how far it is from a prey."""

    utility: Float[Array, " teammate"]
    """The mean of its individual utilities over actions."""
    distance: Float[Array, " teammate"]
    """Its distance to the prey that is nearest to the learner."""
    present: Bool[Array, " teammate"]


def _measure_teammates(env: AnyEnv, step: AgentStep) -> _Teammates:
    del env
    state: State = step.state
    utilities: Utilities = step.prediction.utilities
    nearest = jnp.argmin(manhattan_distance(state.hunters[:1], state.prey))
    distance = manhattan_distance(state.hunters[1:], state.prey[nearest][None])
    return _Teammates(
        utility=jnp.mean(utilities.individual[1:], axis=1),
        distance=distance.astype(jnp.float32),
        present=state.present[1:],
    )


def teammate_utilities(
    agent: Agent, env: AnyEnv, **options: Unpack[MeasureOptions]
) -> tuple[np.ndarray, np.ndarray]:
    """Measure the individual utility of each teammate, and how far it is from the prey.

    Args:
        agent: An agent with a coordination graph, as GPL's.
        env: An environment with Wolfpack.
        **options: Options of `measure`, such as `steps` and `num_envs`.

    Returns:
        Two flat arrays, with an entry for every teammate that is present at a step: its individual
        utility, averaged over its actions, and its Manhattan distance to the prey that is nearest
        to the learner.

    Raises:
        InputError: If it is another game, or the agent has no utilities.
    """
    require_game(env, Wolfpack)
    require_utilities(agent, env)
    found = measure(agent, env, _measure_teammates, **options)
    return found.utility[found.present], found.distance[found.present]


class _Captures(eqx.Module):
    """The surplus of what each pair did, and which pairs captured a prey with the learner."""

    surplus: Float[Array, "slot slot"]
    """Of the pairs (j, k) with j < k; 0 elsewhere."""
    in_pack: Bool[Array, "slot slot"]
    """Whether both took part in a capture together with the learner."""


def _measure_captures(env: AnyEnv, step: AgentStep) -> _Captures:
    utilities: Utilities = step.prediction.utilities
    actions, slots = step.step.actions, env.slots
    surplus = jnp.zeros((slots, slots))
    for j in range(slots):
        for k in range(j + 1, slots):
            utility = utilities.factors.pair_utility(j, k)
            chosen = utility[actions[j], actions[k]]
            mean_of_others = (jnp.sum(utility) - chosen) / (utility.size - 1)
            surplus = surplus.at[j, k].set(chosen - mean_of_others)
    captured = step.step.events.captured
    with_learner = captured & captured[:1]
    in_pack = jnp.any(with_learner[:, None] & with_learner[None], axis=2)
    return _Captures(surplus, in_pack & jnp.triu(jnp.ones((slots, slots), bool), 1))


def capture_utilities(agent: Agent, env: AnyEnv, **options: Unpack[MeasureOptions]) -> np.ndarray:
    """Measure C_jk(a): the surplus of the actions with which a pair captured a prey.

    It is the pairwise utility of what both did, less the mean over all other pairs of actions.

    Args:
        agent: An agent with a coordination graph, as GPL's.
        env: An environment with Wolfpack.
        **options: Options of `measure`, such as `steps` and `num_envs`.

    Returns:
        A flat array with an entry for every pair of agents, the learner among them or not, that
        captured a prey together with the learner.

    Raises:
        InputError: If it is another game, or the agent has no utilities.
    """
    require_game(env, Wolfpack)
    require_utilities(agent, env)
    found = measure(agent, env, _measure_captures, **options)
    return found.surplus[found.in_pack]
