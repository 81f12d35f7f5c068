"""Matches between guards and attackers of FortAttack, and how both sides behave in them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray

from dropin.core.observation import TimeStep
from dropin.core.specs import RULES
from dropin.env import AdHocEnv, EnvState, make
from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.state import ATTACKER, GUARD, State, StepEvents
from dropin.teams.types import Type
from dropin.zoo.episodes import play_episode
from dropin.zoo.recipe import Measurement

__all__ = [
    "ATTACKER_TYPES",
    "BEHAVIOUR_QUANTITIES",
    "GUARD_TYPES",
    "Matches",
    "SideBehaviour",
    "measure_behaviour",
    "play_matches",
]

GUARD_TYPES, ATTACKER_TYPES = ("G1", "G2", "G3", "G4", "G6"), ("A1", "A2")
"""The types of the pool, by side."""
BEHAVIOUR_QUANTITIES = {
    "share of steps shooting": "shooting_rate",
    "share of shots that hit": "shooting_accuracy",
    "spread over the width": "spread",
    "widest gap between neighbours": "widest_gap",
    "distance to the fort": "fort_distance",
}
"""What the fields of `SideBehaviour` are called on a card."""


class SideBehaviour(eqx.Module):
    """How the agents of one side behaved in each episode.

    A value is not a number in an episode in which there was nothing to average.
    """

    shooting_rate: Float[Array, "*episode"]
    """Share of the agents' steps in which they shot."""
    shooting_accuracy: Float[Array, "*episode"]
    """Share of the shots that hit."""
    spread: Float[Array, "*episode"]
    """Mean distance between the leftmost and the rightmost agent, as a share of the plane's
    width, over the steps with at least two agents."""
    fort_distance: Float[Array, "*episode"]
    """Mean distance to the fort."""
    widest_gap: Float[Array, "*episode"]
    """Mean of the widest gap between neighbours across the width, as a share of the spread, over
    the steps with at least three agents. With three agents it is between 0.5, if they are evenly
    spaced, and 1, if two are at the same place."""


class Matches(eqx.Module):
    """Episodes between two types."""

    fort_fell: Float[Array, "*episode"]
    """1 if the fort fell, else 0."""
    length: Float[Array, "*episode"]
    """Number of steps."""
    guards: SideBehaviour
    attackers: SideBehaviour


class _SideCounts(eqx.Module):
    """Sums over the agents of one side, in one step or in a whole episode."""

    agents: Float[Array, "*time"]
    shots: Float[Array, "*time"]
    hits: Float[Array, "*time"]
    fort_distance: Float[Array, "*time"]
    pairs: Float[Array, "*time"]
    """Steps with at least two agents."""
    spread: Float[Array, "*time"]
    triples: Float[Array, "*time"]
    """Steps with at least three agents."""
    widest_gap: Float[Array, "*time"]


def play_matches(
    guards: str | Type,
    attackers: str | Type,
    rules: str = "reference",
    team_limit: int = 3,
    episodes: int = 200,
    seed: int = 1,
) -> Matches:
    """Play episodes of guards of one type, in the learner's slot too, against one attacker type.

    An episode ends when the fort falls or time is up.

    Args:
        guards: The type of all guards.
        attackers: The type of all attackers.
        rules: The rules of the game.
        team_limit: Most guards at a time.
        episodes: Number of episodes.
        seed: Seed of the episodes.
    """
    env = make(
        "fortattack",
        rules=rules,
        team_limit=team_limit,
        types=[guards, attackers],
        ends_with_learner=False,
    )
    keys = jax.random.split(jax.random.key(seed), episodes)
    return jax.device_get(_play(env, keys, int(env.game.horizon)))


@eqx.filter_jit
def _play(env: AdHocEnv[State], keys: Key[Array, " episode"], num_steps: int) -> Matches:
    game = env.game
    assert isinstance(game, FortAttack)
    sides = np.array(env.sides)

    def record(
        state: EnvState[State], step: TimeStep
    ) -> tuple[tuple[_SideCounts, _SideCounts], Bool[Array, ""]]:
        guards, attackers = (
            _count(game, state.game, step.events, sides == side) for side in (GUARD, ATTACKER)
        )
        return (guards, attackers), step.events.fort_fell

    def episode(key: PRNGKeyArray) -> Matches:
        (counts, fort_fell), belongs = play_episode(env, key, num_steps, record)
        totals = jax.tree.map(lambda each: jnp.sum(jnp.where(belongs, each, 0.0), axis=0), counts)
        return Matches(
            jnp.any(fort_fell & belongs).astype(jnp.float32),
            jnp.sum(belongs, dtype=jnp.float32),
            *map(_behaviour, totals),
        )

    return jax.vmap(episode)(keys)


def _count(game: FortAttack, state: State, events: StepEvents, is_own: np.ndarray) -> _SideCounts:
    """Return the sums over one side in one step.

    Args:
        game: The game, with its parameters.
        state: The state before the step.
        events: What happened in the step.
        is_own: Which slots are of the side.
    """
    present = state.present & is_own
    num_agents = jnp.sum(present, dtype=jnp.float32)
    is_pair = (num_agents > 1).astype(jnp.float32)
    is_triple = (num_agents > 2).astype(jnp.float32)
    width = 2 * game.half_width
    # The numbers -9 and 9 are beyond the walls on either side.
    spread = jnp.max(jnp.where(present, state.x, -9.0)) - jnp.min(jnp.where(present, state.x, 9.0))
    is_right = present[None] & (state.x[None] > state.x[:, None])
    next_right = jnp.min(jnp.where(is_right, state.x[None], 9.0), axis=1)
    gaps = jnp.where(present & (next_right < 9.0), next_right - state.x, 0.0)
    widest_gap = jnp.max(gaps) / jnp.maximum(spread, 1e-6)
    return _SideCounts(
        agents=num_agents,
        shots=jnp.sum(events.fired & is_own, dtype=jnp.float32),
        hits=jnp.sum(jnp.any(events.hits, axis=1) & is_own, dtype=jnp.float32),
        fort_distance=jnp.sum(jnp.where(present, game.distance_to_fort(state), 0.0)),
        pairs=is_pair,
        spread=jnp.where(is_pair > 0, spread / width, 0.0),
        triples=is_triple,
        widest_gap=jnp.where(is_triple > 0, widest_gap, 0.0),
    )


def _behaviour(totals: _SideCounts) -> SideBehaviour:
    return SideBehaviour(
        shooting_rate=totals.shots / totals.agents,
        shooting_accuracy=totals.hits / totals.shots,
        spread=totals.spread / totals.pairs,
        fort_distance=totals.fort_distance / totals.agents,
        widest_gap=totals.widest_gap / totals.triples,
    )


def measure_behaviour(measured: Type, episodes: int = 200) -> list[Measurement]:
    """Measure how a type behaves against each type of the other side, with team limit 3.

    All agents of its side are of the type. How it behaves is averaged over its episodes against
    all types of the other side.

    Args:
        measured: The type.
        episodes: Number of episodes against each type of the other side, under each set of rules.
    """
    is_guard = measured.side == GUARD
    measurements = []
    for rules in RULES:
        behaviours: list[Any] = []
        for opponent in ATTACKER_TYPES if is_guard else GUARD_TYPES:
            pair = (measured, opponent) if is_guard else (opponent, measured)
            matches = play_matches(*pair, rules=rules, episodes=episodes)
            behaviours.append(matches.guards if is_guard else matches.attackers)
            quantity = f"forts that fall, against {opponent}, rules {rules}"
            measurements.append(Measurement.from_values(quantity, measured.name, matches.fort_fell))
        for quantity, name in BEHAVIOUR_QUANTITIES.items():
            values = np.concatenate([getattr(each, name) for each in behaviours])
            finite = values[np.isfinite(values)]
            if len(finite) > 1:
                measurements.append(
                    Measurement.from_values(f"{quantity}, rules {rules}", measured.name, finite)
                )
    return measurements
