"""What each agent sees of level-based foraging, for its type to act on."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dropin._xla.materialize import materialize
from dropin._xla.random import StepRNG
from dropin.games.lbf.game import LBF, State

__all__ = ["PAPER_SIGHT_RADII", "Observer", "View", "make_observer"]

PAPER_SIGHT_RADII = (1, 2, 3)
"""Agents see squares of 3x3, 5x5 or 7x7 cells."""


class View(eqx.Module):
    """The grid as one agent sees it. Rows are (row, column, level), as in the game's state."""

    me: Int[Array, " 3"]
    """The agent itself."""
    agents: Int[Array, "slot 3"]
    """All agents, in sight or not."""
    sees_agent: Bool[Array, " slot"]
    """Which agents are in sight; the agent itself always is."""
    objects: Int[Array, "object 3"]
    """All objects, in sight or not."""
    sees_object: Bool[Array, " object"]
    """Which objects are in sight."""
    valid_actions: Bool[Array, " action"]
    """Which actions have an effect; `none` is always among them."""
    uniform: Float[Array, " 2"]
    """Two uniform random numbers in [0, 1), new at every step."""


class Observer(eqx.Module):
    """Makes the views of all agents."""

    sight_radii: tuple[int, ...] | None = eqx.field(static=True)
    """An agent sees the cells whose row and column differ from its own by at most this; one radius
    is drawn for each agent when it enters. None: all agents see the whole grid."""

    def __call__(
        self, game: LBF, rng: StepRNG, state: State, agent_seed: UInt32[Array, " slot"]
    ) -> View:
        """Return the view of each agent, with a leading slot axis.

        Args:
            game: The game, with its parameters.
            rng: Random numbers of this step.
            state: The state of the game.
            agent_seed: Random bits drawn when each agent entered; they decide its sight.
        """
        valid_actions = materialize(game.valid_actions(state))
        uniform = rng.uniform(len(agent_seed), 2)

        def view_of(
            me: Int[Array, " 3"],
            radius: Int[Array, ""],
            valid_actions: Bool[Array, " action"],
            uniform: Float[Array, " 2"],
        ) -> View:
            def in_sight(rows: Int[Array, "n 3"]) -> Bool[Array, " n"]:
                if self.sight_radii is None:
                    return rows[:, 2] > 0
                distance = jnp.abs(rows[:, :2] - me[None, :2])
                return materialize(jnp.all(distance <= radius, axis=1) & (rows[:, 2] > 0))

            return View(
                me=me,
                agents=state.agents,
                sees_agent=in_sight(state.agents),
                objects=state.objects,
                sees_object=in_sight(state.objects),
                valid_actions=valid_actions,
                uniform=uniform,
            )

        radius = self._sight_radius(agent_seed)
        return jax.vmap(view_of)(state.agents, radius, valid_actions, uniform)

    def _sight_radius(self, agent_seed: UInt32[Array, " slot"]) -> Int[Array, " slot"]:
        """Return the radius that each agent has drawn; 0 if all see the whole grid."""
        radii = self.sight_radii or (0,)
        drawn = agent_seed % jnp.uint32(len(radii))
        radius = jnp.zeros(drawn.shape, jnp.int32)
        for index, each in enumerate(radii):
            radius = jnp.where(drawn == index, each, radius)
        return radius


def make_observer(rules: str) -> Observer:
    """Return what agents see: under `reference` the whole grid, under `paper` a part of it."""
    return Observer(None if rules == "reference" else PAPER_SIGHT_RADII)
