"""Scripted guards and attackers.

A script is a function from an agent's view to an action. The scripts are deliberately imperfect:
sometimes an agent takes a random action, and attackers miss many chances to shoot.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from dropin._xla.random import uniform_to_index
from dropin.games.fortattack.game import SPAWN_HEADING
from dropin.games.fortattack.observer import View
from dropin.games.fortattack.state import (
    DOWN,
    GUARD,
    LEFT,
    NOTHING,
    RIGHT,
    SHOOT,
    TURN_LEFT,
    TURN_RIGHT,
    UP,
)
from dropin.teams.types import PolicyInput, Type

__all__ = [
    "DECEIVE",
    "FLASH_LASER",
    "SNEAK",
    "SPREAD_OUT_FLASH_LASER",
    "Deceive",
    "FlashLaser",
    "Script",
    "ScriptedFighter",
    "Sneak",
    "distance_to",
    "move_towards",
    "position_in_line",
    "turn_towards",
]

GLIDE_PER_SPEED = 0.3
"""Distance that an agent glides after its last thrust, per unit of speed."""
ARRIVAL_DISTANCE = 0.06
"""Distance within which an agent counts as being at a place."""
OUTERMOST_COLUMN = 0.85
"""Where the columns that attackers walk along end, as a fraction of the half width."""

Script = Callable[[View], Int[Array, ""]]
"""view -> action"""


class ScriptedFighter(Type):
    """A guard or attacker that follows a script, except for random actions now and then."""

    script: Script
    epsilon: float = eqx.field(static=True, default=0.0)
    """Probability of a uniformly random action in a step."""

    def plan(self, inputs: PolicyInput, memory: PyTree) -> tuple[Int[Array, " actor"], PyTree]:
        """Return the action of each actor; there is no memory."""

        def act(view: View) -> Int[Array, ""]:
            explores = view.uniform[0] < self.epsilon
            # Below epsilon, the same number divided by epsilon is uniform on [0, 1) again.
            rescaled = view.uniform[0] / max(self.epsilon, 1e-6)
            random_action = uniform_to_index(rescaled, jnp.int32(SHOOT + 1))
            return jnp.where(explores, random_action, self.script(view))

        return jax.vmap(act)(inputs.views).astype(jnp.int32), memory


def move_towards(view: View, x: Float[Array, ""], y: Float[Array, ""]) -> Int[Array, ""]:
    """Return the action that brings an agent closer to a place.

    Args:
        view: The agent's view.
        x: Position of the place.
        y: Position of the place.

    Returns:
        Thrust along the axis on which the place is farther away, taking into account how far the
        agent will glide; nothing if it will arrive anyway.
    """
    right = x - view.x - GLIDE_PER_SPEED * view.vx
    up = y - view.y - GLIDE_PER_SPEED * view.vy
    horizontal, vertical = jnp.where(right > 0, RIGHT, LEFT), jnp.where(up > 0, UP, DOWN)
    arrives = jnp.maximum(jnp.abs(right), jnp.abs(up)) < ARRIVAL_DISTANCE
    move = jnp.where(jnp.abs(right) > jnp.abs(up), horizontal, vertical)
    return jnp.where(arrives, NOTHING, move)


def distance_to(view: View, x: Float[Array, ""], y: Float[Array, ""]) -> Float[Array, ""]:
    """Return the distance from an agent to a place.

    Args:
        view: The view of the agent.
        x: Position along x.
        y: Position along y.
    """
    return jnp.hypot(x - view.x, y - view.y)


def turn_towards(
    ahead: Float[Array, ""], left: Float[Array, ""]
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Return the turn by which an agent faces a place.

    Args:
        ahead: Distance of the place along the agent's heading.
        left: Distance of the place to the left of that.

    Returns:
        `TURN_LEFT` or `TURN_RIGHT`, and whether a turn is needed at all.
    """
    return jnp.where(left > 0, TURN_LEFT, TURN_RIGHT), (jnp.abs(left) > 0.15 * ahead)


def position_in_line(view: View) -> Float[Array, ""]:
    """Return an agent's position if its side lines up by slot: from -1 (left) to 1 (right)."""
    before = view.mates & (jnp.arange(len(view.mates)) < view.slot)
    team_size = jnp.sum(view.mates, dtype=jnp.float32) + 1
    return (2 * jnp.sum(before, dtype=jnp.float32) + 1) / team_size - 1


class FlashLaser(eqx.Module):
    """The script of guards that go to a post, face away from the fort and shoot all the time."""

    line_width: float = eqx.field(static=True)
    """Width of the line of posts, as a fraction of the plane's width."""
    fan_angle: float = eqx.field(static=True)
    """Angle by which the guard at either end of the line is turned outwards."""

    def __call__(self, view: View) -> Int[Array, ""]:
        """Go to the post, then turn, then shoot whether or not there is a target."""
        position = position_in_line(view)
        x = position * self.line_width * view.half_width
        y = view.half_height - view.fort_radius - 0.15
        heading_error = SPAWN_HEADING[GUARD] + self.fan_angle * position - view.heading
        turn, needs_turn = turn_towards(jnp.cos(heading_error), jnp.sin(heading_error))
        away = distance_to(view, x, y) > 2 * ARRIVAL_DISTANCE
        at_post = jnp.where(needs_turn, turn, SHOOT)
        return jnp.where(away, move_towards(view, x, y), at_post)


class Sneak(eqx.Module):
    """The script of attackers that spread out and walk to the fort through a gap."""

    shoot_probability: float = eqx.field(static=True)
    """Probability of shooting in a step in which the shot would hit."""

    def __call__(self, view: View) -> Int[Array, ""]:
        """Walk up the column that is far from all guards and near to the agent's own part."""
        columns = np.linspace(-OUTERMOST_COLUMN, OUTERMOST_COLUMN, 7, dtype=np.float32)
        own_column = position_in_line(view) * OUTERMOST_COLUMN * view.half_width
        # The first of the best columns; an arg-max over so few is much slower.
        best_score, column = jnp.float32(-jnp.inf), jnp.float32(0)
        for each in columns * view.half_width:
            room = jnp.float32(0.6)
            for x, is_guard in zip(view.xs, view.opponents, strict=True):
                room = jnp.where(is_guard, jnp.minimum(room, jnp.abs(x - each)), room)
            score = room - 0.6 * jnp.abs(each - own_column)
            column = jnp.where(score > best_score, each, column)
            best_score = jnp.maximum(best_score, score)
        return self.approach_fort(view, column)

    def approach_fort(self, view: View, column: Float[Array, ""]) -> Int[Array, ""]:
        """Return the action of an attacker that walks up a column and then to the fort.

        Args:
            view: The attacker's view.
            column: The x position to walk along until the attacker is near the fort.
        """
        fort_x, fort_y = jnp.float32(0), view.half_height
        is_high = view.y > view.half_height - view.fort_radius - 0.1
        is_near = distance_to(view, fort_x, fort_y) < view.fort_radius + 0.3
        move = jnp.where(
            is_high | is_near,
            move_towards(view, fort_x, fort_y),
            move_towards(view, column, view.y + 0.15),
        )
        shoots = jnp.any(view.in_laser) & (view.uniform[1] < self.shoot_probability)
        return jnp.where(shoots, SHOOT, move)


class Deceive(Sneak):
    """The script of attackers that all come from one side, except one from the other."""

    def __call__(self, view: View) -> Int[Array, ""]:
        """Walk up the column at the edge on whose side the attackers are on average.

        The attacker that is farthest from this edge walks up the column at the other edge.
        """
        mates = view.mates
        total_x = jnp.sum(jnp.where(mates, view.xs, 0.0)) + view.x
        edge = jnp.where(total_x >= 0, 1.0, -1.0)
        farther = mates & (edge * view.xs < edge * view.x)
        sneaks = ~jnp.any(farther) & jnp.any(mates)
        column = OUTERMOST_COLUMN * view.half_width * jnp.where(sneaks, -edge, edge)
        return self.approach_fort(view, column)


FLASH_LASER = FlashLaser(line_width=0.3, fan_angle=0.8)
"""In front of the fort, fanned out."""
SPREAD_OUT_FLASH_LASER = FlashLaser(line_width=0.8, fan_angle=0.0)
"""Across the width of the plane."""
SNEAK, DECEIVE = Sneak(shoot_probability=0.3), Deceive(shoot_probability=0.3)
