"""The heuristic types of level-based foraging (paper: appendix B.4.2).

A heuristic assigns a cost to each object it sees, walks to the cheapest one and loads it. All are
memoryless. Distances are squared Euclidean; of equally cheap objects the first (row by row) is
the target.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from dropin._xla.random import uniform_to_index
from dropin.games.lbf.game import EAST, LOAD, NORTH, SOUTH, WEST
from dropin.games.lbf.observer import View
from dropin.teams.types import Execute, PolicyInput, Type

__all__ = [
    "UNWANTED",
    "Aim",
    "FollowStrongest",
    "Forager",
    "approach",
    "closest",
    "closest_feasible",
    "closest_to_team",
    "closest_to_team_feasible",
    "farthest",
    "follow_farthest",
    "highest_feasible",
    "random_valid_action",
]

UNWANTED = 2**20
"""The cost of an object that is not wanted; larger than any distance or level."""


class Aim(eqx.Module):
    """What an agent heads for: the cheapest object or, if none is wanted, another agent."""

    cost: Int[Array, " object"]
    """The cheapest object is the target; objects that cost `UNWANTED` are not wanted."""
    leader: Int[Array, ""]
    """The slot of the agent to walk to if no object is wanted; -1 for none."""


def approach(view: View, aim: Aim) -> Int[Array, ""]:
    """Load the target if it is adjacent, otherwise take a step towards it.

    The agent closes the gap in rows first, then the one in columns. It takes a random valid action
    if neither step is possible, or if it has no target.

    Args:
        view: What the agent sees.
        aim: What it heads for.
    """
    count = aim.cost.shape[0]
    index = jnp.arange(count)
    # One minimum over cost and index together is much faster than arg-min and a gather.
    best = jnp.min(aim.cost * count + index)
    wanted = best < UNWANTED * count
    target = jnp.where(
        wanted, _select_row(view.objects, best % count), _select_row(view.agents, aim.leader)
    )
    gap = target[:2] - view.me[:2]

    random_action = random_valid_action(view)
    vertical = jnp.where(gap[0] < 0, NORTH, SOUTH)
    horizontal = jnp.where(gap[1] < 0, WEST, EAST)
    action = jnp.where((gap[1] != 0) & _is_valid(view, horizontal), horizontal, random_action)
    action = jnp.where((gap[0] != 0) & _is_valid(view, vertical), vertical, action)
    action = jnp.where(wanted & (jnp.sum(jnp.abs(gap)) == 1), LOAD, action)
    return jnp.where(wanted | (aim.leader >= 0), action, random_action)


def _is_valid(view: View, action: Int[Array, ""]) -> Bool[Array, ""]:
    return jnp.any(view.valid_actions & (jnp.arange(view.valid_actions.shape[0]) == action))


def random_valid_action(view: View) -> Int[Array, ""]:
    """Return a valid action, drawn uniformly."""
    return _draw_index(view.valid_actions, view.uniform[0])


def _draw_index(candidates: Bool[Array, " n"], uniform: Float[Array, ""]) -> Int[Array, ""]:
    """Return the index of a candidate, drawn uniformly by means of a uniform number."""
    index = jnp.arange(candidates.shape[0])
    up_to = jnp.sum(candidates[None, :] & (index[None, :] <= index[:, None]), axis=1)
    return jnp.sum(up_to <= uniform_to_index(uniform, jnp.sum(candidates)))


def _squared_distances(rows: Int[Array, "n 3"], position: Int[Array, " 2"]) -> Int[Array, " n"]:
    return jnp.sum((rows[:, :2] - position[None]) ** 2, axis=1)


def _team_centre(view: View) -> Int[Array, " 2"]:
    """Return the mean position of the agents in sight, rounded (halves to even)."""
    total = jnp.sum(jnp.where(view.sees_agent[:, None], view.agents[:, :2], 0), axis=0)
    mean = total.astype(jnp.float32) / jnp.sum(view.sees_agent).astype(jnp.float32)
    return jnp.round(mean).astype(jnp.int32)


def _select_row(rows: Int[Array, "n 3"], index: Int[Array, ""]) -> Int[Array, " 3"]:
    """Return one row, without a gather; zeros if the index is -1."""
    selected = jnp.arange(rows.shape[0]) == index
    return jnp.sum(jnp.where(selected[:, None], rows, 0), axis=0)


def _aim_at_object(view: View, cost: Int[Array, " object"], wanted: Bool[Array, " object"]) -> Aim:
    """Head for the cheapest of the wanted objects in sight."""
    return Aim(jnp.where(wanted & view.sees_object, cost, UNWANTED), jnp.int32(-1))


def _aim_with_leader(view: View, leader: Int[Array, ""], cost: Int[Array, " object"]) -> Aim:
    """Head for the cheapest object in sight, or for the leader if there is none.

    An agent that sees no other agent has no target.
    """
    sees_others = jnp.sum(view.sees_agent) > 1
    cost = jnp.where(view.sees_object & sees_others, cost, UNWANTED)
    return Aim(cost, jnp.where(sees_others, leader, -1))


def _highest_first(view: View, level: Int[Array, ""]) -> Int[Array, " object"]:
    """Return costs that prefer the highest object up to `level`, then the highest of all."""
    height = view.objects[:, 2]
    return jnp.where(height <= level, -height, UNWANTED // 2 - height)


def _farthest_agent(view: View) -> Int[Array, ""]:
    """Return the slot of the farthest agent in sight; ties are broken at random."""
    distance = jnp.where(view.sees_agent, _squared_distances(view.agents, view.me[:2]), -1)
    return _draw_index(distance == jnp.max(distance), view.uniform[1])


class FollowStrongest(eqx.Module):
    """H1: follow the strongest agent above its own level, or the farthest agent.

    The target is the object that H3 would choose in the place of the leader.
    """

    level_by_cell: bool = eqx.field(static=True, default=False)
    """Whether the leader's level is read off its cell, as in the authors' program: if two agents
    share the cell, the level of the last one counts."""

    def __call__(self, view: View) -> Aim:
        """Return what an agent with this view heads for."""
        slot = jnp.arange(view.agents.shape[0])
        level = jnp.where(view.sees_agent, view.agents[:, 2], 0)
        highest = jnp.max(level)
        strongest = jnp.min(jnp.where(level == highest, slot, UNWANTED))
        leader = level_from = jnp.where(highest > view.me[2], strongest, _farthest_agent(view))
        if self.level_by_cell:
            position = _select_row(view.agents, leader)[:2]
            on_cell = view.sees_agent & jnp.all(view.agents[:, :2] == position[None], axis=1)
            level_from = jnp.max(jnp.where(on_cell, slot, -1))
        leader_level = _select_row(view.agents, level_from)[2]
        return _aim_with_leader(view, leader, _highest_first(view, leader_level))


def follow_farthest(view: View) -> Aim:
    """H2: follow the farthest agent to the object that H4 would choose in its place."""
    leader = _farthest_agent(view)
    position = _select_row(view.agents, leader)[:2]
    return _aim_with_leader(view, leader, -_squared_distances(view.objects, position))


def highest_feasible(view: View) -> Aim:
    """H3: head for the highest object that is not above its own level, or else for the highest."""
    return _aim_at_object(view, _highest_first(view, view.me[2]), view.sees_object)


def farthest(view: View) -> Aim:
    """H4: head for the farthest object."""
    cost = -_squared_distances(view.objects, view.me[:2])
    return _aim_at_object(view, cost, view.sees_object)


def closest(view: View) -> Aim:
    """H6: head for the closest object."""
    cost = _squared_distances(view.objects, view.me[:2])
    return _aim_at_object(view, cost, view.sees_object)


def closest_to_team(view: View) -> Aim:
    """H7: head for the object closest to the centre of the team."""
    cost = _squared_distances(view.objects, _team_centre(view))
    return _aim_at_object(view, cost, view.sees_object)


def closest_feasible(view: View) -> Aim:
    """H8: head for the closest object up to its own level."""
    cost = _squared_distances(view.objects, view.me[:2])
    return _aim_at_object(view, cost, view.objects[:, 2] <= view.me[2])


def closest_to_team_feasible(view: View) -> Aim:
    """H9: as H7, but only for objects up to the sum of the team's levels."""
    cost = _squared_distances(view.objects, _team_centre(view))
    team_level = jnp.sum(jnp.where(view.sees_agent, view.agents[:, 2], 0))
    return _aim_at_object(view, cost, view.objects[:, 2] <= team_level)


class Forager(Type):
    """A type that aims at something, walks there and loads."""

    aim: Callable[[View], Aim]
    """Chooses what an agent heads for."""

    def plan(self, inputs: PolicyInput, memory: PyTree) -> tuple[Aim, PyTree]:
        """Return what each actor heads for."""
        return jax.vmap(self.aim)(inputs.views), memory

    @property
    def execute(self) -> Execute:
        """Let each actor approach what it heads for."""
        return _approach_all


def _approach_all(inputs: PolicyInput, plan: Aim) -> Int[Array, " actor"]:
    return jax.vmap(approach)(inputs.views, plan)
