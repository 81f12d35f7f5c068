"""A schedule in arrays: it can be repeated, and be added to the openness of a game."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

from dropin._xla.random import StepRNG
from dropin.core.arrays import as_bool, as_int
from dropin.core.errors import InputError
from dropin.teams.openness import Closed, Openness, select_first
from dropin.teams.scripted import check_schedule, sorted_schedule

__all__ = ["Schedule", "ScheduleState"]


class ScheduleState(eqx.Module):
    """Where the schedule is."""

    time: Int[Array, ""]
    """Steps taken in this episode."""
    planned: Bool[Array, " slot"]
    """Which slots of teammates are occupied as far as the schedule goes."""
    others: PyTree
    """The state of the openness that the schedule is added to."""


class Schedule(eqx.Module):
    """A schedule of the learner's team, added to another openness.

    It says what `Scripted` says, with two differences. Its entries are run-time values, so that one
    compiled program serves all schedules with as many entries. And the other openness goes on as
    without it: opponents come and go as that says, and a teammate whom the game has removed returns
    when that says so, unless the schedule has let it leave. A teammate that is due to leave stays
    until somebody else is there, so that only the game can leave the learner alone.

    Args:
        slots: Number of slots of the learner's team.
        start: The slots of the teammates at the start; None means the first ones, up to the limit.
        events: Entries (step, "leaves" or "enters", slot), in any order; steps count from 1.
        every: Steps after which the schedule is repeated; 0 means never.
        others: The openness that the schedule is added to.
    """

    start: Bool[Array, " team_slot"]
    """Which slots of the learner's team have a teammate at the start."""
    when: Int[Array, " event"]
    """The step of each entry, in order."""
    slot: Int[Array, " event"]
    """The slot of each entry."""
    enters: Bool[Array, " event"]
    """Whether the slot is entered; otherwise it is left."""
    every: Int[Array, ""]
    """Steps after which the schedule is repeated; 0 means never."""
    others: Openness
    """The openness that the schedule is added to."""
    fills: bool = eqx.field(static=True)
    """Whether the team is full at the start, instead of `start`."""

    def __init__(
        self,
        slots: int,
        start: Sequence[int] | None = None,
        events: Sequence[tuple[int, str, int]] = (),
        every: int = 0,
        others: Openness | None = None,
    ) -> None:
        if len(start or ()) >= slots:
            raise InputError(
                f"The schedule starts with {len(start or ())} teammates, but there are slots for"
                f" {slots - 1}."
            )
        for named in [*(start or ()), *(slot for _, _, slot in events)]:
            if not 1 <= named < slots:
                raise InputError(
                    f"The schedule names slot {named}, but teammates have slots 1 to {slots - 1}."
                )
        entries = sorted_schedule(events)
        if every < 0 or (every and entries and entries[-1][0] > every):
            last = entries[-1][0] if entries else 1
            raise InputError(
                f"A schedule that goes on to step {last} cannot be repeated every {every} steps."
            )
        self.start = as_bool(np.isin(np.arange(slots), start or ()))
        self.when = as_int([step for step, _, _ in entries])
        self.slot = as_int([slot for _, _, slot in entries])
        self.enters = as_bool([what == "enters" for _, what, _ in entries])
        self.every, self.fills = as_int(every), start is None
        self.others = Closed() if others is None else others

    def validate(self, sides: tuple[int, ...], limit: int) -> None:
        """Follow the schedule, and its repetition; raise `InputError` if an entry is impossible."""
        self.others.validate(sides, limit)
        if sides.count(sides[0]) != len(self.start):
            raise InputError(
                f"The schedule is for {len(self.start)} slots, but the learner's team has"
                f" {sides.count(sides[0])}."
            )
        start = range(1, limit) if self.fills else np.flatnonzero(np.asarray(self.start)).tolist()
        rows = zip(
            *(np.asarray(x).tolist() for x in (self.when, self.enters, self.slot)), strict=True
        )
        events = [(step, "enters" if enters else "leaves", slot) for step, enters, slot in rows]
        check_schedule(start, events, len(self.start), limit, int(self.every))

    def max_agents_per_episode(self, slots: int, horizon: int) -> int:
        """Count the agents of the other openness and every entry."""
        entries = int(np.sum(np.asarray(self.enters)))
        rounds = -(-horizon // int(self.every)) if int(self.every) else 1
        return self.others.max_agents_per_episode(slots, horizon) + rounds * entries

    def reset(
        self, rng: StepRNG, usable_slots: Bool[Array, " slot"]
    ) -> tuple[ScheduleState, Bool[Array, " slot"]]:
        """Start with the initial teammates, and with whom the other openness has besides."""
        others, present = self.others.reset(rng, usable_slots)
        teammates = self._teammates(len(usable_slots))
        if self.fills:
            planned = usable_slots & teammates
        else:
            planned = jnp.zeros_like(present).at[: len(self.start)].set(self.start)
        present = jnp.where(teammates, planned, present)
        return ScheduleState(jnp.int32(0), planned, others), present

    def step(
        self,
        rng: StepRNG,
        state: ScheduleState,
        present: Bool[Array, " slot"],
        usable_slots: Bool[Array, " slot"],
        events: PyTree,
    ) -> tuple[ScheduleState, Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Do what the schedule says for this step, and what the other openness says besides."""
        others, other_leaving, other_entering = self.others.step(
            rng, state.others, present, usable_slots, events
        )
        teammates = self._teammates(len(present))
        time = state.time + 1
        position = jnp.where(self.every > 0, (time - 1) % jnp.maximum(self.every, 1) + 1, time)
        leaves = self._named(position, ~self.enters, len(present))
        enters = self._named(position, self.enters, len(present))
        planned = (state.planned & ~leaves) | enters

        due = present & teammates & (leaves | ~planned | other_leaving)
        returning = other_entering & (due | ~present)
        wanted = teammates & planned & (enters | returning) & (due | ~present)
        here = jnp.sum(present & teammates)
        leaving = select_first(due, here + jnp.sum(wanted) - 1)
        remaining = present & teammates & ~leaving
        room = jnp.sum(usable_slots[: len(self.start)]) - 1 - jnp.sum(remaining)
        entering = select_first(wanted & ~remaining, room)
        return (
            ScheduleState(time, planned, others),
            jnp.where(teammates, leaving, other_leaving),
            jnp.where(teammates, entering, other_entering),
        )

    def _teammates(self, slots: int) -> Bool[Array, " slot"]:
        """Return which slots are of the learner's teammates."""
        slot = np.arange(slots)
        return jnp.asarray((slot > 0) & (slot < len(self.start)))

    def _named(
        self, position: Int[Array, ""], which: Bool[Array, " event"], slots: int
    ) -> Bool[Array, " slot"]:
        """Return which slots some of the entries name for a step."""
        now = which & (self.when == position)
        return jnp.any(now[:, None] & (self.slot[:, None] == jnp.arange(slots)[None, :]), axis=0)
