"""The rules of level-based foraging."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.games.base import CooperativeGame, Feature, StepOutcome, as_int, make_preset
from dropin.games.grid import NO_CELL, cell_position, draw_cells, draw_free_cell

__all__ = [
    "ABSENT",
    "EAST",
    "LBF",
    "LOAD",
    "MOVES",
    "NONE",
    "NORTH",
    "NUM_ACTIONS",
    "SOUTH",
    "WEST",
    "State",
    "StepEvents",
    "make_game",
]

NONE, NORTH, SOUTH, WEST, EAST, LOAD = range(6)
NUM_ACTIONS = 6
MOVES = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1], [0, 0]], np.int32)
"""What each action adds to row and column."""

ABSENT = np.array([[-1, -1, 0]], np.int32)
"""Row, column and level of an absent agent or a missing object."""

SPACING = 2
"""Objects are more than this far apart (Manhattan distance), so no cell is adjacent to two."""


class State(eqx.Module):
    """Positions and levels. Rows are (row, column, level).

    An absent agent or missing object is (-1, -1, 0). Objects are sorted by cell, row by row, with
    missing ones last.
    """

    agents: Int[Array, "slot 3"]
    objects: Int[Array, "object 3"]
    time: Int[Array, ""]
    """Steps taken in this episode."""

    @property
    def present(self) -> Bool[Array, " slot"]:
        """Which slots hold an agent."""
        return self.agents[..., 2] > 0

    @property
    def remaining(self) -> Bool[Array, " object"]:
        """Which objects have not been collected."""
        return self.objects[..., 2] > 0


class StepEvents(eqx.Module):
    """What happened in a step."""

    collected: Bool[Array, "slot object"]
    """Which agents took part in collecting which object, in the order before the step."""


class LBF(CooperativeGame):
    """Level-based foraging (paper: section 5.1, appendix B.2).

    Agents walk on a grid and collect objects. An object is collected when agents next to it load
    it at the same time and their levels add up to at least its level.

    | | dtype and shape | content |
    |---|---|---|
    | observation, `agents` | float32 [slot, 3] | row, column and level of each agent |
    | observation, `shared` | float32 [3 * objects] | row, column and level of each object |
    | actions | int32 [slot] | 0 none, 1 north, 2 south, 3 west, 4 east, 5 load |
    | rewards | float32 [slot] | sum of the levels of the objects the agent helped to collect |
    | terminated | bool [] | no object is left |
    | truncated | bool [] | `horizon` steps have been taken and an object is left |

    In the observation, objects are sorted by cell, row by row. Absent agents and missing objects,
    which come last, are (-1, -1, 0).

    A move is valid if it leads to a cell of the grid without an object, a load if the agent is next
    to an object. Any other action counts as none.

    All agents act at once. Each names the cell it moves to, or its own if it stays. An agent moves
    if no other agent names the same cell; otherwise it stays. A cell that is named by one agent
    only is entered even if its occupant then has to stay, so two agents may share a cell.
    """

    name: ClassVar[str] = "lbf"

    size: int = eqx.field(static=True, default=8)
    """Number of rows and of columns of the grid."""
    objects: int = eqx.field(static=True, default=3)
    """Number of objects at the start."""
    horizon: Int[Array, ""] = eqx.field(converter=as_int, default=50)
    """Number of steps after which an episode is cut."""
    agent_levels: Int[Array, " 2"] = eqx.field(converter=as_int, default=(1, 3))
    """Lowest and highest level of an agent."""
    object_levels: Int[Array, " 2"] = eqx.field(converter=as_int, default=(1, 3))
    """Lowest and highest level of an object. A highest level of 0 stands for the sum of the levels
    of the agents present at the start, minus one."""
    agent_border: tuple[int, ...] = eqx.field(static=True, converter=tuple, default=(0, 0))
    """Number of rows and columns at the low and the high end of the grid where no agent spawns."""
    object_border: tuple[int, ...] = eqx.field(static=True, converter=tuple, default=(0, 0))
    """The same for objects."""

    def __check_init__(self) -> None:
        for name, lowest in (("size", 2), ("objects", 1), ("horizon", 1)):
            value = int(getattr(self, name))
            if value < lowest:
                raise InputError(f"LBF's {name} is {value}, but it has to be at least {lowest}.")
        for name in ("agent_levels", "object_levels"):
            low, high = np.asarray(getattr(self, name)).tolist()
            depends_on_team = name == "object_levels" and high == 0
            if low < 1 or (high < low and not depends_on_team):
                raise InputError(
                    f"LBF's {name} are {low} to {high}, but the lowest has to be at least 1"
                    " and the highest no lower than it."
                )

    @property
    def actions(self) -> Sequence[str]:
        """The names of the actions, in the order of their numbers."""
        return ("none", "north", "south", "west", "east", "load")

    def features(self, slots: int) -> tuple[Sequence[Feature], Sequence[Feature]]:
        """Return the columns of the agent features x and the entries of the shared features u."""
        highest_agent = int(np.asarray(self.agent_levels)[1])
        highest_object = int(np.asarray(self.object_levels)[1]) or highest_agent * slots - 1
        objects = [
            replace(each, name=f"object {k + 1}: {each.name}")
            for k in range(self.objects)
            for each in self._row_features("object", highest_object)
        ]
        return self._row_features("agent", highest_agent), objects

    def _row_features(self, owner: str, highest_level: int) -> list[Feature]:
        last = self.size - 1
        return [
            Feature("row", f"row of the {owner}, 0 is north", 0, last, -1),
            Feature("column", f"column of the {owner}, 0 is west", 0, last, -1),
            Feature("level", f"level of the {owner}", 1, highest_level, 0),
        ]

    def validate(self, slots: int) -> None:
        """Raise `InputError` if this many agents may not fit into the grid with its objects."""
        cells_per_object = 2 * SPACING * (SPACING + 1) + 1
        for spawning, occupied, border in (
            ("objects", cells_per_object * (self.objects - 1), self.object_border),
            ("agents", self.objects, self.agent_border),
        ):
            side = self.size - sum(border)
            if max(side, 0) ** 2 <= occupied + slots:
                raise InputError(
                    f"A grid of {self.size}x{self.size} is too small for {self.objects} objects"
                    f" and {slots} agents: the {spawning} may not find room."
                )

    def reset(self, rng: StepRNG, present: Bool[Array, " slot"]) -> State:
        """Place agents on free cells, then objects on free cells at a distance from each other."""
        slots = present.shape[0]
        empty = State(
            agents=jnp.broadcast_to(ABSENT, (slots, 3)),
            objects=jnp.broadcast_to(ABSENT, (self.objects, 3)),
            time=jnp.int32(0),
        )
        state = self.spawn(rng, empty, present)
        return State(state.agents, self._draw_objects(rng, state.agents), state.time)

    def _draw_objects(self, rng: StepRNG, agents: Int[Array, "slot 3"]) -> Int[Array, "object 3"]:
        index = jnp.arange(self.size)
        inside = (index >= self.object_border[0]) & (index < self.size - self.object_border[1])
        free = inside[:, None] & inside[None, :]
        on_row = agents[:, 0, None] == index[None]
        on_column = agents[:, 1, None] == index[None]
        free = free & ~jnp.any(on_row[:, :, None] & on_column[:, None, :], axis=0)
        uniform = rng.uniform(self.objects)
        drawn = []
        for k in range(self.objects):
            position = draw_free_cell(uniform[k], free)
            rows, columns = jnp.abs(index - position[0]), jnp.abs(index - position[1])
            free = free & (rows[:, None] + columns[None, :] > SPACING)
            drawn.append(position)
        positions = jnp.stack(drawn)
        highest = jnp.where(
            self.object_levels[1] == 0, jnp.sum(agents[:, 2]) - 1, self.object_levels[1]
        )
        level = rng.integers(self.object_levels[0], highest, self.objects)
        objects = jnp.concatenate([positions, level[:, None]], axis=1)
        return _sort_by_cell(jnp.where(positions[:, :1] < NO_CELL, objects, ABSENT), self.size)

    def spawn(self, rng: StepRNG, state: State, entering: Bool[Array, " slot"]) -> State:
        """Give each newcomer a free cell and a level."""
        slots = entering.shape[0]
        # Cells are numbered within the square where agents may spawn.
        side = self.size - sum(self.agent_border)
        taken = jnp.concatenate([state.agents[:, :2], state.objects[:, :2]]) - self.agent_border[0]
        inside = jnp.all((taken >= 0) & (taken < side), axis=1)
        taken = jnp.where(inside, taken[:, 0] * side + taken[:, 1], -1)
        cell = draw_cells(rng.uniform(slots), entering, taken, jnp.int32(side * side))
        position = cell_position(cell, side) + self.agent_border[0]
        level = rng.integers(self.agent_levels[0], self.agent_levels[1], slots)
        newcomers = jnp.concatenate([position, level[:, None]], axis=1)
        agents = jnp.where(entering[:, None], newcomers, state.agents)
        return State(agents, state.objects, state.time)

    def despawn(self, state: State, leaving: Bool[Array, " slot"]) -> State:
        """Remove agents that leave."""
        agents = jnp.where(leaving[:, None], ABSENT, state.agents)
        return State(agents, state.objects, state.time)

    def valid_actions(self, state: State) -> Bool[Array, "slot action"]:
        """Return which actions each agent can take; any other action counts as none."""
        target = state.agents[:, None, :2] + MOVES[None]
        on_object = self._on_object(state, target)
        action = jnp.arange(NUM_ACTIONS)
        can_load = jnp.any(on_object[:, NORTH : EAST + 1], axis=1)
        return jnp.where(
            (action == LOAD)[None],
            can_load[:, None],
            (self._inside(target) & ~on_object) | (action == NONE)[None],
        )

    def _inside(self, position: Int[Array, "*n 2"]) -> Bool[Array, "*n"]:
        """Return which positions are on the grid."""
        return jnp.all((position >= 0) & (position < self.size), axis=-1)

    def _on_object(self, state: State, position: Int[Array, "*n 2"]) -> Bool[Array, "*n"]:
        """Return which positions hold an object; missing objects are off the grid, at (-1, -1)."""
        objects = jnp.expand_dims(state.objects[:, :2], range(position.ndim - 1))
        same = jnp.all(position[..., None, :] == objects, axis=-1)
        return jnp.any(same, axis=-1) & (position[..., 0] >= 0)

    def step(
        self, rng: StepRNG, state: State, actions: Int[Array, " slot"]
    ) -> tuple[State, StepOutcome]:
        """Move all agents at once, then collect what is loaded with enough strength.

        Args:
            rng: Not used; a step is deterministic.
            state: The state.
            actions: An action for each slot; those of empty slots have no effect.

        Returns:
            The state after the step, and what the step led to.
        """
        del rng
        positions = self._move(state, actions)

        # A loader does not move, so it does not matter which positions are used.
        distance = jnp.sum(jnp.abs(state.agents[:, None, :2] - state.objects[None, :, :2]), axis=-1)
        loaders = (actions == LOAD) & state.present
        loading = loaders[:, None] & (distance == 1) & state.remaining[None]
        strength = jnp.sum(jnp.where(loading, state.agents[:, 2:], 0), axis=0)
        gone = (strength >= state.objects[:, 2]) & state.remaining
        collected = loading & gone[None]
        rewards = jnp.sum(jnp.where(collected, state.objects[None, :, 2], 0), axis=1)

        objects = jnp.where(gone[:, None], ABSENT, state.objects)
        following = State(
            agents=jnp.concatenate([positions, state.agents[:, 2:]], axis=1),
            objects=_sort_by_cell(objects, self.size),
            time=state.time + 1,
        )
        terminated = ~jnp.any(following.remaining)
        outcome = StepOutcome(
            rewards=rewards.astype(jnp.float32),
            shaping=jnp.zeros(rewards.shape),
            terminated=terminated,
            truncated=(following.time >= self.horizon) & ~terminated,
            events=StepEvents(collected),
        )
        return following, outcome

    def _move(self, state: State, actions: Int[Array, " slot"]) -> Int[Array, "slot 2"]:
        """Return the positions after a step: an agent moves if no other names the same cell."""
        before, present = state.agents[:, :2], state.present
        down = jnp.where(actions == SOUTH, 1, jnp.where(actions == NORTH, -1, 0))
        right = jnp.where(actions == EAST, 1, jnp.where(actions == WEST, -1, 0))
        named = before + jnp.stack([down, right], axis=1)
        valid = self._inside(named) & ~self._on_object(state, named)
        named = jnp.where((valid & present)[:, None], named, before)
        same_cell = jnp.all(named[:, None] == named[None], axis=-1) & present[None]
        unopposed = jnp.sum(same_cell, axis=1) == 1
        return jnp.where((unopposed & present)[:, None], named, before)

    def observe(self, state: State) -> tuple[Float[Array, "slot 3"], Float[Array, " shared"]]:
        """Return the agent features x and the shared features u, unscaled."""
        return state.agents.astype(jnp.float32), state.objects.astype(jnp.float32).reshape(-1)


def _sort_by_cell(objects: Int[Array, "object 3"], size: int) -> Int[Array, "object 3"]:
    """Sort objects by cell, row by row over the grid, missing ones last."""
    index = jnp.arange(objects.shape[0])
    cell = objects[:, 0] * size + objects[:, 1]
    order = jnp.where(objects[:, 2] > 0, cell, size * size + index)
    rank = jnp.sum(order[:, None] > order[None, :], axis=1)
    permutation = rank[:, None] == index[None, :]
    return jnp.sum(jnp.where(permutation[:, :, None], objects[:, None, :], 0), axis=0)


REFERENCE: dict[str, object] = {
    "agent_levels": (1, 2),
    "object_levels": (1, 0),
    "agent_border": (0, 1),
    "object_border": (1, 1),
}
"""Where the rules `reference` differ from `paper`, which are the defaults."""


def make_game(rules: str, **settings: object) -> LBF:
    """Make the game under a set of rules.

    Args:
        rules: `paper` or `reference`.
        **settings: Fields of `LBF` that differ from the rules.

    Raises:
        InputError: If there is no such field, or a value cannot be used.

    >>> make_game("paper", size=10).size
    10
    """
    return make_preset(LBF, REFERENCE if rules == "reference" else {}, settings)
