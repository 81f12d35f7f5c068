"""What GPL makes of its teammates in Wolfpack (paper: appendix H)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dropin.adhoc import AdHoc
from dropin.agents import Agent
from dropin.analysis.measure import Thought, measure
from dropin.errors import InputError


class _Mates(eqx.Module):
    utility: Float[Array, " mate"]
    distance: Float[Array, " mate"]
    there: Bool[Array, " mate"]


def _mates(env: AdHoc, thought: Thought) -> _Mates:
    """Each teammate's mean utility and its distance to the prey that the learner is nearest to."""
    del env
    state = thought.state
    prey = state.prey[jnp.argmin(_distance(state.hunters[:1], state.prey)[0])]
    mates = state.hunters[1:]
    return _Mates(
        utility=jnp.mean(thought.outlook.utilities.individual[1:], axis=1),
        distance=_distance(mates, prey[None])[:, 0],
        there=state.present[1:],
    )


def _distance(hunters: Array, prey: Array) -> Float[Array, "hunter prey"]:
    apart = jnp.sum(jnp.abs(hunters[:, None] - prey[None]), axis=-1)
    return apart.astype(jnp.float32)


def teammate_utilities(agent: Agent, env: AdHoc, **how: Any) -> tuple[np.ndarray, np.ndarray]:
    """The mean individual utility of each teammate at each step, and how far it is from the prey
    that is nearest to the learner. `how` goes to `measure`."""
    _check(agent)
    found = measure(agent, env, _mates, **how)
    return found.utility[found.there], found.distance[found.there]


class _Packs(eqx.Module):
    surplus: Float[Array, "slot slot"]
    pack: Bool[Array, "slot slot"]


def _packs(env: AdHoc, thought: Thought) -> _Packs:
    """What the pair of actions that was chosen has more than all others, and who captured
    together with the learner."""
    factors, actions = thought.outlook.utilities.factors, thought.step.actions
    slots = env.slots
    surplus = jnp.zeros((slots, slots))
    for j in range(slots):
        for k in range(j + 1, slots):
            pair = factors.utility(j, k)
            chosen = pair[actions[j], actions[k]]
            others = (jnp.sum(pair) - chosen) / (pair.size - 1)
            surplus = surplus.at[j, k].set(chosen - others)
    captured = thought.step.happened.captured
    together = captured & captured[:1]
    pack = jnp.any(together[:, None] & together[None], axis=2)
    return _Packs(surplus, pack & jnp.triu(jnp.ones((slots, slots), bool), 1))


def capture_utilities(agent: Agent, env: AdHoc, **how: Any) -> np.ndarray:
    """C_jk(a) at the steps in which the learner captures a prey, for the pairs of its pack.

    It is the pair utility of what both did, less the mean of all other pairs of actions. `how` goes
    to `measure`.
    """
    _check(agent)
    found = measure(agent, env, _packs, **how)
    return found.surplus[found.pack]


def _check(agent: Agent) -> None:
    if agent.meets.game != "wolfpack":
        raise InputError(f"There are no packs in {agent.meets.game!r}, but in 'wolfpack'.")
    if not agent.name.startswith("gpl"):
        raise InputError(f"{agent.name} has no utilities of teammates: only GPL has.")
