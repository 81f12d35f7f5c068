"""What agents make of shooting in FortAttack (paper: section 5.6, appendix I)."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dropin.adhoc import AdHoc
from dropin.agents import Agent
from dropin.analysis.measure import Thought, measure
from dropin.errors import InputError
from dropin.evaluation.statistics import Estimate, estimate
from dropin.games.fortattack.game import SHOOT
from dropin.games.fortattack.state import Geometry

GUARD_IN, GUARD_OUT = "guard, in range", "guard, out of range"
ATTACKER_IN, ATTACKER_OUT = "attacker, in range", "attacker, out of range"


@dataclass(frozen=True)
class Values:
    """Numbers that were measured, by situation."""

    of: dict[str, np.ndarray]

    @property
    def means(self) -> dict[str, Estimate | None]:
        """The mean in each situation; None where there was no such situation."""
        return {name: estimate(each) if each.size else None for name, each in self.of.items()}


class _Pairs(eqx.Module):
    guard: Float[Array, "guard attacker"]
    attacker: Float[Array, "guard attacker"]
    guard_can: Bool[Array, "guard attacker"]
    attacker_can: Bool[Array, "guard attacker"]
    there: Bool[Array, "guard attacker"]


def _pairs(env: AdHoc, thought: Thought) -> _Pairs:
    """For every guard and attacker what shooting adds, and who has whom in range."""
    state, guards = thought.state, env.team.slots
    factors = thought.outlook.utilities.factors
    rows = [[factors.utility(j, k) for k in range(guards, env.slots)] for j in range(guards)]
    pairs = jnp.stack([jnp.stack(row) for row in rows])
    reach = env.game.in_laser(Geometry.of(state))  # pyright: ignore[reportAttributeAccessIssue]
    present = state.present
    return _Pairs(
        guard=jnp.mean(pairs[:, :, SHOOT, :], axis=2),
        attacker=jnp.mean(pairs[:, :, :, SHOOT], axis=2),
        guard_can=reach[:guards, guards:],
        attacker_can=reach[guards:, :guards].T,
        there=present[:guards, None] & present[None, guards:],
    )


def pair_utilities(agent: Agent, env: AdHoc, **how: Any) -> Values:
    """What a guard's or an attacker's shot adds to GPL's joint value, over all present pairs.

    For a guard it is the mean over the attacker's actions of the pair utility of shooting, for an
    attacker the mean over the guard's; apart for those who have the other in range and for those
    who do not. `how` goes to `measure`.
    """
    _check_game(agent)
    if not agent.name.startswith("gpl"):
        raise InputError(f"{agent.name} has no pair utilities: only GPL has.")
    found = measure(agent, env, _pairs, **how)
    there = found.there
    return Values(
        {
            GUARD_IN: found.guard[there & found.guard_can],
            GUARD_OUT: found.guard[there & ~found.guard_can],
            ATTACKER_IN: found.attacker[there & found.attacker_can],
            ATTACKER_OUT: found.attacker[there & ~found.attacker_can],
        }
    )


class _Shooting(eqx.Module):
    gap: Float[Array, ""]
    worth: Float[Array, ""]
    learner_can: Bool[Array, ""]
    anybody_can: Bool[Array, ""]


def _shooting(env: AdHoc, thought: Thought) -> _Shooting:
    """Values of the learner's actions, and whether an attacker is in range."""
    values, state, guards = thought.outlook.values, thought.state, env.team.slots
    reach = env.game.in_laser(Geometry.of(state))  # pyright: ignore[reportAttributeAccessIssue]
    can = (reach & env.game.opposed(state))[:guards]  # pyright: ignore[reportAttributeAccessIssue]
    best = jnp.max(values)
    return _Shooting(values[SHOOT] - best, best, jnp.any(can[0]), jnp.any(can))


def shooting_values(agent: Agent, env: AdHoc, **how: Any) -> tuple[Values, Values]:
    """Q(s, shoot) - max Q(s, a), and V(s) = max Q(s, a), of any agent.

    The first apart for states in which the learner has an attacker in range and others, the second
    for states in which any guard has. `how` goes to `measure`.
    """
    _check_game(agent)
    found = measure(agent, env, _shooting, **how)
    gap, worth = found.gap, found.worth
    return (
        Values({"in range": gap[found.learner_can], "out of range": gap[~found.learner_can]}),
        Values({"in range": worth[found.anybody_can], "out of range": worth[~found.anybody_can]}),
    )


def _check_game(agent: Agent) -> None:
    if agent.meets.game != "fortattack":
        raise InputError(f"There is no shooting in {agent.meets.game!r}, but in 'fortattack'.")
