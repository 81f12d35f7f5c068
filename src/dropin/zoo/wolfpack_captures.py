"""How often hunters of Wolfpack capture prey."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PRNGKeyArray, PyTree

from dropin.core.observation import TimeStep
from dropin.env import AnyEnv, AnyEnvState, make
from dropin.games.wolfpack.prey import learned_prey
from dropin.teams.openness import Closed
from dropin.teams.types import Type
from dropin.zoo.episodes import play_episode

__all__ = ["count_captures"]

EPISODE_LENGTH = 200


def count_captures(
    types: Sequence[str | Type], episodes: int = 200, seed: int = 1, **settings: PyTree
) -> np.ndarray:
    """Count the captures of closed teams of three in episodes of 200 steps.

    The prey are those without memory, with which H5 and H6 learned, unless others are given.

    Args:
        types: The types that the hunters are drawn from.
        episodes: Number of episodes.
        seed: Seed of the episodes.
        **settings: Settings of the game that differ from the rules `paper`.

    Returns:
        Number of captures in each episode [episode].
    """
    settings = {"prey_policy": learned_prey(), **settings}
    env = make("wolfpack", types=types, openness=Closed(), **settings)
    return np.asarray(_count(env, jax.random.split(jax.random.key(seed), episodes)))


@eqx.filter_jit
def _count(env: AnyEnv, keys: Key[Array, " episode"]) -> Int[Array, " episode"]:
    def captures(state: AnyEnvState, step: TimeStep) -> Int[Array, ""]:
        del state
        return jnp.sum(jnp.any(step.events.captured, axis=0))

    def episode(key: PRNGKeyArray) -> Int[Array, ""]:
        return jnp.sum(play_episode(env, key, EPISODE_LENGTH, captures)[0])

    return jax.vmap(episode)(keys)
