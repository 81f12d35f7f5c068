"""What one hunter sees of Wolfpack: everything."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dropin.dice import Dice
from dropin.games.wolfpack.game import DOWN, LEFT, MOVES, RIGHT, UP, State, Wolfpack
from dropin.settle import settle

FAR = 2**12
"""Above any distance on a grid."""


class View(eqx.Module):
    """The grid as one hunter sees it."""

    me: Int[Array, " 2"]
    slot: Int[Array, ""]
    hunters: Int[Array, "slot 2"]
    present: Bool[Array, " slot"]
    prey: Int[Array, "prey 2"]
    alive: Bool[Array, " prey"]
    """Which prey were not captured in the step before."""
    goal: Int[Array, " 2"]
    """The cell that this hunter would take if all shared out the cells next to the prey, as
    `share_out` does; (-1, -1) if it gets none."""
    goal_prey: Int[Array, " 2"]
    """The prey that the goal is next to."""
    radius: Int[Array, ""]
    """How close a waiting hunter comes to a prey without others, drawn at its entry."""
    company: Int[Array, ""]
    """How many others a waiting hunter wants there, drawn at its entry."""
    chance: Float[Array, ""]
    """A uniform number in [0, 1), new at every step."""
    size: int = eqx.field(static=True)
    """Rows and columns of the grid."""


class Patience(eqx.Module):
    """What waiting hunters are like. Both numbers are drawn at a hunter's entry."""

    radius: tuple[int, ...] = eqx.field(static=True)
    """The radii, each with the same chance."""
    company: tuple[int, ...] = eqx.field(static=True)
    """How many others must be within the radius, each with the same chance."""

    def drawn(self, character: UInt32[Array, " slot"]) -> tuple[Array, Array]:
        """Radius and company of each hunter."""
        total = len(self.radius)
        one = character % jnp.uint32(total)
        two = character // jnp.uint32(total) % jnp.uint32(len(self.company))
        return _chosen(self.radius, one), _chosen(self.company, two)


def _chosen(options: tuple[int, ...], number: UInt32[Array, " slot"]) -> Int[Array, " slot"]:
    value = jnp.zeros(number.shape, jnp.int32)
    for k, option in enumerate(options):
        value = jnp.where(number == k, option, value)
    return value


class Look(eqx.Module):
    """Builds the views."""

    game: Wolfpack
    patience: Patience

    def __call__(self, dice: Dice, state: State, character: UInt32[Array, " slot"]) -> View:
        """One view a slot."""
        goal, goal_prey = share_out(state.hunters, state.present, state.prey, self.game.size)
        radius, company = self.patience.drawn(character)
        slots = len(character)
        return jax.vmap(
            lambda me, slot, goal, goal_prey, radius, company, chance: View(
                me=me,
                slot=slot,
                hunters=state.hunters,
                present=state.present,
                prey=state.prey,
                alive=~state.captured,
                goal=goal,
                goal_prey=goal_prey,
                radius=radius,
                company=company,
                chance=chance,
                size=self.game.size,
            )
        )(
            state.hunters,
            jnp.arange(slots),
            settle(goal),
            settle(goal_prey),
            radius,
            company,
            dice.uniform(slots),
        )


def beside(
    prey: Int[Array, "prey 2"], order: tuple[int, ...], size: int
) -> tuple[Int[Array, "cell 2"], Bool[Array, " cell"]]:
    """The cells next to the prey, prey by prey in this order, and which of them are on the grid."""
    moves = MOVES[np.array(order)]
    cells = (prey[:, None] + moves[None]).reshape(-1, 2)
    return cells, jnp.all((cells >= 0) & (cells < size), axis=1)


def distance(cells: Int[Array, "*#n 2"], cell: Int[Array, "*#n 2"]) -> Int[Array, "*#n"]:
    """Manhattan distances."""
    return jnp.sum(jnp.abs(cells - cell), axis=-1)


def share_out(
    hunters: Int[Array, "slot 2"],
    present: Bool[Array, " slot"],
    prey: Int[Array, "prey 2"],
    size: int,
) -> tuple[Int[Array, "slot 2"], Int[Array, "slot 2"]]:
    """The cells next to the prey, one for each hunter, and the prey of each.

    Whoever has the longest way to any of them chooses first, and takes the nearest cell that is
    left; of equals the first.
    """
    cells, inside = beside(prey, (RIGHT, LEFT, DOWN, UP), size)
    number = jnp.arange(len(cells))
    apart = distance(hunters[:, None], cells[None])
    longest = jnp.max(jnp.where(inside[None], apart, -1), axis=1)
    slot = jnp.arange(len(hunters))
    ahead = (longest[None] > longest[:, None]) | (
        (longest[None] == longest[:, None]) & (slot[None] < slot[:, None])
    )
    turn = jnp.where(present, jnp.sum(ahead & present[None], axis=1), -1)
    same = jnp.all(cells[:, None] == cells[None], axis=-1)
    cost = settle(jnp.where(inside[None], apart, FAR) * len(cells) + number[None])

    free = inside
    mine = []
    for k in range(len(hunters)):
        chooser = (turn == k)[:, None]
        wish = jnp.sum(jnp.where(chooser, cost, 0), axis=0)
        best = jnp.min(jnp.where(free, wish, FAR * len(cells)))
        found = (best < FAR * len(cells)) & jnp.any(chooser)
        pick = settle((number == best % len(cells)) & found)
        mine.append(pick[None] & chooser)
        free = free & ~jnp.any(same & pick[None], axis=1)
    taken = jnp.any(jnp.stack(mine), axis=0)
    owner = jnp.repeat(prey, 4, axis=0)
    nowhere = ~jnp.any(taken, axis=1, keepdims=True)

    def of(rows: Int[Array, "cell 2"]) -> Int[Array, "slot 2"]:
        return jnp.where(nowhere, -1, jnp.sum(jnp.where(taken[:, :, None], rows[None], 0), axis=1))

    return of(cells), of(owner)
