"""A pool: the types that newcomers are drawn from, and how the mixed team acts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from dropin.dice import Dice
from dropin.errors import InputError
from dropin.settle import settle
from dropin.teams.types import Scene, Type, as_type

Tree = TypeVar("Tree")

Look = Callable[[Dice, Any, UInt32[Array, " slot"]], Any]
"""How a game's state looks to each agent: (dice, state, character) -> views [slot]."""


class Cast(eqx.Module):
    """Who is who in a team."""

    type: Int[Array, " slot"]
    """The place of each agent's type in the pool."""
    character: UInt32[Array, " slot"]
    memory: tuple[Any, ...]
    """One pytree a type, with a leading slot axis."""
    sides: tuple[int, ...] = eqx.field(static=True)
    """The side of each slot; the slots of a side are neighbours."""


class Pool(eqx.Module):
    """Types with equal chances; each side of a game has its own."""

    types: tuple[Type, ...]
    look: Look
    alike: bool = eqx.field(static=True)
    """Whether all who are on one side are of one type, drawn at the start of an episode; otherwise
    everybody's is drawn, at each entry."""

    def __init__(
        self,
        types: Sequence[Type | Callable[[Any], Int[Array, ""]]],
        look: Look,
        *,
        alike: bool = False,
    ) -> None:
        self.types = tuple(sorted((as_type(each) for each in types), key=lambda each: each.side))
        self.look, self.alike = look, alike
        if not self.types:
            raise InputError("The pool is empty, but newcomers need at least one type.")
        names = [each.name for each in self.types]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"The pool holds two types that are called {name!r}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the types, in the order of their numbers."""
        return tuple(each.name for each in self.types)

    def check(self, sides: tuple[int, ...]) -> None:
        """Raise `InputError` if there is a side that has no types."""
        theirs = [each.side for each in self.types]
        for side in sides:
            if side not in theirs:
                raise InputError(f"The pool has no type for side {side} of the game.")

    def start(self, dice: Dice, sides: tuple[int, ...]) -> Cast:
        """A type, a character and an empty memory for every slot."""
        bits = dice.bits(2, len(sides))
        return Cast(
            type=self._drawn(bits[0], sides),
            character=bits[1],
            memory=tuple(each.start(len(sides)) for each in self.types),
            sides=sides,
        )

    def _drawn(self, bits: UInt32[Array, " slot"], sides: tuple[int, ...]) -> Int[Array, " slot"]:
        if self.alike:
            bits = jnp.concatenate([bits[sides.index(side)][None] for side in sides])
        theirs = [each.side for each in self.types]
        first = np.array([theirs.index(side) for side in sides], np.int32)
        count = np.array([theirs.count(side) for side in sides], np.uint32)
        return jnp.asarray(first) + (bits % count).astype(jnp.int32)

    def enter(self, dice: Dice, cast: Cast, entering: Bool[Array, " slot"]) -> Cast:
        """Newcomers get a type, a character and an empty memory."""
        new = self.start(dice, cast.sides)
        if self.alike:
            new = replace(new, type=cast.type)
        return select(entering, new, cast)

    def act(
        self,
        dice: Dice,
        cast: Cast,
        state: Any,
        arrived: Bool[Array, " slot"],
        first: int = 0,
    ) -> tuple[Int[Array, " actor"], Cast]:
        """What the agents in the slots from `first` on do.

        Every type plans for every actor of its side and the plan of the actor's own type is
        selected. The types share their random numbers, since only one plan for an actor is used.
        """
        views = self.look(dice, state, cast.character)
        key = dice.key()
        actions, memory = [], list(cast.memory)
        for side in dict.fromkeys(cast.sides[first:]):
            start = max(cast.sides.index(side), first)
            rows = slice(start, start + cast.sides[start:].count(side))
            kind, character, seen, own, here = _rows(
                (cast.type, cast.character, views, cast.memory, state.present), rows
            )
            scene = Scene(key, state, arrived, cast.sides, start, character, seen, here)
            theirs, after = self._plan(scene, side, kind, own)
            actions.append(theirs)
            for number, new in after.items():
                memory[number] = _with_rows(memory[number], rows, new)
        return settle(jnp.concatenate(actions)), replace(cast, memory=tuple(memory))

    def _plan(
        self, scene: Scene, side: int, kind: Int[Array, " actor"], memory: tuple[Any, ...]
    ) -> tuple[Int[Array, " actor"], dict[int, Any]]:
        """The actions of the actors of a side, and the memories of its types by number."""
        plans: dict[Callable[[Scene, Any], Int[Array, " actor"]], Any] = {}
        memories: dict[int, Any] = {}
        theirs = {number: each for number, each in enumerate(self.types) if each.side == side}
        for number, each in theirs.items():
            asked = replace(scene, asked=scene.asked & (kind == number))
            plan, memories[number] = each.plan(asked, memory[number])
            others = plans.get(each.carry_out, plan)
            plans[each.carry_out] = select(kind == number, plan, others)
        actions = jnp.zeros_like(kind)
        for carry_out, plan in plans.items():
            numbers = [number for number, each in theirs.items() if each.carry_out == carry_out]
            these = jnp.any(kind[:, None] == jnp.array([numbers]), axis=1)
            settled = jax.tree.map(settle, plan)
            actions = jnp.where(these, carry_out(scene, settled), actions)
        return actions, memories


def _rows(tree: Tree, rows: slice) -> Tree:
    """The same with some of the slots."""
    return jax.tree.map(lambda leaf: leaf[rows], tree)


def _with_rows(tree: Tree, rows: slice, new: Tree) -> Tree:
    """The same with other values for some of the slots."""
    return jax.tree.map(
        lambda old, some: jnp.concatenate([old[: rows.start], some, old[rows.stop :]]), tree, new
    )


def select(which: Bool[Array, "*slot"], yes: Tree, no: Tree) -> Tree:
    """Rows of `yes` where `which`, rows of `no` elsewhere, in every leaf."""
    return jax.tree.map(
        lambda a, b: jnp.where(which.reshape(which.shape + (1,) * (a.ndim - which.ndim)), a, b),
        yes,
        no,
    )
