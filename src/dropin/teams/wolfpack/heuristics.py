"""The heuristic types of Wolfpack (paper: appendix B.4.1).

A heuristic says how likely each action is, or names a cell to walk to around all others.
"Next to" means above, below, left or right of; distances are Manhattan.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dropin.dice import pick
from dropin.games.wolfpack.game import DOWN, LEFT, RIGHT, STAY, UP
from dropin.teams.types import CarryOut, Scene, Type
from dropin.teams.wolfpack.search import NO_WAY, Search
from dropin.teams.wolfpack.view import FAR, View, beside, distance

ACTIONS = STAY + 1
TEMPERATURE = 2.5
"""Of the axis and the direction of the greedy probabilistic hunter."""
OFF_GRID = 5.0
"""What it costs that hunter to leave the grid, in cells."""

Chances = Float[Array, " action"]


class Intent(eqx.Module):
    """What a hunter is about to do."""

    chances: Chances
    """How likely each action is, unless there is a goal."""
    goal: Int[Array, " 2"]
    """The cell to walk to; (-1, -1) for none."""


def do(chances: Chances) -> Intent:
    """Nothing to walk to."""
    return Intent(chances, jnp.full(2, -1))


def always(action: Int[Array, ""] | int) -> Chances:
    """An action for certain."""
    return (jnp.arange(ACTIONS) == action).astype(jnp.float32)


def any_of(number: int) -> Chances:
    """The first so many actions with the same chance."""
    return jnp.where(jnp.arange(ACTIONS) < number, 1.0 / number, 0.0)


class Target(eqx.Module):
    """The cell next to a living prey that is nearest to a hunter."""

    cell: Int[Array, " 2"]
    prey: Int[Array, " 2"]
    exists: Bool[Array, ""]


def nearest(view: View) -> Target:
    """The nearest cell next to a living prey; of equals the first of left, right, below, above."""
    cells, inside = beside(view.prey, (LEFT, RIGHT, DOWN, UP), view.size)
    wanted = inside & jnp.repeat(view.alive, 4)
    count = len(cells)
    number = jnp.arange(count)
    best = jnp.min(jnp.where(wanted, distance(cells, view.me[None]), FAR) * count + number)
    here = (number == best % count)[:, None]

    def of(rows: Int[Array, "cell 2"]) -> Int[Array, " 2"]:
        return jnp.sum(jnp.where(here, rows, 0), axis=0)

    return Target(of(cells), of(jnp.repeat(view.prey, 4, axis=0)), best < FAR * count)


def towards(gap: Int[Array, " 2"]) -> Int[Array, ""]:
    """The move into a cell that is this far (down, right), columns first."""
    vertical = jnp.where(gap[0] > 0, DOWN, UP)
    return jnp.where(gap[1] > 0, RIGHT, jnp.where(gap[1] < 0, LEFT, vertical))


def _pounce(view: View) -> tuple[Bool[Array, ""], Int[Array, ""]]:
    """Whether a living prey is next to the hunter, and the move into the first one."""
    ready = view.alive & (distance(view.prey, view.me[None]) == 1)
    number = jnp.arange(len(ready))
    first = number == jnp.min(jnp.where(ready, number, len(ready)))
    gap = jnp.sum(jnp.where(first[:, None], view.prey - view.me[None], 0), axis=0)
    return jnp.any(ready), towards(gap)


def _along_an_axis(
    view: View, vertical: Int[Array, ""], sideways: Int[Array, ""], gap: Int[Array, " 2"]
) -> Chances:
    """The vertical move if that gap is the larger one, else the other; any if none is possible."""
    possible = [_possible(view, axis, move) for axis, move in enumerate((vertical, sideways))]
    larger = jnp.abs(gap[0]) > jnp.abs(gap[1])
    chosen = jnp.where(possible[0] & (larger | ~possible[1]), vertical, sideways)
    return jnp.where(possible[0] | possible[1], always(chosen), any_of(STAY))


def _possible(view: View, axis: int, move: Int[Array, ""]) -> Bool[Array, ""]:
    """Whether a move along this axis stays on the grid."""
    place = view.me[axis] + jnp.where((move == DOWN) | (move == RIGHT), 1, -1)
    return (place >= 0) & (place < view.size)


def random(view: View) -> Intent:
    """H1: anything."""
    del view
    return do(any_of(ACTIONS))


def greedy(view: View) -> Intent:
    """H2: to the nearest cell next to a prey, closing the larger gap first; then at the prey."""
    target = nearest(view)
    gap = target.cell - view.me
    vertical = jnp.where(gap[0] > 0, DOWN, UP)
    sideways = jnp.where(gap[1] < 0, LEFT, RIGHT)
    return do(_hunt(view, target, _along_an_axis(view, vertical, sideways, gap)))


def _hunt(view: View, target: Target, approach: Chances) -> Chances:
    """Pounce, approach, or anything when no prey is alive."""
    near, at_prey = _pounce(view)
    chances = jnp.where(near, always(at_prey), approach)
    return jnp.where(target.exists, chances, any_of(ACTIONS))


class Probabilistic(eqx.Module):
    """H3: as H2, but the larger gap is only more likely to be closed first."""

    errs: bool = eqx.field(static=True)
    """Whether the direction is drawn too, and an axis without a gap can be chosen."""

    def __call__(self, view: View) -> Intent:
        """To the nearest cell next to a prey, one way or the other."""
        target = nearest(view)
        gap = target.cell - view.me
        size = jnp.abs(gap).astype(jnp.float32)
        if not self.errs:
            size = jnp.where(gap == 0, -jnp.inf, size)
        upright = jax.nn.sigmoid((size[0] - size[1]) / TEMPERATURE)
        vertical = self._direction(view, jnp.where(gap[0] >= 0, DOWN, UP), 0)
        sideways = self._direction(view, jnp.where(gap[1] >= 0, RIGHT, LEFT), 1)
        # Standing on the target is standing next to a living prey, which is pounced on.
        either = upright * vertical + (1 - upright) * sideways
        approach = jnp.where(jnp.any(gap != 0), either, 0.0)
        return do(_hunt(view, target, approach))

    def _direction(self, view: View, good: Int[Array, ""], axis: int) -> Chances:
        """Most likely the good direction; the other may lead off the grid."""
        if not self.errs:
            return always(good)
        bad = (good + 2) % 4
        cost = [
            closer + jnp.where(_possible(view, axis, move), 0.0, OFF_GRID)
            for closer, move in ((-1.0, good), (1.0, bad))
        ]
        right_way = jax.nn.sigmoid((cost[1] - cost[0]) / TEMPERATURE)
        return right_way * always(good) + (1 - right_way) * always(bad)


def teammate_aware(view: View) -> Intent:
    """H4: all share out the cells next to the prey; walks to the own one, then at the prey."""
    nothing = jnp.all(view.goal < 0)
    there = jnp.all(view.goal == view.me)
    at_prey = always(towards(view.goal_prey - view.me))
    chances = jnp.where(there, at_prey, any_of(ACTIONS))
    return Intent(chances, jnp.where(nothing | there, -1, view.goal))


class Waiting(eqx.Module):
    """As another type, but waits where it is alone near a prey, until others are there too."""

    otherwise: Callable[[View], Intent]
    retreats: bool = eqx.field(static=True)
    """Whether it steps away from the prey while it waits, instead of doing anything."""

    def __call__(self, view: View) -> Intent:
        """Wait, or what the other type does."""
        target = nearest(view)
        close = view.present & (distance(view.hunters, target.prey[None]) <= view.radius)
        others = jnp.sum(close & (jnp.arange(len(close)) != view.slot))
        mine = distance(view.me, target.prey) <= view.radius
        waits = target.exists & mine & (others < view.company)
        anyway = self.otherwise(view)
        waiting = self._away(view, target.prey) if self.retreats else any_of(ACTIONS)
        return Intent(
            chances=jnp.where(waits, waiting, anyway.chances),
            goal=jnp.where(waits, -1, anyway.goal),
        )

    def _away(self, view: View, prey: Int[Array, " 2"]) -> Chances:
        gap = view.me - prey
        vertical = jnp.where(gap[0] < 0, UP, DOWN)
        sideways = jnp.where(gap[1] > 0, RIGHT, LEFT)
        return _along_an_axis(view, vertical, sideways, gap)


def chances(view: View, intent: Intent, search: Search) -> Chances:
    """How likely each action is, ways included: anything if there is no way to the goal."""
    walks = jnp.all(intent.goal >= 0)
    goal = jnp.where(walks, intent.goal, view.me)
    move = search(view.me, goal, jnp.concatenate([view.hunters, view.prey]), view.size)
    way = jnp.where(move == NO_WAY, any_of(ACTIONS), always(move))
    return jnp.where(walks, way, intent.chances)


@dataclass(frozen=True)
class Legwork:
    """Carries intents out: walks to the goal as the search says, or draws an action."""

    search: Search

    def __call__(self, scene: Scene, plan: Intent) -> Int[Array, " actor"]:
        """The action of each actor."""
        likely = jax.vmap(lambda view, intent: chances(view, intent, self.search))
        return pick(likely(scene.views, plan), scene.views.chance)


class Hunter(Type):
    """A type that has an intent and carries it out."""

    intend: Callable[[View], Intent]
    search: Search = eqx.field(static=True)

    def plan(self, scene: Scene, memory: Any) -> tuple[Intent, Any]:
        """What each actor is about to do."""
        return jax.vmap(self.intend)(scene.views), memory

    @property
    def carry_out(self) -> CarryOut:
        """Walking to a goal, or drawing an action."""
        return Legwork(self.search)
