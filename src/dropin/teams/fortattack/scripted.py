"""Guards and attackers that follow a script.

A script looks at an agent's view and names an action. They are not perfect, on purpose: now and
then an agent does anything, and attackers miss many chances to shoot.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin.dice import scale
from dropin.games.fortattack.game import (
    DOWN,
    FACING,
    LEFT,
    NOTHING,
    RIGHT,
    SHOOT,
    TURN_LEFT,
    TURN_RIGHT,
    UP,
)
from dropin.games.fortattack.state import GUARD
from dropin.teams.fortattack.view import View
from dropin.teams.types import Scene, Type

GLIDE = 0.3
"""How far an agent glides on for each unit of speed."""
NEAR = 0.06
"""An agent that is so close to a place is there."""

Script = Callable[[View], Int[Array, ""]]


class ScriptedFighter(Type):
    """A type that follows a script, but for the steps in which it does anything."""

    script: Script
    wild: float = eqx.field(static=True, default=0.0)
    """How often that is."""

    def plan(self, scene: Scene, memory: Any) -> tuple[Int[Array, " actor"], Any]:
        """The action of each actor."""

        def act(view: View) -> Int[Array, ""]:
            wild = view.chance[0] < self.wild
            anything = scale(view.chance[0] / max(self.wild, 1e-6), jnp.int32(SHOOT + 1))
            return jnp.where(wild, anything, self.script(view))

        return jax.vmap(act)(scene.views).astype(jnp.int32), memory


def go(view: View, x: Float[Array, ""], y: Float[Array, ""]) -> Int[Array, ""]:
    """Thrust along the axis on which the way to a place is longer; nothing if it is near."""
    right, up = x - view.x - GLIDE * view.vx, y - view.y - GLIDE * view.vy
    across, along = jnp.where(right > 0, RIGHT, LEFT), jnp.where(up > 0, UP, DOWN)
    there = jnp.maximum(jnp.abs(right), jnp.abs(up)) < NEAR
    return jnp.where(there, NOTHING, jnp.where(jnp.abs(right) > jnp.abs(up), across, along))


def off(view: View, x: Float[Array, ""], y: Float[Array, ""]) -> Float[Array, ""]:
    """How far a place is from the agent."""
    return jnp.hypot(x - view.x, y - view.y)


def turn(ahead: Float[Array, ""], left: Float[Array, ""]) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """The turn towards what lies so far ahead and to the left, and whether one is needed."""
    return jnp.where(left > 0, TURN_LEFT, TURN_RIGHT), (jnp.abs(left) > 0.15 * ahead)


def place_in_line(view: View) -> Float[Array, ""]:
    """The agent's place among its side by slot: from -1 on the left to 1 on the right."""
    before = view.mates & (jnp.arange(len(view.mates)) < view.slot)
    number = jnp.sum(view.mates, dtype=jnp.float32) + 1
    return (2 * jnp.sum(before, dtype=jnp.float32) + 1) / number - 1


class Flash(eqx.Module):
    """Stands at a post, looks away from the fort and shoots all the time, whoever comes."""

    wide: float = eqx.field(static=True)
    """How far the posts of the side reach, as a share of the plane's width."""
    fan: float = eqx.field(static=True)
    """How far the outermost turn outwards, as an angle."""

    def __call__(self, view: View) -> Int[Array, ""]:
        """To the post, then to its direction, then shoot."""
        place = place_in_line(view)
        x = place * self.wide * view.half_width
        y = view.half_height - view.fort - 0.15
        off_course = FACING[GUARD] + self.fan * place - view.heading
        towards, needed = turn(jnp.cos(off_course), jnp.sin(off_course))
        away = off(view, x, y) > 2 * NEAR
        return jnp.where(away, go(view, x, y), jnp.where(needed, towards, SHOOT))


class Sneak(eqx.Module):
    """Walks to the fort through the widest gap near its own part of the width."""

    boldness: float = eqx.field(static=True)
    """How often it shoots a guard that it could hit."""

    def __call__(self, view: View) -> Int[Array, ""]:
        """Its column first, then the fort."""
        columns = np.linspace(-0.85, 0.85, 7, dtype=np.float32) * view.half_width
        room = jnp.full(len(columns), 0.6)
        for x, there in zip(view.xs, view.opponents, strict=True):
            room = jnp.where(there, jnp.minimum(room, jnp.abs(x - columns)), room)
        own = place_in_line(view) * 0.85 * view.half_width
        score = room - 0.6 * jnp.abs(columns - own)
        best = jnp.arange(len(columns)) == jnp.argmax(score)
        column = jnp.sum(jnp.where(best, columns, 0.0))
        return self.walk(view, column)

    def walk(self, view: View, column: Float[Array, ""]) -> Int[Array, ""]:
        """Up the column, and from the height of the fort's rim on to its middle."""
        high = view.half_height - view.fort - 0.1
        up = view.y + 0.15
        turning = (view.y > high) | (off(view, jnp.float32(0), view.half_height) < view.fort + 0.3)
        way = jnp.where(turning, go(view, jnp.float32(0), view.half_height), go(view, column, up))
        shoot = jnp.any(view.in_laser) & (view.chance[1] < self.boldness)
        return jnp.where(shoot, SHOOT, way)


class Deceive(Sneak):
    """All but one come from one side; one goes round the other."""

    def __call__(self, view: View) -> Int[Array, ""]:
        """The side is that of most attackers, the one who sneaks is who is farthest from it."""
        mates = view.mates
        total = jnp.sum(jnp.where(mates, view.xs, 0.0)) + view.x
        side = jnp.where(total >= 0, 1.0, -1.0)
        farther = mates & (side * view.xs < side * view.x)
        alone = ~jnp.any(farther) & jnp.any(mates)
        column = 0.85 * view.half_width * jnp.where(alone, -side, side)
        return self.walk(view, column)


FRONT, LINE = Flash(wide=0.3, fan=0.8), Flash(wide=0.8, fan=0.0)
SNEAK, DECEIVE = Sneak(boldness=0.3), Deceive(boldness=0.3)
