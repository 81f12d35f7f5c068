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
        )

    def _drawn(self, bits: UInt32[Array, " slot"], sides: tuple[int, ...]) -> Int[Array, " slot"]:
        if self.alike:
            bits = jnp.concatenate([bits[sides.index(side)][None] for side in sides])
        theirs = [each.side for each in self.types]
        first = np.array([theirs.index(side) for side in sides], np.int32)
        count = np.array([theirs.count(side) for side in sides], np.uint32)
        return jnp.asarray(first) + (bits % count).astype(jnp.int32)

    def enter(
        self, dice: Dice, cast: Cast, entering: Bool[Array, " slot"], sides: tuple[int, ...]
    ) -> Cast:
        """Newcomers get a type, a character and an empty memory."""
        new = self.start(dice, sides)
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

        Every type plans for every actor and the plan of the actor's own type is selected. The
        types share their random numbers, since only one plan for an actor is used.
        """
        views = self.look(dice, state, cast.character)
        kind, character, views, memory = jax.tree.map(
            lambda rows: rows[first:], (cast.type, cast.character, views, cast.memory)
        )
        here = state.present[first:]
        scene = Scene(dice.key(), state, arrived, character, views, asked=here)
        plans: dict[Callable[[Scene, Any], Int[Array, " actor"]], Any] = {}
        memories = []
        for number, each in enumerate(self.types):
            asked = replace(scene, asked=here & (kind == number))
            plan, after = each.plan(asked, memory[number])
            others = plans.get(each.carry_out, plan)
            plans[each.carry_out] = select(kind == number, plan, others)
            memories.append(after)
        actions = jnp.zeros_like(kind)
        for carry_out, plan in plans.items():
            numbers = [n for n, each in enumerate(self.types) if each.carry_out == carry_out]
            these = jnp.any(kind[:, None] == jnp.array([numbers]), axis=1)
            settled = jax.tree.map(settle, plan)
            actions = jnp.where(these, carry_out(scene, settled), actions)
        remembered = jax.tree.map(
            lambda old, new: jnp.concatenate([old[:first], new]), cast.memory, tuple(memories)
        )
        return settle(actions), Cast(cast.type, cast.character, remembered)


def select(which: Bool[Array, "*slot"], yes: Tree, no: Tree) -> Tree:
    """Rows of `yes` where `which`, rows of `no` elsewhere, in every leaf."""
    return jax.tree.map(
        lambda a, b: jnp.where(which.reshape(which.shape + (1,) * (a.ndim - which.ndim)), a, b),
        yes,
        no,
    )
