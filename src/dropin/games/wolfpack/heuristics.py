"""The heuristic types of Wolfpack (paper: appendix B.4.1).

A heuristic plans what a hunter does in a step: it gives the probabilities of the actions, or a cell
to walk to around all others. All are memoryless. "Next to" means above, below, left or right of; a
*capture cell* is a cell next to a prey; distances are Manhattan.
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from dropin._xla.random import sample_categorical
from dropin.games.wolfpack.observer import FAR, View, capture_cells
from dropin.games.wolfpack.search import NO_PATH, Search
from dropin.games.wolfpack.state import (
    DOWN,
    LEFT,
    NUM_ACTIONS,
    RIGHT,
    STAY,
    UP,
    manhattan_distance,
)
from dropin.teams.types import Execute, PolicyInput, Type

__all__ = [
    "ActionProbs",
    "CaptureCell",
    "ExecutePlan",
    "GreedyProbabilistic",
    "Heuristic",
    "HeuristicHunter",
    "Plan",
    "Waiting",
    "action_probs",
    "certain",
    "greedy",
    "move_towards",
    "nearest_capture_cell",
    "random",
    "teammate_aware",
    "uniform_over",
]

TEMPERATURE = 2.5
"""Temperature of the softmax over axes, and over directions, of the greedy probabilistic hunter."""
OFF_GRID_COST = 5.0
"""Cost, in cells, that this hunter assigns to a move off the grid."""

ActionProbs = Float[Array, " action"]
"""The probability of each action of a hunter."""


class Plan(eqx.Module):
    """What a hunter is going to do in a step: walk to a goal, or sample an action."""

    probs: ActionProbs
    """The probability of each action if there is no goal."""
    goal: Int[Array, " 2"]
    """The cell to walk to; (-1, -1) for none."""

    @classmethod
    def without_goal(cls, probs: ActionProbs) -> "Plan":
        """Return the plan to sample an action."""
        return cls(probs, jnp.full(2, -1))


Heuristic = Callable[[View], Plan]
"""A function from a hunter's view to its plan."""


def certain(action: Int[Array, ""] | int) -> ActionProbs:
    """Return probability 1 for one action."""
    return (jnp.arange(NUM_ACTIONS) == action).astype(jnp.float32)


def uniform_over(count: int) -> ActionProbs:
    """Return equal probabilities for the first `count` actions."""
    return jnp.where(jnp.arange(NUM_ACTIONS) < count, 1.0 / count, 0.0)


class CaptureCell(eqx.Module):
    """The nearest cell from which a hunter can take part in capturing a living prey."""

    cell: Int[Array, " 2"]
    prey: Int[Array, " 2"]
    """The cell of the prey."""
    exists: Bool[Array, ""]
    """False if no prey is alive."""


def nearest_capture_cell(view: View) -> CaptureCell:
    """Return the capture cell of a living prey that is nearest to the hunter.

    Ties go to the earlier prey, then to the first of left, right, below, above.
    """
    cells, inside = capture_cells(view.prey, (LEFT, RIGHT, DOWN, UP), view.size)
    eligible = inside & jnp.repeat(view.alive, 4)
    count = len(cells)
    index = jnp.arange(count)
    # One minimum over distance and index together is much faster than arg-min and a gather.
    distance = jnp.where(eligible, manhattan_distance(cells, view.me[None]), FAR)
    best = jnp.min(distance * count + index)
    is_best = (index == best % count)[:, None]

    def select(rows: Int[Array, "cell 2"]) -> Int[Array, " 2"]:
        return jnp.sum(jnp.where(is_best, rows, 0), axis=0)

    prey = jnp.repeat(view.prey, 4, axis=0)
    return CaptureCell(select(cells), select(prey), best < FAR * count)


def move_towards(offset: Int[Array, " 2"]) -> Int[Array, ""]:
    """Return the move towards a cell at the offset (down, right), along columns first."""
    vertical = jnp.where(offset[0] > 0, DOWN, UP)
    return jnp.where(offset[1] > 0, RIGHT, jnp.where(offset[1] < 0, LEFT, vertical))


def _move_at_adjacent_prey(view: View) -> tuple[Bool[Array, ""], Int[Array, ""]]:
    """Return whether a living prey is next to the hunter, and the move into the first such prey."""
    adjacent = view.alive & (manhattan_distance(view.prey, view.me[None]) == 1)
    index = jnp.arange(len(adjacent))
    first = index == jnp.min(jnp.where(adjacent, index, len(adjacent)))
    offset = jnp.sum(jnp.where(first[:, None], view.prey - view.me[None], 0), axis=0)
    return jnp.any(adjacent), move_towards(offset)


def _move_along_larger_gap(
    view: View, vertical: Int[Array, ""], horizontal: Int[Array, ""], gap: Int[Array, " 2"]
) -> ActionProbs:
    """Take the vertical move if the gap in rows is larger, otherwise the horizontal one.

    A move off the grid is replaced by the other one, and by any move if both lead off the grid.
    """
    can_move_vertically = _stays_on_grid(view, 0, vertical)
    can_move_horizontally = _stays_on_grid(view, 1, horizontal)
    rows_first = jnp.abs(gap[0]) > jnp.abs(gap[1])
    move = jnp.where(
        can_move_vertically & (rows_first | ~can_move_horizontally), vertical, horizontal
    )
    return jnp.where(can_move_vertically | can_move_horizontally, certain(move), uniform_over(STAY))


def _stays_on_grid(view: View, axis: int, move: Int[Array, ""]) -> Bool[Array, ""]:
    """Return whether a move along an axis (0 for rows, 1 for columns) stays on the grid."""
    target = view.me[axis] + jnp.where((move == DOWN) | (move == RIGHT), 1, -1)
    return (target >= 0) & (target < view.size)


def random(view: View) -> Plan:
    """Plan as H1: take any action."""
    del view
    return Plan.without_goal(uniform_over(NUM_ACTIONS))


def greedy(view: View) -> Plan:
    """Plan as H2: go to the nearest capture cell, closing the larger gap first."""
    target = nearest_capture_cell(view)
    gap = target.cell - view.me
    vertical = jnp.where(gap[0] > 0, DOWN, UP)
    horizontal = jnp.where(gap[1] < 0, LEFT, RIGHT)
    approach = _move_along_larger_gap(view, vertical, horizontal, gap)
    return Plan.without_goal(_hunt(view, target, approach))


def _hunt(view: View, target: CaptureCell, approach: ActionProbs) -> ActionProbs:
    """Move into a prey next to the hunter, else approach; take any action if no prey is alive."""
    is_adjacent, move = _move_at_adjacent_prey(view)
    probs = jnp.where(is_adjacent, certain(move), approach)
    return jnp.where(target.exists, probs, uniform_over(NUM_ACTIONS))


class GreedyProbabilistic(eqx.Module):
    """H3: as H2, but the axis is drawn, and the larger gap is only the likelier one."""

    makes_errors: bool = eqx.field(static=True)
    """Whether the direction is drawn too, and an axis without a gap can be chosen."""

    def __call__(self, view: View) -> Plan:
        """Plan to approach the nearest capture cell along an axis that is drawn."""
        target = nearest_capture_cell(view)
        gap = target.cell - view.me
        size = jnp.abs(gap).astype(jnp.float32)
        if not self.makes_errors:
            size = jnp.where(gap == 0, -jnp.inf, size)
        vertical_prob = jax.nn.sigmoid((size[0] - size[1]) / TEMPERATURE)
        vertical = self._direction_probs(view, jnp.where(gap[0] >= 0, DOWN, UP), 0)
        horizontal = self._direction_probs(view, jnp.where(gap[1] >= 0, RIGHT, LEFT), 1)
        probs = vertical_prob * vertical + (1 - vertical_prob) * horizontal
        # On its capture cell the hunter is next to a living prey and does not approach.
        approach = jnp.where(jnp.any(gap != 0), probs, 0.0)
        return Plan.without_goal(_hunt(view, target, approach))

    def _direction_probs(self, view: View, move: Int[Array, ""], axis: int) -> ActionProbs:
        """Return the probabilities of a move towards the target and of its opposite."""
        if not self.makes_errors:
            return certain(move)
        opposite = (move + 2) % 4
        cost, opposite_cost = (
            change + jnp.where(_stays_on_grid(view, axis, each), 0.0, OFF_GRID_COST)
            for change, each in ((-1.0, move), (1.0, opposite))
        )
        prob = jax.nn.sigmoid((opposite_cost - cost) / TEMPERATURE)
        return prob * certain(move) + (1 - prob) * certain(opposite)


def teammate_aware(view: View) -> Plan:
    """Plan as H4: walk to the capture cell assigned to this hunter, then move at the prey.

    It takes any action if no cell is assigned to it.
    """
    is_unassigned = jnp.all(view.assigned_cell < 0)
    has_arrived = jnp.all(view.assigned_cell == view.me)
    at_prey = certain(move_towards(view.assigned_prey - view.me))
    probs = jnp.where(has_arrived, at_prey, uniform_over(NUM_ACTIONS))
    return Plan(probs, jnp.where(is_unassigned | has_arrived, -1, view.assigned_cell))


class Waiting(eqx.Module):
    """H7, H8 and H9: as another type, but wait near a prey until enough companions are near it."""

    base: Heuristic
    """What the hunter does while it is not waiting."""
    retreats: bool = eqx.field(static=True)
    """Whether it steps away from the prey while it waits, instead of taking any action."""

    def __call__(self, view: View) -> Plan:
        """Plan to wait, or what the other type plans."""
        target = nearest_capture_cell(view)
        is_near = manhattan_distance(view.hunters, target.prey[None]) <= view.waiting_radius
        is_near = view.present & is_near
        companions = jnp.sum(is_near & (jnp.arange(len(is_near)) != view.slot))
        am_near = manhattan_distance(view.me, target.prey) <= view.waiting_radius
        waits = target.exists & am_near & (companions < view.min_companions)
        base = self.base(view)
        waiting = self._retreat(view, target.prey) if self.retreats else uniform_over(NUM_ACTIONS)
        return Plan(
            probs=jnp.where(waits, waiting, base.probs),
            goal=jnp.where(waits, -1, base.goal),
        )

    def _retreat(self, view: View, prey: Int[Array, " 2"]) -> ActionProbs:
        """Step away from a prey along the axis with the larger gap."""
        gap = view.me - prey
        vertical = jnp.where(gap[0] < 0, UP, DOWN)
        horizontal = jnp.where(gap[1] > 0, RIGHT, LEFT)
        return _move_along_larger_gap(view, vertical, horizontal, gap)


def action_probs(view: View, plan: Plan, search: Search) -> ActionProbs:
    """Return the probability of each action under a plan.

    Args:
        view: The hunter's view.
        plan: Its plan. If there is no path to the goal, all actions are equally likely.
        search: Finds the first move of a path to the goal.
    """
    has_goal = jnp.all(plan.goal >= 0)
    goal = jnp.where(has_goal, plan.goal, view.me)
    move = search(view.me, goal, jnp.concatenate([view.hunters, view.prey]), view.size)
    walk = jnp.where(move == NO_PATH, uniform_over(NUM_ACTIONS), certain(move))
    return jnp.where(has_goal, walk, plan.probs)


@dataclass(frozen=True)
class ExecutePlan:
    """Turns plans into actions: takes a step along a path to the goal, or samples an action."""

    search: Search

    def __call__(self, inputs: PolicyInput, plan: Plan) -> Int[Array, " actor"]:
        """Return the action of each actor.

        Args:
            inputs: What the types act on.
            plan: The plan of each actor.
        """
        probs_of = jax.vmap(lambda view, plan: action_probs(view, plan, self.search))
        return sample_categorical(probs_of(inputs.views, plan), inputs.views.uniform)


class HeuristicHunter(Type):
    """A type given by a heuristic."""

    heuristic: Heuristic
    search: Search = eqx.field(static=True)
    """Finds paths to the goals of plans."""

    def plan(self, inputs: PolicyInput, memory: PyTree) -> tuple[Plan, PyTree]:
        """Return the plan of each actor."""
        return jax.vmap(self.heuristic)(inputs.views), memory

    @property
    def execute(self) -> Execute:
        """The function that turns plans into actions."""
        return ExecutePlan(self.search)
