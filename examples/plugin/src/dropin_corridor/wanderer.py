"""A type for level-based foraging, written as a function from a view to an action."""

import jax.numpy as jnp
from jaxtyping import Array, Int

from dropin.games.lbf.game import LOAD
from dropin.games.lbf.observer import View

__all__ = ["wanderer"]


def wanderer(view: View) -> Int[Array, ""]:
    """Walks at random and loads every object that it passes."""
    moves = view.valid_actions & (jnp.arange(view.valid_actions.shape[0]) != LOAD)
    chosen = (view.uniform[0] * jnp.sum(moves).astype(jnp.float32)).astype(jnp.int32)
    move = jnp.argmax(jnp.cumsum(moves) > chosen).astype(jnp.int32)
    return jnp.where(view.valid_actions[LOAD], LOAD, move)
