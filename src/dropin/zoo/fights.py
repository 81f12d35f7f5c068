"""How well guards and attackers of FortAttack do against each other, and how they go about it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from dropin.adhoc import AdHoc, EnvState, make
from dropin.dice import Dice
from dropin.games import RULES
from dropin.teams.types import Type
from dropin.zoo.recipe import Score

GUARDS, ATTACKERS = ("G1", "G2", "G3", "G4", "G6"), ("A1", "A2")
"""The types of the pool, of either side."""


class Conduct(eqx.Module):
    """What one side did in an episode."""

    shooting: Float[Array, "*n"]
    """Share of its agents' steps in which they shot."""
    accuracy: Float[Array, "*n"]
    """Share of the shots that hit; not a number if there were none."""
    spread: Float[Array, "*n"]
    """Mean distance between the leftmost and the rightmost, as a share of the plane's width."""
    distance: Float[Array, "*n"]
    """Mean distance to the fort."""
    gap: Float[Array, "*n"]
    """The widest gap between neighbours across the width, as a share of the spread: with three
    agents from a half, if they stand evenly, to 1, if two are together and one is not."""


class Fight(eqx.Module):
    """Episodes between two types."""

    fallen: Float[Array, " episode"]
    """Whether the fort fell."""
    length: Float[Array, " episode"]
    guards: Conduct
    attackers: Conduct


def fight(
    guards: str | Type,
    attackers: str | Type,
    rules: str = "reference",
    team_limit: int = 3,
    episodes: int = 200,
    seed: int = 1,
) -> Fight:
    """So many episodes of a team of guards, the learner's place included, against attackers.

    An episode ends when the fort falls or the guards have held out.
    """
    env = make(
        "fortattack",
        rules=rules,
        team_limit=team_limit,
        types=[guards, attackers],
        ends_with_learner=False,
    )
    keys = jax.random.split(jax.random.key(seed), episodes)
    return jax.device_get(_fight(env, keys, int(env.game.horizon)))


@eqx.filter_jit
def _fight(env: AdHoc, keys: PRNGKeyArray, steps: int) -> Fight:
    return jax.vmap(lambda key: _episode(env, key, steps))(keys)


def _episode(env: AdHoc, key: PRNGKeyArray, steps: int) -> Fight:
    sides = np.array(env.sides)
    first, key = jax.random.split(key)
    state, _ = env.reset(first)

    def step(carry: tuple[EnvState, Array], number: Array) -> tuple[Any, Any]:
        state, over = carry
        acting, stepping = jax.random.split(jax.random.fold_in(key, number))
        actions, cast = env.team.pool.act(Dice(acting), state.cast, state.game, state.arrived)
        before = eqx.tree_at(lambda state: state.cast, state, cast)
        after, told = env.step_all(stepping, before, actions, restart=False)
        counts = [_counted(env, before.game, told.happened, sides == side) for side in (0, 1)]
        counts = jax.tree.map(lambda each: jnp.where(over, 0.0, each), counts)
        fell, went = told.happened.fallen & ~over, ~over
        return (after, over | told.done), (counts, fell, went)

    _, (counts, fell, went) = jax.lax.scan(step, (state, jnp.array(False)), jnp.arange(steps))
    conduct = [_conduct(jax.tree.map(lambda each: jnp.sum(each, axis=0), part)) for part in counts]
    return Fight(jnp.any(fell).astype(jnp.float32), jnp.sum(went, dtype=jnp.float32), *conduct)


def _counted(env: AdHoc, state: Any, happened: Any, own: np.ndarray) -> dict[str, Array]:
    """Sums over one side in one step."""
    here = state.present & own
    number = jnp.sum(here, dtype=jnp.float32)
    company = (number > 1).astype(jnp.float32)
    width = 2 * env.game.half_width  # pyright: ignore[reportAttributeAccessIssue]
    wide = jnp.max(jnp.where(here, state.x, -9.0)) - jnp.min(jnp.where(here, state.x, 9.0))
    # To the next one on the right; the rightmost has none.
    right = jnp.where(here[None] & (state.x[None] > state.x[:, None]), state.x[None], 9.0)
    gaps = jnp.where(here & (jnp.min(right, axis=1) < 9.0), jnp.min(right, axis=1) - state.x, 0.0)
    gap = jnp.max(gaps) / jnp.maximum(wide, 1e-6)
    crowd = (number > 2).astype(jnp.float32)
    to_fort = env.game.to_fort(state)  # pyright: ignore[reportAttributeAccessIssue]
    return {
        "steps": number,
        "shots": jnp.sum(happened.fired & own, dtype=jnp.float32),
        "hits": jnp.sum(jnp.any(happened.hits, axis=1) & own, dtype=jnp.float32),
        "company": company,
        "wide": jnp.where(company > 0, wide / width, 0.0),
        "crowd": crowd,
        "gap": jnp.where(crowd > 0, gap, 0.0),
        "distance": jnp.sum(jnp.where(here, to_fort, 0.0)),
    }


def _conduct(sums: dict[str, Array]) -> Conduct:
    return Conduct(
        shooting=sums["shots"] / sums["steps"],
        accuracy=sums["hits"] / sums["shots"],
        spread=sums["wide"] / sums["company"],
        distance=sums["distance"] / sums["steps"],
        gap=sums["gap"] / sums["crowd"],
    )


def conduct(of: Type, episodes: int = 200) -> list[Score]:
    """What a type does against each type of the other side, a whole side of it, at limit 3.

    Shares, accuracy and places are those of all these episodes together.
    """
    rows = []
    for rules in RULES:
        fights = {}
        for other in ATTACKERS if of.side == 0 else GUARDS:
            pair = (of, other) if of.side == 0 else (other, of)
            fights[other] = fight(*pair, rules=rules, episodes=episodes)
            falls = f"forts that fall, against {other}, rules {rules}"
            rows.append(Score.of(falls, of.name, fights[other].fallen))
        sides = [each.guards if of.side == 0 else each.attackers for each in fights.values()]
        for what, name in (
            ("share of steps shooting", "shooting"),
            ("share of shots that hit", "accuracy"),
            ("spread over the width", "spread"),
            ("widest gap in it", "gap"),
            ("distance to the fort", "distance"),
        ):
            values = np.concatenate([getattr(side, name) for side in sides])
            known = values[np.isfinite(values)]
            if len(known) > 1:
                rows.append(Score.of(f"{what}, rules {rules}", of.name, known))
    return rows
