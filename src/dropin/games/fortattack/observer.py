"""What each agent sees of FortAttack: everything, relative to its own position and heading."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dropin._xla.random import StepRNG
from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.state import Geometry, State

__all__ = ["Observer", "View", "make_observer"]


class View(eqx.Module):
    """The plane as one agent sees it; this is what a type of FortAttack acts on.

    Entries of absent agents have no meaning: use `mates` and `opponents` to select agents.
    """

    slot: Int[Array, ""]
    """The agent's own slot."""
    x: Float[Array, ""]
    y: Float[Array, ""]
    vx: Float[Array, ""]
    vy: Float[Array, ""]
    heading: Float[Array, ""]
    """The agent's own position, velocity and heading."""
    mates: Bool[Array, " slot"]
    """Which other agents of its side are present."""
    opponents: Bool[Array, " slot"]
    """Which agents of the other side are present."""
    xs: Float[Array, " slot"]
    ys: Float[Array, " slot"]
    vxs: Float[Array, " slot"]
    vys: Float[Array, " slot"]
    headings: Float[Array, " slot"]
    """Position, velocity and heading of every agent."""
    distance: Float[Array, " slot"]
    """Distance to every agent."""
    ahead: Float[Array, " slot"]
    """Distance to every agent along the own heading."""
    left: Float[Array, " slot"]
    """Distance to every agent at a right angle to the own heading, positive to the left."""
    in_laser: Bool[Array, " slot"]
    """Which opponents it would hit by shooting now."""
    in_laser_of: Bool[Array, " slot"]
    """Which opponents would hit it by shooting now."""
    agent_seed: UInt32[Array, ""]
    """Random bits drawn when the agent entered."""
    uniform: Float[Array, " 2"]
    """Uniform numbers in [0, 1), drawn in every step."""
    half_width: Float[Array, ""]
    """Distance from the middle of the plane to its left and right walls."""
    half_height: Float[Array, ""]
    """Distance from the middle of the plane to its upper and lower walls."""
    fort_radius: Float[Array, ""]
    """Radius of the fort, whose centre is at (0, half_height)."""


class Observer(eqx.Module):
    """Builds the view of each agent; everybody sees the whole plane."""

    def __call__(
        self, game: FortAttack, rng: StepRNG, state: State, agent_seed: UInt32[Array, " slot"]
    ) -> View:
        """Return the views of all agents, with a leading slot axis.

        Args:
            game: The game, with its parameters.
            rng: Random numbers of this step.
            state: The state of the game.
            agent_seed: Random bits drawn when each agent entered.
        """
        geometry = Geometry.from_state(state)
        slots = len(agent_seed)
        opponents = game.opponents_of(state)
        both_present = state.present[:, None] & state.present[None]
        is_other = jnp.arange(slots)[:, None] != jnp.arange(slots)[None]
        in_laser = opponents & game.in_laser(geometry)
        rows = {
            "slot": jnp.arange(slots),
            "x": state.x,
            "y": state.y,
            "vx": state.vx,
            "vy": state.vy,
            "heading": state.heading,
            "mates": both_present & ~opponents & is_other,
            "opponents": opponents,
            "distance": geometry.distance,
            "ahead": geometry.ahead,
            "left": geometry.left,
            "in_laser": in_laser,
            "in_laser_of": in_laser.T,
            "agent_seed": agent_seed,
            "uniform": rng.uniform(slots, 2),
        }
        return jax.vmap(
            lambda row: View(
                **row,
                xs=state.x,
                ys=state.y,
                vxs=state.vx,
                vys=state.vy,
                headings=state.heading,
                half_width=game.half_width,
                half_height=game.half_height,
                fort_radius=game.fort_radius,
            )
        )(rows)


def make_observer(rules: str) -> Observer:
    """Return the observer; it is the same under all rules."""
    del rules
    return Observer()
