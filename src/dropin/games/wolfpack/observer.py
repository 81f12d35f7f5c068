"""What each hunter sees of Wolfpack, for its type to act on: the whole grid.

A *capture cell* is a cell next to a prey, from which a hunter can take part in capturing it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dropin._xla.materialize import materialize
from dropin._xla.random import StepRNG
from dropin.games.wolfpack.game import Wolfpack
from dropin.games.wolfpack.state import DOWN, LEFT, MOVES, RIGHT, UP, State, manhattan_distance

__all__ = [
    "FAR",
    "WAITING_TRAITS",
    "Observer",
    "View",
    "WaitingTraits",
    "assign_cells",
    "capture_cells",
    "make_observer",
]

FAR = 2**12
"""Larger than any distance on a grid."""


class View(eqx.Module):
    """The grid as one hunter sees it. Cells are (row, column)."""

    me: Int[Array, " 2"]
    """The cell of this hunter."""
    slot: Int[Array, ""]
    """The slot of this hunter."""
    hunters: Int[Array, "slot 2"]
    """The cell of each hunter; (-1, -1) for an absent one."""
    present: Bool[Array, " slot"]
    """Which slots hold a hunter."""
    prey: Int[Array, "prey 2"]
    """The cell of each prey."""
    alive: Bool[Array, " prey"]
    """Which prey were not captured in the previous step."""
    assigned_cell: Int[Array, " 2"]
    """The capture cell that `assign_cells` gives to this hunter; (-1, -1) if none."""
    assigned_prey: Int[Array, " 2"]
    """The cell of the prey that the assigned cell is next to; (-1, -1) if none."""
    waiting_radius: Int[Array, ""]
    """How close a waiting hunter comes to a prey without companions, drawn when it enters."""
    min_companions: Int[Array, ""]
    """How many other hunters a waiting hunter wants within that radius, drawn when it enters."""
    uniform: Float[Array, ""]
    """A uniform random number in [0, 1), new at every step."""
    size: int = eqx.field(static=True)
    """Rows and columns of the grid."""


class WaitingTraits(eqx.Module):
    """The values that individual traits of waiting hunters are drawn from, uniformly.

    A value that is listed twice is twice as likely.
    """

    radius: tuple[int, ...] = eqx.field(static=True)
    """How close a hunter comes to a prey without companions."""
    min_companions: tuple[int, ...] = eqx.field(static=True)
    """How many other hunters have to be within the radius."""

    def draw(
        self, agent_seed: UInt32[Array, " slot"]
    ) -> tuple[Int[Array, " slot"], Int[Array, " slot"]]:
        """Return the radius and the number of companions of each hunter, given its agent seed."""
        num_radii = jnp.uint32(len(self.radius))
        radius_index = agent_seed % num_radii
        companions_index = agent_seed // num_radii % jnp.uint32(len(self.min_companions))
        return _lookup(self.radius, radius_index), _lookup(self.min_companions, companions_index)


def _lookup(options: tuple[int, ...], index: UInt32[Array, " slot"]) -> Int[Array, " slot"]:
    value = jnp.zeros(index.shape, jnp.int32)
    for k, option in enumerate(options):
        value = jnp.where(index == k, option, value)
    return value


WAITING_TRAITS = {
    "paper": WaitingTraits(radius=(3, 4, 5), min_companions=(1,)),
    # Probabilities: radius 2, 3, 4 with 0.4, 0.4, 0.2; companions 1, 2 with 0.7, 0.3.
    "reference": WaitingTraits(radius=(2, 2, 3, 3, 4), min_companions=(1,) * 7 + (2,) * 3),
}
"""The traits of waiting hunters under each set of rules."""


class Observer(eqx.Module):
    """Makes the views of all hunters."""

    waiting_traits: WaitingTraits

    def __call__(
        self, game: Wolfpack, rng: StepRNG, state: State, agent_seed: UInt32[Array, " slot"]
    ) -> View:
        """Return the view of each hunter, with a leading slot axis.

        Args:
            game: The game, with its parameters.
            rng: Random numbers of this step.
            state: The state of the game.
            agent_seed: Random bits drawn when each hunter entered.
        """
        assigned_cell, assigned_prey = assign_cells(
            state.hunters, state.present, state.prey, game.size
        )
        waiting_radius, min_companions = self.waiting_traits.draw(agent_seed)
        slots = len(agent_seed)

        def view_of(
            me: Int[Array, " 2"],
            slot: Int[Array, ""],
            assigned_cell: Int[Array, " 2"],
            assigned_prey: Int[Array, " 2"],
            waiting_radius: Int[Array, ""],
            min_companions: Int[Array, ""],
            uniform: Float[Array, ""],
        ) -> View:
            return View(
                me=me,
                slot=slot,
                hunters=state.hunters,
                present=state.present,
                prey=state.prey,
                alive=~state.captured,
                assigned_cell=assigned_cell,
                assigned_prey=assigned_prey,
                waiting_radius=waiting_radius,
                min_companions=min_companions,
                uniform=uniform,
                size=game.size,
            )

        return jax.vmap(view_of)(
            state.hunters,
            jnp.arange(slots),
            materialize(assigned_cell),
            materialize(assigned_prey),
            waiting_radius,
            min_companions,
            rng.uniform(slots),
        )


def make_observer(rules: str) -> Observer:
    """Return what hunters see under the rules `paper` or `reference`."""
    return Observer(WAITING_TRAITS[rules])


def capture_cells(
    prey: Int[Array, "prey 2"], directions: tuple[int, ...], size: int
) -> tuple[Int[Array, "cell 2"], Bool[Array, " cell"]]:
    """Return the cells next to the prey.

    Args:
        prey: The cell of each prey.
        directions: The order of the cells around a prey, as moves from the prey.
        size: Rows and columns of the grid.

    Returns:
        The cells, prey by prey, and which of them are on the grid.
    """
    moves = MOVES[np.array(directions)]
    cells = (prey[:, None] + moves[None]).reshape(-1, 2)
    return cells, jnp.all((cells >= 0) & (cells < size), axis=1)


def assign_cells(
    hunters: Int[Array, "slot 2"],
    present: Bool[Array, " slot"],
    prey: Int[Array, "prey 2"],
    size: int,
) -> tuple[Int[Array, "slot 2"], Int[Array, "slot 2"]]:
    """Assign a capture cell to each hunter, as teammate-aware hunters do (paper: appendix B.4.1).

    Hunters choose one after another, the one whose farthest capture cell is farthest away first.
    Each takes the nearest cell that is left. Ties go to the lower slot and to the earlier cell.

    Args:
        hunters: The cell of each hunter.
        present: Which slots hold a hunter.
        prey: The cell of each prey, captured or not.
        size: Rows and columns of the grid.

    Returns:
        The cell assigned to each hunter and the prey that it is next to; both are (-1, -1) for
        hunters without one.
    """
    cells, inside = capture_cells(prey, (RIGHT, LEFT, DOWN, UP), size)
    index = jnp.arange(len(cells))
    distance = manhattan_distance(hunters[:, None], cells[None])
    farthest = jnp.max(jnp.where(inside[None], distance, -1), axis=1)
    slot = jnp.arange(len(hunters))
    goes_before = (farthest[None] > farthest[:, None]) | (
        (farthest[None] == farthest[:, None]) & (slot[None] < slot[:, None])
    )
    turn = jnp.where(present, jnp.sum(goes_before & present[None], axis=1), -1)
    same_cell = jnp.all(cells[:, None] == cells[None], axis=-1)
    # Distance first, then the order of the cells, in one number.
    cost = materialize(jnp.where(inside[None], distance, FAR) * len(cells) + index[None])

    free = inside
    choices = []
    for k in range(len(hunters)):
        chooser = (turn == k)[:, None]
        own_cost = jnp.sum(jnp.where(chooser, cost, 0), axis=0)
        best = jnp.min(jnp.where(free, own_cost, FAR * len(cells)))
        found = (best < FAR * len(cells)) & jnp.any(chooser)
        chosen = materialize((index == best % len(cells)) & found)
        choices.append(chosen[None] & chooser)
        free = free & ~jnp.any(same_cell & chosen[None], axis=1)
    assigned = jnp.any(jnp.stack(choices), axis=0)
    without = ~jnp.any(assigned, axis=1, keepdims=True)

    def select(rows: Int[Array, "cell 2"]) -> Int[Array, "slot 2"]:
        chosen = jnp.sum(jnp.where(assigned[:, :, None], rows[None], 0), axis=1)
        return jnp.where(without, -1, chosen)

    return select(cells), select(jnp.repeat(prey, 4, axis=0))
