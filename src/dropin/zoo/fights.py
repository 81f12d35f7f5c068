"""How well guards and attackers of FortAttack do against each other, and how they go about it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from dropin.adhoc import AdHoc, EnvState, make
from dropin.dice import Dice
from dropin.teams.types import Type


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
    lopsided: Float[Array, "*n"]
    """How unevenly it is divided between the left and the right half: 0 is evenly, 1 all on one."""


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
    right = jnp.sum(here & (state.x > 0), dtype=jnp.float32)
    uneven = jnp.abs(2 * right - number) / jnp.maximum(number, 1.0)
    to_fort = env.game.to_fort(state)  # pyright: ignore[reportAttributeAccessIssue]
    return {
        "steps": number,
        "shots": jnp.sum(happened.fired & own, dtype=jnp.float32),
        "hits": jnp.sum(jnp.any(happened.hits, axis=1) & own, dtype=jnp.float32),
        "company": company,
        "wide": jnp.where(company > 0, wide / width, 0.0),
        "uneven": jnp.where(company > 0, uneven, 0.0),
        "distance": jnp.sum(jnp.where(here, to_fort, 0.0)),
    }


def _conduct(sums: dict[str, Array]) -> Conduct:
    return Conduct(
        shooting=sums["shots"] / sums["steps"],
        accuracy=sums["hits"] / sums["shots"],
        spread=sums["wide"] / sums["company"],
        distance=sums["distance"] / sums["steps"],
        lopsided=sums["uneven"] / sums["company"],
    )
