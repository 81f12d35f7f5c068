"""What one agent sees of FortAttack: everything, as it lies to it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dropin.dice import Dice
from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.state import Geometry, State


class View(eqx.Module):
    """The plane as one agent sees it."""

    slot: Int[Array, ""]
    x: Float[Array, ""]
    y: Float[Array, ""]
    vx: Float[Array, ""]
    vy: Float[Array, ""]
    heading: Float[Array, ""]
    mates: Bool[Array, " slot"]
    """Who else is there on its side."""
    opponents: Bool[Array, " slot"]
    """Who is there on the other side."""
    xs: Float[Array, " slot"]
    ys: Float[Array, " slot"]
    vxs: Float[Array, " slot"]
    vys: Float[Array, " slot"]
    headings: Float[Array, " slot"]
    """Where everybody is, how fast, and where everybody looks."""
    apart: Float[Array, " slot"]
    """How far away everybody is."""
    ahead: Float[Array, " slot"]
    left: Float[Array, " slot"]
    """How far ahead and to its left everybody is."""
    in_laser: Bool[Array, " slot"]
    """Whom it would hit."""
    aimed: Bool[Array, " slot"]
    """Who would hit it."""
    character: UInt32[Array, ""]
    """Random bits drawn at the agent's entry."""
    chance: Float[Array, " 2"]
    """Uniform numbers in [0, 1), new at every step."""
    half_width: Float[Array, ""]
    half_height: Float[Array, ""]
    fort: Float[Array, ""]
    """The size of the plane and the radius of the fort, which is at (0, half_height)."""


class Look(eqx.Module):
    """Builds the views."""

    game: FortAttack

    def __call__(self, dice: Dice, state: State, character: UInt32[Array, " slot"]) -> View:
        """One view a slot."""
        geometry = Geometry.of(state)
        slots = len(character)
        opposed = self.game.opposed(state)
        there = state.present[:, None] & state.present[None]
        own = there & ~opposed & (jnp.arange(slots)[:, None] != jnp.arange(slots)[None])
        in_laser = opposed & self.game.in_laser(geometry)
        rows = {
            "slot": jnp.arange(slots),
            "x": state.x,
            "y": state.y,
            "vx": state.vx,
            "vy": state.vy,
            "heading": state.heading,
            "mates": own,
            "opponents": opposed,
            "apart": geometry.apart,
            "ahead": geometry.ahead,
            "left": geometry.left,
            "in_laser": in_laser,
            "aimed": in_laser.T,
            "character": character,
            "chance": dice.uniform(slots, 2),
        }
        return jax.vmap(
            lambda row: View(
                **row,
                xs=state.x,
                ys=state.y,
                vxs=state.vx,
                vys=state.vy,
                headings=state.heading,
                half_width=self.game.half_width,
                half_height=self.game.half_height,
                fort=self.game.fort,
            )
        )(rows)
