"""The types of teammates in the corridor."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from dropin.teams.types import PolicyInput, Type, as_type
from dropin_corridor.corridor.game import EAST, STAY, WEST
from dropin_corridor.corridor.observer import View

__all__ = ["Sentry", "make_types", "shadow", "walk_to"]


def walk_to(target: Int[Array, "*n"], cell: Int[Array, "*n"]) -> Int[Array, "*n"]:
    """Return the action that leads from a cell towards a target."""
    return jnp.where(target < cell, WEST, jnp.where(target > cell, EAST, STAY))


def shadow(view: View) -> Int[Array, ""]:
    """Follows the learner."""
    return walk_to(view.agents[0], view.me)


class Sentry(Type):
    """Waits at a gate that it picks when it enters; once that one is open, at the next one."""

    def plan(self, inputs: PolicyInput, memory: Any) -> tuple[Int[Array, " actor"], Any]:
        """Walk to the first closed gate, counted from the one that each actor has picked."""
        is_open, gate_cells = inputs.state.is_open, inputs.game.gate_cells
        gates = is_open.shape[0]
        picked = (inputs.agent_seed % jnp.uint32(gates)).astype(jnp.int32)
        order = (jnp.arange(gates)[None] - picked[:, None]) % gates
        target = gate_cells[jnp.argmin(jnp.where(is_open[None], gates, order), axis=1)]
        return walk_to(target, inputs.views.me), memory


def make_types(rules: str) -> dict[str, Callable[[], Type]]:
    """Return the pool of types, which is the same under all rules."""
    del rules
    return {
        "sentry": partial(Sentry, "sentry", "waits at a gate of its choice"),
        "shadow": partial(as_type, shadow),
    }
