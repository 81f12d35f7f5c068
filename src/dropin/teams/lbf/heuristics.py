"""The heuristic types of level-based foraging (paper: appendix B.4.2).

A heuristic weighs the objects it sees, walks to the best one and loads. All are memoryless.
Distances are squared Euclidean; of equally good objects the first (row by row) is taken.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dropin.dice import scale
from dropin.games.lbf.game import EAST, LOAD, NORTH, SOUTH, WEST
from dropin.teams.lbf.view import View
from dropin.teams.types import CarryOut, Scene, Type

NO = 2**20
"""The cost of an object that is not wanted: above any distance or level."""


class Aim(eqx.Module):
    """What an agent is after: the cheapest object, and without one the agent it follows."""

    cost: Int[Array, " object"]
    """The cheapest object is the target; those that cost NO are not wanted."""
    leader: Int[Array, ""]
    """The slot of the agent to follow when no object is wanted; -1 for nobody."""


def walk(view: View, aim: Aim) -> Int[Array, ""]:
    """Load when next to the target; else close the row gap, then the column gap, else anything."""
    count = aim.cost.shape[0]
    number = jnp.arange(count)
    # One minimum over cost and place together is much faster than arg-min and a gather.
    best = jnp.min(aim.cost * count + number)
    wanted = best < NO * count
    target = jnp.where(wanted, _row(view.objects, best % count), _row(view.agents, aim.leader))
    gap = target[:2] - view.me[:2]

    anything = anything_possible(view)
    vertical = jnp.where(gap[0] < 0, NORTH, SOUTH)
    sideways = jnp.where(gap[1] < 0, WEST, EAST)
    action = jnp.where((gap[1] != 0) & _allows(view, sideways), sideways, anything)
    action = jnp.where((gap[0] != 0) & _allows(view, vertical), vertical, action)
    action = jnp.where(wanted & (jnp.sum(jnp.abs(gap)) == 1), LOAD, action)
    return jnp.where(wanted | (aim.leader >= 0), action, anything)


def _allows(view: View, action: Int[Array, ""]) -> Bool[Array, ""]:
    return jnp.any(view.possible & (jnp.arange(view.possible.shape[0]) == action))


def anything_possible(view: View) -> Int[Array, ""]:
    """Uniform over the possible actions."""
    return _one_of(view.possible, view.chance[0])


def _one_of(candidates: Bool[Array, " n"], chance: Float[Array, ""]) -> Int[Array, ""]:
    """The number of a candidate, uniformly."""
    number = jnp.arange(candidates.shape[0])
    up_to = jnp.sum(candidates[None, :] & (number[None, :] <= number[:, None]), axis=1)
    return jnp.sum(up_to <= scale(chance, jnp.sum(candidates)))


def _apart(rows: Int[Array, "n 3"], cell: Int[Array, " 2"]) -> Int[Array, " n"]:
    """Squared distances."""
    return jnp.sum((rows[:, :2] - cell[None]) ** 2, axis=1)


def _middle(view: View) -> Int[Array, " 2"]:
    """The mean position of those in sight, rounded, halves to even."""
    total = jnp.sum(jnp.where(view.sees_agent[:, None], view.agents[:, :2], 0), axis=0)
    mean = total.astype(jnp.float32) / jnp.sum(view.sees_agent).astype(jnp.float32)
    return jnp.round(mean).astype(jnp.int32)


def _for(view: View, cost: Int[Array, " object"], wanted: Bool[Array, " object"]) -> Aim:
    """After the wanted objects in sight."""
    return Aim(jnp.where(wanted & view.sees_object, cost, NO), jnp.int32(-1))


def _highest_up_to(view: View, level: Int[Array, ""]) -> Int[Array, " object"]:
    """The cost of objects for whoever wants the highest that `level` suffices for, or else the
    highest of all.
    """
    height = view.objects[:, 2]
    return jnp.where(height <= level, -height, NO // 2 - height)


def _farthest(view: View) -> Int[Array, ""]:
    """The slot of the agent in sight that is farthest away; a tie is broken at random."""
    apart = jnp.where(view.sees_agent, _apart(view.agents, view.me[:2]), -1)
    return _one_of(apart == jnp.max(apart), view.chance[1])


def _row(rows: Int[Array, "n 3"], index: Int[Array, ""]) -> Int[Array, " 3"]:
    here = jnp.arange(rows.shape[0]) == index
    return jnp.sum(jnp.where(here[:, None], rows, 0), axis=0)


def _follow(view: View, leader: Int[Array, ""], cost: Int[Array, " object"]) -> Aim:
    """After what the leader wants; after the leader if no object is in sight."""
    in_company = jnp.sum(view.sees_agent) > 1
    cost = jnp.where(view.sees_object & in_company, cost, NO)
    return Aim(cost, jnp.where(in_company, leader, -1))


class FollowStrongest(eqx.Module):
    """H1: what H3 would choose for the strongest agent above the own level, or the farthest."""

    level_by_cell: bool = eqx.field(static=True, default=False)
    """The leader's level is read off its cell: of two agents there, the last one's counts."""

    def __call__(self, view: View) -> Aim:
        """After the leader's object."""
        slot = jnp.arange(view.agents.shape[0])
        level = jnp.where(view.sees_agent, view.agents[:, 2], 0)
        highest = jnp.max(level)
        strongest = jnp.min(jnp.where(level == highest, slot, NO))
        leader = informant = jnp.where(highest > view.me[2], strongest, _farthest(view))
        if self.level_by_cell:
            cell = _row(view.agents, leader)[:2]
            there = view.sees_agent & jnp.all(view.agents[:, :2] == cell[None], axis=1)
            informant = jnp.max(jnp.where(there, slot, -1))
        return _follow(view, leader, _highest_up_to(view, _row(view.agents, informant)[2]))


def follow_farthest(view: View) -> Aim:
    """H2: what H4 would choose for the farthest agent."""
    leader = _farthest(view)
    cell = _row(view.agents, leader)[:2]
    return _follow(view, leader, -_apart(view.objects, cell))


def highest_feasible(view: View) -> Aim:
    """H3: the highest object that the own level suffices for, or the highest of all."""
    return _for(view, _highest_up_to(view, view.me[2]), view.sees_object)


def farthest(view: View) -> Aim:
    """H4: the farthest object."""
    return _for(view, -_apart(view.objects, view.me[:2]), view.sees_object)


def closest(view: View) -> Aim:
    """H6: the closest object."""
    return _for(view, _apart(view.objects, view.me[:2]), view.sees_object)


def closest_to_team(view: View) -> Aim:
    """H7: the object closest to the middle of the team."""
    return _for(view, _apart(view.objects, _middle(view)), view.sees_object)


def closest_feasible(view: View) -> Aim:
    """H8: the closest object that the own level suffices for."""
    feasible = view.objects[:, 2] <= view.me[2]
    return _for(view, _apart(view.objects, view.me[:2]), feasible)


def closest_to_team_feasible(view: View) -> Aim:
    """H9: the object closest to the middle of the team that its levels together suffice for."""
    strength = jnp.sum(jnp.where(view.sees_agent, view.agents[:, 2], 0))
    return _for(view, _apart(view.objects, _middle(view)), view.objects[:, 2] <= strength)


def _walk_all(scene: Scene, plan: Aim) -> Int[Array, " actor"]:
    """The walk of each actor."""
    return jax.vmap(walk)(scene.views, plan)


class Forager(Type):
    """A type that aims at something, walks there and loads."""

    aim: Callable[[View], Aim]

    def plan(self, scene: Scene, memory: Any) -> tuple[Aim, Any]:
        """What each actor is after."""
        return jax.vmap(self.aim)(scene.views), memory

    @property
    def carry_out(self) -> CarryOut:
        """Walking."""
        return _walk_all
