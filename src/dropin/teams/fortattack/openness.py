"""Openness by shooting: whoever is hit waits, the longer the closer the shot was."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin.dice import Dice
from dropin.errors import InputError
from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.state import Happened


def _number(default: float) -> Any:
    return eqx.field(converter=lambda value: jnp.asarray(value, jnp.float32), default=default)


class Shooting(eqx.Module):
    """Agents are taken out by shots alone, and return after a time.

    Somebody who is to wait w steps is there again at the end of the w-th step after that of the
    shot.
    """

    longest: Float[Array, ""] = _number(80.0)
    """Steps to wait after a shot from no distance."""
    reach: Float[Array, ""] = _number(0.95)
    """The distance at which there would be nothing to wait for; in between the time is linear."""
    adds_up: bool = eqx.field(static=True, default=False)
    """Whether the times of several shots are added and the fractions dropped, as in the authors'
    program; otherwise the closest shot counts, and the time is rounded."""
    farthest: float = eqx.field(static=True, default=0.85)
    """No shot comes from farther away; for the most agents that an episode can see."""

    def __check_init__(self) -> None:
        for name in ("longest", "reach"):
            value = float(getattr(self, name))
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"Shooting's {name} is {value:g}, but it has to be above 0.")

    def check(self, sides: tuple[int, ...], limit: int) -> None:
        """Nobody would ever be taken out without opponents."""
        del limit
        if not any(sides):
            raise InputError("Shooting is for games with opponents.")

    def most_agents(self, slots: int, horizon: int) -> int:
        """Everybody is shot at once, again and again, from as far as possible."""
        shortest = int(self.waiting(jnp.float32([[self.farthest]]), jnp.array([[True]]))[0])
        return 1 + (slots - 1) * (1 + horizon // max(shortest, 1))

    def waiting(
        self, apart: Float[Array, "slot victim"], hits: Bool[Array, "slot victim"]
    ) -> Int[Array, " victim"]:
        """How long each victim has to wait, given who hit whom from how far."""
        close = jnp.where(hits, jnp.maximum(1 - apart / self.reach, 0.0), 0.0)
        if self.adds_up:
            return jnp.floor(self.longest * jnp.sum(close, axis=0)).astype(jnp.int32)
        return jnp.round(self.longest * jnp.max(close, axis=0)).astype(jnp.int32)

    def start(
        self, dice: Dice, seats: Bool[Array, " slot"]
    ) -> tuple[Int[Array, " slot"], Bool[Array, " slot"]]:
        """Both sides are complete; the state is how long each still has to wait."""
        del dice
        return jnp.zeros(len(seats), jnp.int32), seats

    def step(
        self,
        dice: Dice,
        state: Int[Array, " slot"],
        present: Bool[Array, " slot"],
        seats: Bool[Array, " slot"],
        happened: Happened,
    ) -> tuple[Int[Array, " slot"], Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Nobody leaves but by a shot; those who have waited return."""
        del dice
        wait = jnp.where(
            happened.shot, self.waiting(happened.apart, happened.hits), jnp.maximum(state - 1, 0)
        )
        return wait, jnp.zeros_like(present), seats & ~present & (wait == 0)


def of(rules: str, game: FortAttack) -> Shooting:
    """The openness of the rules."""
    half = float(game.laser_angle) / 2
    along = float(game.radius) + float(game.laser) * np.cos(half)
    farthest = float(np.hypot(along, float(game.laser) * np.sin(half)))
    return Shooting(adds_up=rules == "reference", farthest=farthest)
