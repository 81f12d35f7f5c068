"""What one agent sees of level-based foraging."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dropin.dice import Dice
from dropin.games.lbf.game import LBF, State
from dropin.settle import settle


class View(eqx.Module):
    """The grid as one agent sees it. Rows are (row, column, level), as in the game's state."""

    me: Int[Array, " 3"]
    agents: Int[Array, "slot 3"]
    sees_agent: Bool[Array, " slot"]
    """Which agents are in sight; the agent itself always is."""
    objects: Int[Array, "object 3"]
    sees_object: Bool[Array, " object"]
    possible: Bool[Array, " action"]
    """Actions that would not count as none; none is always among them."""
    chance: Float[Array, " 2"]
    """Two uniform numbers in [0, 1), new at every step."""


class Look(eqx.Module):
    """Builds the views; `sights` are the radii of the squares that agents see, one drawn each."""

    game: LBF
    sights: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, dice: Dice, state: State, character: UInt32[Array, " slot"]) -> View:
        """One view a slot."""
        kind = character % jnp.uint32(len(self.sights))
        sight = jnp.zeros(kind.shape, jnp.int32)
        for number, radius in enumerate(self.sights):
            sight = jnp.where(kind == number, radius, sight)

        def view(
            me: Int[Array, " 3"],
            sight: Int[Array, ""],
            possible: Bool[Array, " action"],
            chance: Float[Array, " 2"],
        ) -> View:
            def in_sight(rows: Int[Array, "n 3"]) -> Bool[Array, " n"]:
                if min(self.sights) >= self.game.size - 1:
                    return rows[:, 2] > 0
                apart = jnp.abs(rows[:, :2] - me[None, :2])
                return settle(jnp.all(apart <= sight, axis=1) & (rows[:, 2] > 0))

            return View(
                me=me,
                agents=state.agents,
                sees_agent=in_sight(state.agents),
                objects=state.objects,
                sees_object=in_sight(state.objects),
                possible=possible,
                chance=chance,
            )

        possible, chance = settle(self.game.possible(state)), dice.uniform(len(sight), 2)
        return jax.vmap(view)(state.agents, sight, possible, chance)
