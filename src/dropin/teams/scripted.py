"""Openness by a schedule: who leaves and who enters is given as data."""

from collections.abc import Sequence
from itertools import groupby

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.teams.openness import MIN_TEAM_SIZE, require_one_side, select_first

__all__ = ["Scripted", "check_schedule", "sorted_schedule"]


def sorted_schedule(schedule: Sequence[tuple[int, str, int]]) -> tuple[tuple[int, str, int], ...]:
    """Return the entries of a schedule in the order of their steps.

    Args:
        schedule: Entries (step, "leaves" or "enters", slot), in any order.

    Raises:
        InputError: If a step is below 1, or an agent does something else.
    """
    entries = tuple(sorted((step, what, slot) for step, what, slot in schedule))
    for step, what, slot in entries:
        if what not in ("leaves", "enters"):
            raise InputError(
                f"Step {step} of the schedule says slot {slot} {what!r}: it can be 'leaves'"
                " or 'enters'."
            )
        if step < 1:
            raise InputError(f"The schedule names step {step}, but steps count from 1.")
    return entries


def check_schedule(
    initial_slots: Sequence[int],
    schedule: Sequence[tuple[int, str, int]],
    slots: int,
    limit: int,
    every: int = 0,
) -> None:
    """Follow a schedule; raise `InputError` if an entry is impossible.

    Args:
        initial_slots: The slots of the teammates at the start.
        schedule: Entries (step, "leaves" or "enters", slot).
        slots: Number of slots of the learner's team.
        limit: The team limit.
        every: Steps after which the schedule is repeated; 0 means never.
    """
    present = set(initial_slots)
    for slot in [*initial_slots, *(slot for _, _, slot in schedule)]:
        if not 1 <= slot < slots:
            raise InputError(
                f"The schedule names slot {slot}, but teammates have slots 1 to {slots - 1}."
            )
    _check_size(0, len(present) + 1, limit)
    # An agent that has entered once more than it has left cannot do the same again, and the other
    # way round: a schedule that can be repeated once can be repeated for ever.
    again = [(every + step, what, slot) for step, what, slot in schedule] if every else []
    # "leaves" is done before "enters".
    entries = sorted([*schedule, *again], key=lambda entry: (entry[0], entry[1] == "enters"))
    for step, at_once in groupby(entries, key=lambda entry: entry[0]):
        for _, what, slot in at_once:
            if (slot in present) == (what == "enters"):
                state = "is there already" if what == "enters" else "is not there"
                raise InputError(
                    f"At step {step} of the schedule slot {slot} {what}, but it {state}."
                )
            present ^= {slot}
        _check_size(step, len(present) + 1, limit)


def _check_size(step: int, size: int, limit: int) -> None:
    if not MIN_TEAM_SIZE <= size <= limit:
        raise InputError(
            f"After step {step} of the schedule the team has {size} agents, but it has to"
            f" have between {MIN_TEAM_SIZE} and the limit of {limit}."
        )


class Scripted(eqx.Module):
    """A schedule given as data.

    `Scripted([1, 2], [(10, "leaves", 1), (12, "enters", 3)])` has teammates in slots 1 and 2 at
    the start; slot 1 is left at the end of step 10, slot 3 is entered at the end of step 12.
    Within a step agents leave before others enter.

    Args:
        initial_slots: The slots of the teammates at the start.
        schedule: Entries (step, "leaves" or "enters", slot), in any order; steps are counted from
            1.
    """

    initial_slots: tuple[int, ...] = eqx.field(static=True)
    """The slots of the teammates at the start."""
    schedule: tuple[tuple[int, str, int], ...] = eqx.field(static=True)
    """Entries (step, "leaves" or "enters", slot); steps are counted from 1."""

    def __init__(self, initial_slots: Sequence[int], schedule: Sequence[tuple[int, str, int]]):
        self.initial_slots = tuple(initial_slots)
        self.schedule = sorted_schedule(schedule)

    def validate(self, sides: tuple[int, ...], limit: int) -> None:
        """Follow the schedule once; raise `InputError` if an entry is impossible."""
        require_one_side("A schedule", sides)
        check_schedule(self.initial_slots, self.schedule, len(sides), limit)

    def max_agents_per_episode(self, slots: int, horizon: int) -> int:
        """Count the learner, the initial teammates and every entry."""
        del slots, horizon
        entries = sum(what == "enters" for _, what, _ in self.schedule)
        return 1 + len(self.initial_slots) + entries

    def reset(
        self, rng: StepRNG, usable_slots: Bool[Array, " slot"]
    ) -> tuple[Int[Array, ""], Bool[Array, " slot"]]:
        """Start with the initial teammates; the state is the number of steps taken."""
        del rng
        slots = np.arange(len(usable_slots))
        return jnp.int32(0), jnp.asarray(np.isin(slots, [0, *self.initial_slots]))

    def step(
        self,
        rng: StepRNG,
        state: Int[Array, ""],
        present: Bool[Array, " slot"],
        usable_slots: Bool[Array, " slot"],
        events: PyTree,
    ) -> tuple[Int[Array, ""], Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Do what the schedule says for this step, as far as the limit allows."""
        del rng, events
        leaving = self._scheduled("leaves", state + 1, present) & present
        entering = self._scheduled("enters", state + 1, present) & (leaving | ~present)
        leaving = select_first(leaving, jnp.sum(present) + jnp.sum(entering) - MIN_TEAM_SIZE)
        remaining = present & ~leaving
        room = jnp.sum(usable_slots) - jnp.sum(remaining)
        return state + 1, leaving, select_first(entering & ~remaining, room)

    def _scheduled(
        self, what: str, step: Int[Array, ""], present: Bool[Array, " slot"]
    ) -> Bool[Array, " slot"]:
        """Return which slots the schedule names for a step."""
        named = jnp.zeros_like(present)
        for when, does, slot in self.schedule:
            if does == what:
                named = named | ((step == when) & (jnp.arange(present.shape[0]) == slot))
        return named
