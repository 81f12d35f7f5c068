"""The pool of types that newcomers are drawn from, and how a mixed team acts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree, UInt32

from dropin._xla.materialize import materialize
from dropin._xla.random import StepRNG
from dropin.core.errors import InputError, unknown
from dropin.teams.types import PolicyInput, Type, as_type

__all__ = ["Observer", "Pool", "Roster", "select"]

Tree = TypeVar("Tree")


@runtime_checkable
class Observer(Protocol):
    """How a game's state looks to each agent."""

    def __call__(
        self, game: PyTree, rng: StepRNG, state: PyTree, agent_seed: UInt32[Array, " slot"]
    ) -> PyTree:
        """Return the view of each agent, a pytree with a leading slot axis.

        Args:
            game: The game, with its parameters.
            rng: Random numbers of this step.
            state: The state of the game.
            agent_seed: Random bits drawn when each agent entered.
        """
        ...


class Roster(eqx.Module):
    """Which agent is of which type."""

    type: Int[Array, " slot"]
    """The index of each agent's type in the pool."""
    agent_seed: UInt32[Array, " slot"]
    """Random bits drawn when each agent entered."""
    memory: tuple[PyTree, ...]
    """One pytree per type, with a leading slot axis."""
    sides: tuple[int, ...] = eqx.field(static=True)
    """The side of each slot; the slots of a side are neighbours."""


class Pool(eqx.Module):
    """Types, each drawn with the same probability; each side of a game has its own.

    Args:
        types: The types, or functions from a view to an action.
        observer: What each agent sees, for its type to act on.
        shared_type: Whether all agents of a side have one type, drawn at the start of an episode.
        allowed: Which types may be drawn; None means all of them.
    """

    types: tuple[Type, ...]
    observer: Observer
    shared_type: bool = eqx.field(static=True)
    """Whether all agents of a side have one type, drawn at the start of an episode. Otherwise the
    type of each agent is drawn when it enters."""
    allowed: Bool[Array, " type"] | None
    """Which types may be drawn, as a run-time value; None means all of them."""

    def __init__(
        self,
        types: Sequence[Type | Callable[[PyTree], Int[Array, ""]]],
        observer: Observer,
        *,
        shared_type: bool = False,
        allowed: Bool[Array, " type"] | None = None,
    ) -> None:
        self.types = tuple(sorted((as_type(each) for each in types), key=lambda each: each.side))
        self.observer, self.shared_type, self.allowed = observer, shared_type, allowed
        if not self.types:
            raise InputError("The pool is empty, but newcomers need at least one type.")
        names = [each.name for each in self.types]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"The pool holds two types that are called {name!r}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the types, in the order of their indices."""
        return tuple(each.name for each in self.types)

    def validate(self, sides: tuple[int, ...]) -> None:
        """Raise `InputError` if there is a side without types."""
        allowed = np.ones(len(self.types), bool)
        if self.allowed is not None:
            allowed = np.asarray(self.allowed)
            if allowed.shape != (len(self.types),):
                raise InputError(
                    f"The pool has {len(self.types)} types, but {allowed.size} are said to be"
                    " allowed or not."
                )
        for side in sides:
            known = [index for index, each in enumerate(self.types) if each.side == side]
            if not known:
                raise InputError(f"The pool has no type for side {side} of the game.")
            if not allowed[known].any():
                raise InputError(f"No type of the pool is allowed for side {side} of the game.")

    def mask_of(self, names: Sequence[str], side: int) -> Bool[np.ndarray, " type"]:
        """Return which types are of these names, or of another side.

        Args:
            names: Names of types of the side.
            side: The side.

        Raises:
            InputError: If there is no name, or the side has no type of a name.
        """
        own = [each.name for each in self.types if each.side == side]
        if isinstance(names, str) or not names:
            raise InputError(f"{names!r} names no types: give a list with one type at least.")
        for name in names:
            if name not in own:
                raise unknown("type", name, own)
        return np.array([each.side != side or each.name in names for each in self.types])

    def restricted_to(self, names: Sequence[str], side: int) -> "Pool":
        """Return the same pool, of which only these types of a side are drawn.

        Args:
            names: Names of types of the side.
            side: The side; the types of other sides are drawn as before.

        Raises:
            InputError: If there is no name, or the side has no type of a name.
        """
        allowed = self.mask_of(names, side)
        if self.allowed is not None:
            others = np.array([each.side != side for each in self.types])
            allowed = np.where(others, np.asarray(self.allowed), allowed)
        return replace(self, allowed=jnp.asarray(allowed))

    def reset(
        self, rng: StepRNG, sides: tuple[int, ...], allowed: Bool[Array, " type"] | None = None
    ) -> Roster:
        """Draw a type and an agent seed for every slot, with empty memories.

        Args:
            rng: Random numbers of this step.
            sides: The side of every slot.
            allowed: Which types may be drawn now; None means all that the pool allows.
        """
        bits = rng.bits(2, len(sides))
        return Roster(
            type=self._draw_types(bits[0], sides, allowed),
            agent_seed=bits[1],
            memory=tuple(each.init_memory(len(sides)) for each in self.types),
            sides=sides,
        )

    def _draw_types(
        self,
        bits: UInt32[Array, " slot"],
        sides: tuple[int, ...],
        allowed: Bool[Array, " type"] | None,
    ) -> Int[Array, " slot"]:
        bits = self._shared_bits(bits, sides)
        if allowed is not None or self.allowed is not None:
            return _draw(bits, self._candidates(sides, allowed))
        known = [each.side for each in self.types]
        first = np.array([known.index(side) for side in sides], np.int32)
        count = np.array([known.count(side) for side in sides], np.uint32)
        return jnp.asarray(first) + (bits % count).astype(jnp.int32)

    def _shared_bits(
        self, bits: UInt32[Array, " slot"], sides: tuple[int, ...]
    ) -> UInt32[Array, " slot"]:
        """Return the bits that types are drawn by: those of a side's first slot if it has one."""
        if not self.shared_type:
            return bits
        return jnp.concatenate([bits[sides.index(side)][None] for side in sides])

    def _candidates(
        self, sides: tuple[int, ...], allowed: Bool[Array, " type"] | None
    ) -> Bool[Array, "slot type"]:
        """Return which types may be drawn for which slots."""
        known = np.array([each.side for each in self.types])
        candidates = jnp.asarray(known[None, :] == np.array(sides)[:, None])
        for mask in (self.allowed, allowed):
            if mask is not None:
                candidates = candidates & mask[None, :]
        return candidates

    def spawn(
        self,
        rng: StepRNG,
        roster: Roster,
        entering: Bool[Array, " slot"],
        allowed: Bool[Array, " type"] | None = None,
    ) -> Roster:
        """Draw a type and an agent seed for each newcomer and clear its memory.

        Args:
            rng: Random numbers of this step.
            roster: Which agent is of which type.
            entering: Which slots get a newcomer.
            allowed: Which types may be drawn now; None means all that the pool allows.
        """
        new = self.reset(rng, roster.sides, allowed)
        if self.shared_type:
            new = replace(new, type=roster.type)
        return select(entering, new, roster)

    def change_types(
        self,
        rng: StepRNG,
        roster: Roster,
        changing: Bool[Array, " slot"],
        allowed: Bool[Array, " type"] | None = None,
    ) -> tuple[Roster, Bool[Array, " slot"]]:
        """Draw another type and agent seed for agents that stay, and clear their memory.

        An agent whose type is the only one that may be drawn stays as it is.

        Args:
            rng: Random numbers of this step.
            roster: Which agent is of which type.
            changing: Which slots get another type.
            allowed: Which types may be drawn now; None means all that the pool allows.

        Returns:
            The roster, and which slots have another type than before.
        """
        bits = rng.bits(2, len(roster.sides))
        candidates = self._candidates(roster.sides, allowed)
        others = candidates & (roster.type[:, None] != jnp.arange(len(self.types))[None, :])
        changed = changing & jnp.any(others, axis=1)
        new = Roster(
            type=_draw(self._shared_bits(bits[0], roster.sides), others),
            agent_seed=bits[1],
            memory=tuple(each.init_memory(len(roster.sides)) for each in self.types),
            sides=roster.sides,
        )
        return select(changed, new, roster), changed

    def act(
        self,
        rng: StepRNG,
        game: PyTree,
        roster: Roster,
        state: PyTree,
        arrived: Bool[Array, " slot"],
        first: int = 0,
    ) -> tuple[Int[Array, " actor"], Roster]:
        """Choose the actions of the agents in the slots from `first` on.

        Every type plans for every actor of its side and the plan of the actor's own type is
        selected. The types share their random numbers, since only one plan per actor is used.

        Args:
            rng: Random numbers of this step.
            game: The game, with its parameters.
            roster: Which agent is of which type.
            state: The state of the game.
            arrived: Which agents have just arrived.
            first: The first slot to act for.

        Returns:
            An action per actor, and the roster with the memories afterwards.
        """
        views = self.observer(game, rng, state, roster.agent_seed)
        key = rng.key()
        actions, memory = [], list(roster.memory)
        for side in dict.fromkeys(roster.sides[first:]):
            start = max(roster.sides.index(side), first)
            rows = slice(start, start + roster.sides[start:].count(side))
            type_index, agent_seed, seen, own, here = _rows(
                (roster.type, roster.agent_seed, views, roster.memory, state.present), rows
            )
            inputs = PolicyInput(
                key, game, state, arrived, roster.sides, start, agent_seed, seen, here
            )
            side_actions, after = self._act_for_side(inputs, side, type_index, own)
            actions.append(side_actions)
            for index, new in after.items():
                memory[index] = _with_rows(memory[index], rows, new)
        return materialize(jnp.concatenate(actions)), replace(roster, memory=tuple(memory))

    def _act_for_side(
        self,
        inputs: PolicyInput,
        side: int,
        type_index: Int[Array, " actor"],
        memory: tuple[PyTree, ...],
    ) -> tuple[Int[Array, " actor"], dict[int, PyTree]]:
        """Choose the actions of one side; also return the memories of its types by index."""
        plans: dict[Callable[[PolicyInput, PyTree], Int[Array, " actor"]], PyTree] = {}
        memories: dict[int, PyTree] = {}
        own = {index: each for index, each in enumerate(self.types) if each.side == side}
        for index, each in own.items():
            asked = replace(inputs, active=inputs.active & (type_index == index))
            plan, memories[index] = each.plan(asked, memory[index])
            others = plans.get(each.execute, plan)
            plans[each.execute] = select(type_index == index, plan, others)
        actions = jnp.zeros_like(type_index)
        for execute, plan in plans.items():
            indices = [index for index, each in own.items() if each.execute == execute]
            these = jnp.any(type_index[:, None] == jnp.array([indices]), axis=1)
            stored = jax.tree.map(materialize, plan)
            actions = jnp.where(these, execute(inputs, stored), actions)
        return actions, memories


def _draw(
    bits: UInt32[Array, " slot"], candidates: Bool[Array, "slot type"]
) -> Int[Array, " slot"]:
    """Draw one candidate for each slot; with neighbours as candidates, as `bits % count` does."""
    rank = jnp.cumsum(candidates, axis=1, dtype=jnp.uint32)
    chosen = bits % jnp.maximum(rank[:, -1], jnp.uint32(1))
    return jnp.argmax(rank > chosen[:, None], axis=1).astype(jnp.int32)


def _rows(tree: Tree, rows: slice) -> Tree:
    """Return the given slots of every leaf."""
    return jax.tree.map(lambda leaf: leaf[rows], tree)


def _with_rows(tree: Tree, rows: slice, new: Tree) -> Tree:
    """Replace the given slots of every leaf."""
    return jax.tree.map(
        lambda old, some: jnp.concatenate([old[: rows.start], some, old[rows.stop :]]), tree, new
    )


def select(which: Bool[Array, "*slot"], yes: Tree, no: Tree) -> Tree:
    """Select rows of `yes` where `which` is true and rows of `no` elsewhere, in every leaf.

    Args:
        which: Which rows to take from `yes`.
        yes: A pytree whose leaves have these rows first.
        no: A pytree of the same structure.
    """
    return jax.tree.map(
        lambda a, b: jnp.where(which.reshape(which.shape + (1,) * (a.ndim - which.ndim)), a, b),
        yes,
        no,
    )
