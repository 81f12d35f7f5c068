"""How the agents of FortAttack move: thrust, turns, contact, soft walls and damping."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dropin.games.fortattack.state import (
    DOWN,
    FULL_TURN,
    LEFT,
    RIGHT,
    TURN_LEFT,
    TURN_RIGHT,
    UP,
    Geometry,
    State,
)

if TYPE_CHECKING:
    from dropin.games.fortattack.game import FortAttack

__all__ = ["move"]


def move(
    game: FortAttack,
    state: State,
    geometry: Geometry,
    actions: Int[Array, " slot"],
    moving: Bool[Array, " slot"],
) -> State:
    """Apply forces and turns to the agents that move.

    Args:
        game: The game, with its parameters.
        state: The state, without the agents that were hit.
        geometry: The geometry before anybody moved.
        actions: The action of each agent.
        moving: Which agents are still present.
    """
    touching = moving[:, None] & moving[None] & (geometry.distance > 0)
    overlap = jnp.maximum(2 * game.agent_radius - geometry.distance, 0.0)
    repulsion = jnp.where(touching, game.stiffness * overlap / geometry.distance, 0.0)
    force_x = -jnp.sum(repulsion * geometry.dx, axis=1)
    force_y = -jnp.sum(repulsion * geometry.dy, axis=1)
    thrust_x = _axis_thrust(game, actions, RIGHT, LEFT)
    thrust_y = _axis_thrust(game, actions, UP, DOWN)
    force_x += _wall_force(game, state.x, game.half_width) + thrust_x
    force_y += _wall_force(game, state.y, game.half_height) + thrust_y

    vx = (1 - game.damping) * state.vx + game.time_step * force_x
    vy = (1 - game.damping) * state.vy + game.time_step * force_y
    speed = jnp.sqrt(vx * vx + vy * vy)
    scale = jnp.where(speed > game.max_speed, game.max_speed / speed, 1.0)
    vx, vy = jnp.where(moving, scale * vx, 0.0), jnp.where(moving, scale * vy, 0.0)

    turn = jnp.where(actions == TURN_LEFT, game.turn_angle, 0.0)
    turn = jnp.where(actions == TURN_RIGHT, -game.turn_angle, turn)
    heading = state.heading + jnp.where(moving, turn, 0.0)
    heading = jnp.where(heading < 0, heading + FULL_TURN, heading)
    heading = jnp.where(heading >= FULL_TURN, heading - FULL_TURN, heading)
    return replace(
        state,
        x=state.x + game.time_step * vx,
        y=state.y + game.time_step * vy,
        vx=vx,
        vy=vy,
        heading=heading,
        time=state.time + 1,
    )


def _wall_force(
    game: FortAttack, position: Float[Array, " slot"], half_size: Float[Array, ""]
) -> Float[Array, " slot"]:
    """Return the force of the two walls at +-`half_size` of an axis."""
    above = jnp.maximum(position + game.agent_radius - half_size, 0.0)
    below = jnp.maximum(-half_size - (position - game.agent_radius), 0.0)
    return game.stiffness * (below - above)


def _axis_thrust(
    game: FortAttack, actions: Int[Array, " slot"], plus: int, minus: int
) -> Float[Array, " slot"]:
    """Return the thrust along the axis that the actions `plus` and `minus` move along."""
    return jnp.where(actions == plus, game.thrust, jnp.where(actions == minus, -game.thrust, 0.0))
