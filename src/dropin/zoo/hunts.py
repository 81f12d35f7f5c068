"""How well hunters and prey of Wolfpack do against each other."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from dropin.adhoc import AdHoc, make
from dropin.dice import Dice
from dropin.teams.openness import Closed
from dropin.teams.types import Type


def captures(
    types: Sequence[str | Type], episodes: int = 200, seed: int = 1, **changes: Any
) -> np.ndarray:
    """Captures in each of so many episodes of 200 steps, by a closed team of three."""
    env = make("wolfpack", types=types, openness=Closed(), **changes)
    return np.asarray(_hunt(env, jax.random.split(jax.random.key(seed), episodes)))


@eqx.filter_jit
def _hunt(env: AdHoc, keys: PRNGKeyArray) -> Int[Array, " episode"]:
    def episode(key: PRNGKeyArray) -> Int[Array, ""]:
        first, key = jax.random.split(key)
        state, _ = env.reset(first)

        def step(state: Any, key: PRNGKeyArray) -> tuple[Any, Int[Array, ""]]:
            acting, key = jax.random.split(key)
            # Also the learner's slot is played by a type.
            actions, cast = env.team.pool.act(Dice(acting), state.cast, state.game, state.arrived)
            state = eqx.tree_at(lambda state: state.cast, state, cast)
            state, told = env.step_all(key, state, actions, restart=False)
            return state, jnp.sum(jnp.any(told.happened.captured, axis=0))

        return jnp.sum(jax.lax.scan(step, state, jax.random.split(key, 200))[1])

    return jax.vmap(episode)(keys)
