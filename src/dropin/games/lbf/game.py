"""The rules of level-based foraging."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin.dice import Dice
from dropin.errors import InputError
from dropin.games.base import Feature, OneTeam, Outcome, with_changes
from dropin.games.grid import NOWHERE, draw_cells, draw_free, position_of

NONE, NORTH, SOUTH, WEST, EAST, LOAD = range(6)
MOVES = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1], [0, 0]], np.int32)
"""What each action adds to row and column."""

NOBODY = np.array([[-1, -1, 0]], np.int32)
"""Row, column and level of whoever and whatever is not there."""

SPACING = 2
"""Objects are further apart than this (Manhattan), so no cell is next to two of them."""


class State(eqx.Module):
    """Rows are (row, column, level); (-1, -1, 0) stands for whoever and whatever is not there.

    Objects are listed row by row over the grid, those that are left first.
    """

    agents: Int[Array, "slot 3"]
    objects: Int[Array, "object 3"]
    time: Int[Array, ""]

    @property
    def present(self) -> Bool[Array, " slot"]:
        """Who is there."""
        return self.agents[..., 2] > 0

    @property
    def remaining(self) -> Bool[Array, " object"]:
        """Which objects are left."""
        return self.objects[..., 2] > 0


class Happened(eqx.Module):
    """The account of a step: who had a part in collecting which object (as listed before it)."""

    collected: Bool[Array, "slot object"]


def _int(value: object) -> Int[Array, "..."]:
    return jnp.asarray(value, jnp.int32)


class LBF(OneTeam):
    """Level-based foraging (paper: section 5.1, appendix B.2).

    Actions: 0 none, 1 north, 2 south, 3 west, 4 east, 5 load. A move is possible towards a cell
    inside the grid without an object, load next to an object; anything else counts as none.

    Step: all move at once. Of those who name the same cell nobody moves; whoever stays names its
    own cell. Then the loaders next to an object collect it if their levels add up to at least
    its level, and each of them is rewarded with the object's level.

    End: terminated when no object is left, truncated after `horizon` steps.
    """

    name: ClassVar[str] = "lbf"

    size: int = eqx.field(static=True, default=8)
    """Rows and columns of the grid."""
    objects: int = eqx.field(static=True, default=3)
    """How many objects there are at the start."""
    horizon: Int[Array, ""] = eqx.field(converter=_int, default=50)
    """Steps after which an episode is cut."""
    agent_levels: Int[Array, " 2"] = eqx.field(converter=_int, default=(1, 3))
    """Lowest and highest level of an agent."""
    object_levels: Int[Array, " 2"] = eqx.field(converter=_int, default=(1, 3))
    """Lowest and highest level of an object; a highest of 0 means the sum of the levels of the
    agents present at the start, less one."""
    agent_border: tuple[int, ...] = eqx.field(static=True, converter=tuple, default=(0, 0))
    """Rows and columns at the low and at the high end of the grid where no agent appears."""
    object_border: tuple[int, ...] = eqx.field(static=True, converter=tuple, default=(0, 0))
    """The same for objects."""

    def __check_init__(self) -> None:
        for name, low in (("size", 2), ("objects", 1), ("horizon", 1)):
            value = int(getattr(self, name))
            if value < low:
                raise InputError(f"LBF's {name} is {value}, but it has to be at least {low}.")
        for name in ("agent_levels", "object_levels"):
            low, high = (int(bound) for bound in getattr(self, name))
            by_team = name == "object_levels" and high == 0
            if low < 1 or (high < low and not by_team):
                raise InputError(
                    f"LBF's {name} are {low} to {high}, but the lowest has to be at least 1"
                    " and the highest no lower than it."
                )

    @property
    def actions(self) -> Sequence[str]:
        """The names of the actions, in the order of their numbers."""
        return ("none", "north", "south", "west", "east", "load")

    def features(self, slots: int) -> tuple[Sequence[Feature], Sequence[Feature]]:
        """The columns of x, and the entries of u: the objects that are left, row by row."""
        strongest = int(self.agent_levels[1])
        highest = int(self.object_levels[1]) or strongest * slots - 1
        objects = [
            replace(each, name=f"object {k + 1}: {each.name}")
            for k in range(self.objects)
            for each in self._features("object", highest)
        ]
        return self._features("agent", strongest), objects

    def _features(self, what: str, highest: int) -> list[Feature]:
        last = self.size - 1
        return [
            Feature("row", f"row of the {what}, 0 is north", 0, last, -1),
            Feature("column", f"column of the {what}, 0 is west", 0, last, -1),
            Feature("level", f"level of the {what}", 1, highest, 0),
        ]

    def check(self, slots: int) -> None:
        """Raise `InputError` when so many agents do not fit into the grid with its objects."""
        for what, number, border in (
            # Every object keeps the cells within SPACING of it from the others.
            ("objects", (2 * SPACING * (SPACING + 1) + 1) * (self.objects - 1), self.object_border),
            ("agents", self.objects, self.agent_border),
        ):
            side = self.size - sum(border)
            if max(side, 0) ** 2 <= number + slots:
                raise InputError(
                    f"A grid of {self.size}x{self.size} is too small for {self.objects} objects"
                    f" and {slots} agents: the {what} may not find room."
                )

    def start(self, dice: Dice, present: Bool[Array, " slot"]) -> State:
        """Agents on free cells, then objects on free cells away from one another."""
        slots = present.shape[0]
        nothing = State(
            agents=jnp.broadcast_to(NOBODY, (slots, 3)),
            objects=jnp.broadcast_to(NOBODY, (self.objects, 3)),
            time=jnp.int32(0),
        )
        state = self.enter(dice, nothing, present)
        return State(state.agents, self._draw_objects(dice, state.agents), state.time)

    def _draw_objects(self, dice: Dice, agents: Int[Array, "slot 3"]) -> Int[Array, "object 3"]:
        index = jnp.arange(self.size)
        inside = (index >= self.object_border[0]) & (index < self.size - self.object_border[1])
        free = inside[:, None] & inside[None, :]
        on_row = agents[:, 0, None] == index[None]
        on_column = agents[:, 1, None] == index[None]
        free = free & ~jnp.any(on_row[:, :, None] & on_column[:, None, :], axis=0)
        chance = dice.uniform(self.objects)
        cells = []
        for k in range(self.objects):
            cell = draw_free(chance[k], free)
            rows, columns = jnp.abs(index - cell[0]), jnp.abs(index - cell[1])
            free = free & (rows[:, None] + columns[None, :] > SPACING)
            cells.append(cell)
        cell = jnp.stack(cells)
        highest = jnp.where(
            self.object_levels[1] == 0, jnp.sum(agents[:, 2]) - 1, self.object_levels[1]
        )
        level = dice.integers(self.object_levels[0], highest, self.objects)
        objects = jnp.concatenate([cell, level[:, None]], axis=1)
        return _listed(jnp.where(cell[:, :1] < NOWHERE, objects, NOBODY), self.size)

    def enter(self, dice: Dice, state: State, entering: Bool[Array, " slot"]) -> State:
        """Newcomers get a free cell and a level."""
        slots = entering.shape[0]
        side = self.size - sum(self.agent_border)
        taken = jnp.concatenate([state.agents[:, :2], state.objects[:, :2]]) - self.agent_border[0]
        inside = jnp.all((taken >= 0) & (taken < side), axis=1)
        taken = jnp.where(inside, taken[:, 0] * side + taken[:, 1], -1)
        cell = draw_cells(dice.uniform(slots), entering, taken, jnp.int32(side * side))
        position = position_of(cell, side) + self.agent_border[0]
        level = dice.integers(self.agent_levels[0], self.agent_levels[1], slots)
        newcomers = jnp.concatenate([position, level[:, None]], axis=1)
        agents = jnp.where(entering[:, None], newcomers, state.agents)
        return State(agents, state.objects, state.time)

    def leave(self, state: State, leaving: Bool[Array, " slot"]) -> State:
        """Leavers vanish from the grid."""
        agents = jnp.where(leaving[:, None], NOBODY, state.agents)
        return State(agents, state.objects, state.time)

    def possible(self, state: State) -> Bool[Array, "slot action"]:
        """Which actions count as chosen for each slot; all others count as none."""
        target = state.agents[:, None, :2] + MOVES[None]
        on_object = self._on_object(state, target)
        number = jnp.arange(len(MOVES))
        load = jnp.any(on_object[:, NORTH : EAST + 1], axis=1)
        return jnp.where(
            (number == LOAD)[None],
            load[:, None],
            (self._inside(target) & ~on_object) | (number == NONE)[None],
        )

    def _inside(self, cell: Int[Array, "*n 2"]) -> Bool[Array, "*n"]:
        return jnp.all((cell >= 0) & (cell < self.size), axis=-1)

    def _on_object(self, state: State, cell: Int[Array, "*n 2"]) -> Bool[Array, "*n"]:
        """Whether an object is there; one that is missing is at (-1, -1), off the grid."""
        objects = jnp.expand_dims(state.objects[:, :2], range(cell.ndim - 1))
        same = jnp.all(cell[..., None, :] == objects, axis=-1)
        return jnp.any(same, axis=-1) & (cell[..., 0] >= 0)

    def step(self, dice: Dice, state: State, actions: Int[Array, " slot"]) -> tuple[State, Outcome]:
        """Everybody present moves at once, then the loaders collect."""
        del dice
        standing, present = state.agents[:, :2], state.present
        south = jnp.where(actions == SOUTH, 1, jnp.where(actions == NORTH, -1, 0))
        east = jnp.where(actions == EAST, 1, jnp.where(actions == WEST, -1, 0))
        named = standing + jnp.stack([south, east], axis=1)
        possible = self._inside(named) & ~self._on_object(state, named)
        named = jnp.where((possible & present)[:, None], named, standing)
        rivals = jnp.all(named[:, None] == named[None], axis=-1) & present[None]
        alone = jnp.sum(rivals, axis=1) == 1
        position = jnp.where((alone & present)[:, None], named, standing)

        apart = jnp.sum(jnp.abs(standing[:, None] - state.objects[None, :, :2]), axis=-1)
        loaders = (actions == LOAD) & present
        loading = loaders[:, None] & (apart == 1) & state.remaining[None]
        strength = jnp.sum(jnp.where(loading, state.agents[:, 2:], 0), axis=0)
        gone = (strength >= state.objects[:, 2]) & state.remaining
        collected = loading & gone[None]
        rewards = jnp.sum(jnp.where(collected, state.objects[None, :, 2], 0), axis=1)

        objects = jnp.where(gone[:, None], NOBODY, state.objects)
        following = State(
            agents=jnp.concatenate([position, state.agents[:, 2:]], axis=1),
            objects=_listed(objects, self.size),
            time=state.time + 1,
        )
        terminated = ~jnp.any(following.remaining)
        outcome = Outcome(
            rewards=rewards.astype(jnp.float32),
            shaping=jnp.zeros(rewards.shape),
            terminated=terminated,
            truncated=(following.time >= self.horizon) & ~terminated,
            happened=Happened(collected),
        )
        return following, outcome

    def observe(self, state: State) -> tuple[Float[Array, "slot 3"], Float[Array, " shared"]]:
        """Agent features x and shared features u, as they are, not scaled."""
        return state.agents.astype(jnp.float32), state.objects.astype(jnp.float32).reshape(-1)


def _listed(objects: Int[Array, "object 3"], size: int) -> Int[Array, "object 3"]:
    """The same objects row by row over the grid, missing ones last."""
    number = jnp.arange(objects.shape[0])
    cell = objects[:, 0] * size + objects[:, 1]
    order = jnp.where(objects[:, 2] > 0, cell, size * size + number)
    place = jnp.sum(order[:, None] > order[None, :], axis=1)
    there = place[:, None] == number[None, :]
    return jnp.sum(jnp.where(there[:, :, None], objects[:, None, :], 0), axis=0)


REFERENCE: dict[str, object] = {
    "agent_levels": (1, 2),
    "object_levels": (1, 0),
    "agent_border": (0, 1),
    "object_border": (1, 1),
}
"""Where the rules `reference` differ from `paper`, which are the defaults."""


def preset(rules: str, **changes: object) -> LBF:
    """Level-based foraging under the rules `paper` or `reference`, with any field changed."""
    return with_changes(LBF, REFERENCE if rules == "reference" else {}, changes)
