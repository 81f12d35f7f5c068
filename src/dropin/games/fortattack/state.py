"""Actions and states of FortAttack, the geometry between agents, and the record of a step."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin._xla.materialize import materialize

__all__ = [
    "ATTACKER",
    "DOWN",
    "FULL_TURN",
    "GUARD",
    "LEFT",
    "NOTHING",
    "RIGHT",
    "SHOOT",
    "TURN_LEFT",
    "TURN_RIGHT",
    "UP",
    "Geometry",
    "State",
    "StepEvents",
]

NOTHING, RIGHT, LEFT, UP, DOWN, TURN_LEFT, TURN_RIGHT, SHOOT = range(8)
"""The actions."""
FULL_TURN = 2 * np.pi
"""An angle in radians, as all angles."""
GUARD, ATTACKER = 0, 1
"""The sides; the learner is a guard."""


class State(eqx.Module):
    """Where everybody is. All numbers of an absent agent are 0."""

    x: Float[Array, " slot"]
    """Position; 0 is the middle of the plane."""
    y: Float[Array, " slot"]
    """Position; the fort is up."""
    vx: Float[Array, " slot"]
    vy: Float[Array, " slot"]
    heading: Float[Array, " slot"]
    """Counterclockwise angle from the x-axis, within [0, 2 pi)."""
    present: Bool[Array, " slot"]
    """Which slots hold an agent."""
    time: Int[Array, ""]
    """Number of steps taken in this episode."""
    sides: tuple[int, ...] = eqx.field(static=True)
    """`GUARD` or `ATTACKER` for each slot; guards have the first slots."""

    @property
    def is_attacker(self) -> Bool[Array, " slot"]:
        """Which slots are for attackers."""
        return jnp.array(self.sides) == ATTACKER


class StepEvents(eqx.Module):
    """The record of a step."""

    fired: Bool[Array, " slot"]
    """Which agents shot."""
    hits: Bool[Array, "slot victim"]
    """Which agent hit which."""
    distance: Float[Array, "slot victim"]
    """Distance between each two agents when the shots were fired."""
    fort_fell: Bool[Array, ""]
    """Whether an attacker reached the fort."""

    @property
    def was_hit(self) -> Bool[Array, " slot"]:
        """Which agents were hit."""
        return jnp.any(self.hits, axis=0)


class Geometry(eqx.Module):
    """Positions relative to each agent: entry [a, b] is agent b as seen from agent a."""

    dx: Float[Array, "slot slot"]
    dy: Float[Array, "slot slot"]
    distance: Float[Array, "slot slot"]
    ahead: Float[Array, "slot slot"]
    """Distance along the heading of a."""
    left: Float[Array, "slot slot"]
    """Distance at a right angle to the heading of a, positive to its left."""

    @classmethod
    def from_state(cls, state: State) -> "Geometry":
        """Return the geometry of a state; rows and columns of absent agents have no meaning."""
        dx = state.x[None] - state.x[:, None]
        dy = state.y[None] - state.y[:, None]
        cosine, sine = (materialize(f(state.heading))[:, None] for f in (jnp.cos, jnp.sin))
        return cls(
            dx=dx,
            dy=dy,
            distance=jnp.sqrt(dx * dx + dy * dy),
            ahead=dx * cosine + dy * sine,
            left=dy * cosine - dx * sine,
        )
