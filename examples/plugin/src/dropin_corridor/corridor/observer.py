"""What each agent sees of the corridor, for its type to act on."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt32

from dropin.games.base import StepRNG
from dropin.teams.pool import Observer
from dropin_corridor.corridor.game import Corridor, State

__all__ = ["View", "make_observer", "observe"]


class View(eqx.Module):
    """The corridor as one agent sees it."""

    me: Int[Array, ""]
    """The agent's own cell."""
    agents: Int[Array, " slot"]
    """The cell of every agent; slot 0 is the learner."""


def observe(game: Corridor, rng: StepRNG, state: State, agent_seed: UInt32[Array, " slot"]) -> View:
    """Return the view of each agent, with a leading slot axis.

    Args:
        game: Not used; the state says it all.
        rng: Not used; everybody sees everything.
        state: The state of the game.
        agent_seed: Random bits drawn when each agent entered.
    """
    del game, rng
    slots = agent_seed.shape[0]
    return View(me=state.cell, agents=jnp.broadcast_to(state.cell[None], (slots, slots)))


def make_observer(rules: str) -> Observer:
    """Return what agents see, which is the same under all rules."""
    del rules
    return observe
