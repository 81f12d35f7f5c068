"""What agents predict about shooting in FortAttack (paper: section 5.6, appendix I)."""

from dataclasses import dataclass
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
from dropin.evaluation.statistics import Estimate, estimate
from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.state import SHOOT, Geometry
from dropin.models.coordination import Utilities

__all__ = [
    "ATTACKER_IN",
    "ATTACKER_OUT",
    "GUARD_IN",
    "GUARD_OUT",
    "IN_RANGE",
    "OUT_OF_RANGE",
    "Values",
    "pair_utilities",
    "shooting_values",
]

IN_RANGE, OUT_OF_RANGE = "in range", "out of range"
GUARD_IN, GUARD_OUT = f"guard, {IN_RANGE}", f"guard, {OUT_OF_RANGE}"
ATTACKER_IN, ATTACKER_OUT = f"attacker, {IN_RANGE}", f"attacker, {OUT_OF_RANGE}"


@dataclass(frozen=True)
class Values:
    """Measured values, grouped by situation."""

    by_situation: dict[str, np.ndarray]
    """The values of each situation, a flat array."""

    @property
    def means(self) -> dict[str, Estimate | None]:
        """The mean in each situation; None for a situation that never occurred."""
        return {
            situation: estimate(values) if values.size else None
            for situation, values in self.by_situation.items()
        }


class _PairUtilities(eqx.Module):
    """What shooting adds for each guard and attacker, and which of them has the other in range."""

    guard: Float[Array, "guard attacker"]
    attacker: Float[Array, "guard attacker"]
    guard_in_range: Bool[Array, "guard attacker"]
    """Whether the guard has the attacker in range."""
    attacker_in_range: Bool[Array, "guard attacker"]
    """Whether the attacker has the guard in range."""
    present: Bool[Array, "guard attacker"]
    """Whether both are present."""


def _measure_pairs(env: AnyEnv, step: AgentStep) -> _PairUtilities:
    game, state, guards = require_game(env, FortAttack), step.state, env.team.slots
    utilities: Utilities = step.prediction.utilities
    rows = [
        [utilities.factors.pair_utility(j, k) for k in range(guards, env.slots)]
        for j in range(guards)
    ]
    pairs = jnp.stack([jnp.stack(row) for row in rows])
    in_laser = game.in_laser(Geometry.from_state(state))
    return _PairUtilities(
        guard=jnp.mean(pairs[:, :, SHOOT, :], axis=2),
        attacker=jnp.mean(pairs[:, :, :, SHOOT], axis=2),
        guard_in_range=in_laser[:guards, guards:],
        attacker_in_range=in_laser[guards:, :guards].T,
        present=state.present[:guards, None] & state.present[None, guards:],
    )


def pair_utilities(agent: Agent, env: AnyEnv, **options: Unpack[MeasureOptions]) -> Values:
    """Measure what a shot adds to GPL's joint action value, for all pairs of guard and attacker.

    For a guard it is the pairwise utility of shooting, averaged over the actions of the attacker;
    for an attacker it is averaged over the actions of the guard.

    Args:
        agent: An agent with a coordination graph, as GPL's.
        env: An environment with FortAttack.
        **options: Options of `measure`, such as `steps` and `num_envs`.

    Returns:
        The values of all pairs that are present, by `GUARD_IN`, `GUARD_OUT`, `ATTACKER_IN` and
        `ATTACKER_OUT`: who shoots, and whether it has the other in range.

    Raises:
        InputError: If it is another game, or the agent has no utilities.
    """
    require_game(env, FortAttack)
    require_utilities(agent, env)
    found = measure(agent, env, _measure_pairs, **options)
    present = found.present
    return Values(
        {
            GUARD_IN: found.guard[present & found.guard_in_range],
            GUARD_OUT: found.guard[present & ~found.guard_in_range],
            ATTACKER_IN: found.attacker[present & found.attacker_in_range],
            ATTACKER_OUT: found.attacker[present & ~found.attacker_in_range],
        }
    )


class _Shooting(eqx.Module):
    """The value of shooting and of the state, and whether an attacker is in range."""

    gap: Float[Array, ""]
    """Q(s, shoot) - max Q(s, a)."""
    value: Float[Array, ""]
    """V(s) = max Q(s, a)."""
    learner_in_range: Bool[Array, ""]
    """Whether the learner has an attacker in range."""
    guard_in_range: Bool[Array, ""]
    """Whether any guard has an attacker in range."""


def _measure_shooting(env: AnyEnv, step: AgentStep) -> _Shooting:
    game, state, guards = require_game(env, FortAttack), step.state, env.team.slots
    q_values = step.prediction.q_values
    in_laser = game.in_laser(Geometry.from_state(state))
    in_range = (in_laser & game.opponents_of(state))[:guards]
    value = jnp.max(q_values)
    return _Shooting(q_values[SHOOT] - value, value, jnp.any(in_range[0]), jnp.any(in_range))


def shooting_values(
    agent: Agent, env: AnyEnv, **options: Unpack[MeasureOptions]
) -> tuple[Values, Values]:
    """Measure how an agent of any learner values shooting.

    Args:
        agent: The agent.
        env: An environment with FortAttack.
        **options: Options of `measure`, such as `steps` and `num_envs`.

    Returns:
        Q(s, shoot) - max Q(s, a), by whether the learner has an attacker in range; and V(s) =
        max Q(s, a), by whether any guard has. The situations are `IN_RANGE` and `OUT_OF_RANGE`.

    Raises:
        InputError: If it is another game.
    """
    require_game(env, FortAttack)
    found = measure(agent, env, _measure_shooting, **options)
    learner, guard = found.learner_in_range, found.guard_in_range
    return (
        Values({IN_RANGE: found.gap[learner], OUT_OF_RANGE: found.gap[~learner]}),
        Values({IN_RANGE: found.value[guard], OUT_OF_RANGE: found.value[~guard]}),
    )
