"""Type changes: the process by which teammates change their type while they are present.

The learner is not told. `arrived` stays silent, so its memory of a teammate is not cleared, while
the teammate itself starts as a newcomer of its new type does: with no memory and other random bits.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

from dropin._xla.random import StepRNG
from dropin.core.arrays import as_int
from dropin.core.errors import InputError
from dropin.teams.pool import Pool, Roster

__all__ = ["AlternatingPools", "Turncoat", "TypeChanges", "apply_type_changes"]


@runtime_checkable
class TypeChanges(Protocol):
    """The process by which teammates change their type while they are present.

    Only teammates of the learner's side change; the learner and its opponents never do.
    """

    def validate(self, pool: Pool, sides: tuple[int, ...]) -> None:
        """Raise `InputError` if the process does not fit this pool and these slots.

        Args:
            pool: The types that newcomers are drawn from.
            sides: The side of every slot.
        """
        ...

    def reset(self, rng: StepRNG, sides: tuple[int, ...]) -> PyTree:
        """Return the state of the process at the start of an episode.

        Args:
            rng: Random numbers of this step.
            sides: The side of every slot.
        """
        ...

    def step(
        self, rng: StepRNG, state: PyTree, present: Bool[Array, " slot"]
    ) -> tuple[PyTree, Bool[Array, " slot"]]:
        """Decide whose type is drawn anew at the end of a step.

        Args:
            rng: Random numbers of this step.
            state: The state of the process.
            present: Which teammates have taken part in the step and stay; newcomers are not among
                them. In a pool whose sides share a type only the first teammate's slot, which then
                stands for its side and is never absent.

        Returns:
            The next state, and whose type is drawn anew; what is said of others is ignored.
        """
        ...

    def allowed(self, state: PyTree) -> Bool[Array, " type"] | None:
        """Return which types may be drawn, for newcomers too; None means all of the pool.

        Args:
            state: The state of the process, after `reset` or `step`.
        """
        ...


class Turncoat(eqx.Module):
    """Each teammate changes its type now and then, to a different one of its side.

    A teammate that enters, or has changed, takes part in a sampled number of steps; at the end of
    the last one it changes.
    """

    interval: Int[Array, " 2"] = eqx.field(converter=as_int)
    """Fewest and most steps between two changes of an agent's type, and before the first one. The
    number is uniform, drawn at entry and after each change."""

    def __check_init__(self) -> None:
        if np.shape(self.interval) != (2,):
            raise InputError("The interval of a turncoat is a shortest and a longest time.")
        low, high = np.asarray(self.interval).tolist()
        if not 1 <= low <= high:
            raise InputError(
                f"A turncoat's interval is {low} to {high} steps, but the shortest has to be at"
                " least 1 and the longest no shorter."
            )

    def validate(self, pool: Pool, sides: tuple[int, ...]) -> None:
        """Accept every pool; where a side has one type, nobody changes."""
        del pool, sides

    def reset(self, rng: StepRNG, sides: tuple[int, ...]) -> Int[Array, " slot"]:
        """Draw how many steps each agent takes part in before it changes."""
        return rng.integers(self.interval[0], self.interval[1], len(sides))

    def step(
        self, rng: StepRNG, state: Int[Array, " slot"], present: Bool[Array, " slot"]
    ) -> tuple[Int[Array, " slot"], Bool[Array, " slot"]]:
        """Let those change whose time is over; a time is drawn for them and for free slots."""
        left = state - 1
        changing = present & (left <= 0)
        new = rng.integers(self.interval[0], self.interval[1], len(state))
        return jnp.where(present & ~changing, left, new), changing

    def allowed(self, state: Int[Array, " slot"]) -> None:
        """Allow the whole pool."""
        del state


class AlternatingPools(eqx.Module):
    """All teammates switch to the next pool at once, and newcomers are drawn from the current one.

    A teammate whose type is the only one of the next pool stays as it is.

    Args:
        pools: The names of the types of each pool; the first one is that of the start.
        period: Steps between two switches.
        pool: The pool of the environment, which holds all these types.
    """

    masks: Bool[Array, "pool type"]
    """Which types each pool holds; those of opponents are in all of them."""
    period: Int[Array, ""]
    """Steps between two switches."""
    names: tuple[str, ...] = eqx.field(static=True)
    """The types of the environment's pool."""

    def __init__(
        self, pools: Sequence[Sequence[str]], period: int | Int[Array, ""], pool: Pool
    ) -> None:
        if isinstance(pools, str) or not pools:
            raise InputError(f"{pools!r} are no pools: give lists of types.")
        self.masks = jnp.asarray(np.stack([pool.mask_of(each, 0) for each in pools]))
        self.period, self.names = as_int(period), pool.names
        if int(self.period) < 1:
            raise InputError(f"Pools that alternate every {int(self.period)} steps: at least 1.")

    def validate(self, pool: Pool, sides: tuple[int, ...]) -> None:
        """Raise `InputError` if it was made for another pool, or a pool has no allowed type."""
        if pool.names != self.names:
            raise InputError(
                f"The alternating pools are of the types {', '.join(self.names)}, but the pool of"
                f" the team is {', '.join(pool.names)}."
            )
        if pool.allowed is None:
            return
        own = np.array([each.side == sides[0] for each in pool.types]) & np.asarray(pool.allowed)
        for number, mask in enumerate(np.asarray(self.masks), 1):
            if not (mask & own).any():
                raise InputError(f"No type of alternating pool {number} is allowed in this team.")

    def reset(self, rng: StepRNG, sides: tuple[int, ...]) -> Int[Array, ""]:
        """Start with the first pool; the state is the number of steps taken."""
        del rng, sides
        return jnp.int32(0)

    def step(
        self, rng: StepRNG, state: Int[Array, ""], present: Bool[Array, " slot"]
    ) -> tuple[Int[Array, ""], Bool[Array, " slot"]]:
        """Let everybody change once in a period."""
        del rng
        return state + 1, present & ((state + 1) % self.period == 0)

    def allowed(self, state: Int[Array, ""]) -> Bool[Array, " type"]:
        """Allow the types of the current pool."""
        return self.masks[(state // self.period) % len(self.masks)]


def apply_type_changes(
    changes: TypeChanges,
    pool: Pool,
    rng: StepRNG,
    state: PyTree,
    roster: Roster,
    stays: Bool[Array, " slot"],
    entering: Bool[Array, " slot"],
) -> tuple[PyTree, Roster, Bool[Array, " slot"]]:
    """Draw the types of newcomers and of those who change at the end of a step.

    Args:
        changes: The process of type changes.
        pool: The types to draw from.
        rng: Random numbers of this step.
        state: The state of the process.
        roster: Which agent is of which type.
        stays: Who has taken part in the step and stays.
        entering: Which slots get a newcomer.

    Returns:
        The next state, the roster, and who has stayed and is of another type than before.
    """
    sides = roster.sides
    teammates = np.array([slot > 0 and side == sides[0] for slot, side in enumerate(sides)])
    here = stays & teammates
    if pool.shared_type:  # One for all, and absent slots keep the type of their side for newcomers.
        here = jnp.asarray(np.arange(len(sides)) == 1)
    state, changing = changes.step(rng, state, here)
    changing = changing & here
    if pool.shared_type:
        changing = jnp.any(changing) & teammates
    allowed = changes.allowed(state)
    roster = pool.spawn(rng, roster, entering, allowed)
    roster, changed = pool.change_types(rng, roster, changing, allowed)
    return state, roster, changed & stays
