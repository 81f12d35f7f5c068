"""Who is where in FortAttack, how they lie to each other, and what happened."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dropin.settle import settle

GUARD, ATTACKER = 0, 1
"""The sides."""


class State(eqx.Module):
    """Who is where; all numbers of somebody absent are 0."""

    x: Float[Array, " slot"]
    y: Float[Array, " slot"]
    vx: Float[Array, " slot"]
    vy: Float[Array, " slot"]
    heading: Float[Array, " slot"]
    """An angle from the x-axis, to the left, within [0, 2 pi)."""
    present: Bool[Array, " slot"]
    time: Int[Array, ""]
    sides: tuple[int, ...] = eqx.field(static=True)
    """Who is a guard (0) and who an attacker (1)."""

    @property
    def attacker(self) -> Bool[Array, " slot"]:
        """Which slots are those of attackers."""
        return jnp.array(self.sides) == ATTACKER


class Happened(eqx.Module):
    """The account of a step."""

    fired: Bool[Array, " slot"]
    hits: Bool[Array, "slot victim"]
    """Who hit whom."""
    apart: Float[Array, "slot victim"]
    """How far everybody was from everybody when the shots were fired."""
    fallen: Bool[Array, ""]
    """Whether an attacker reached the fort."""

    @property
    def shot(self) -> Bool[Array, " slot"]:
        """Who was hit."""
        return jnp.any(self.hits, axis=0)


class Geometry(eqx.Module):
    """How everybody lies to everybody: [a, b] is b as seen from a."""

    dx: Float[Array, "slot slot"]
    dy: Float[Array, "slot slot"]
    apart: Float[Array, "slot slot"]
    """The distance."""
    ahead: Float[Array, "slot slot"]
    """How far along the heading of a."""
    left: Float[Array, "slot slot"]
    """How far to the left of that."""

    @classmethod
    def of(cls, state: State) -> "Geometry":
        """Of a state; rows and columns of those absent mean nothing."""
        dx = state.x[None] - state.x[:, None]
        dy = state.y[None] - state.y[:, None]
        cosine, sine = (settle(f(state.heading))[:, None] for f in (jnp.cos, jnp.sin))
        return cls(
            dx=dx,
            dy=dy,
            apart=jnp.sqrt(dx * dx + dy * dy),
            ahead=dx * cosine + dy * sine,
            left=dy * cosine - dx * sine,
        )
