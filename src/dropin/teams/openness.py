"""Openness: who leaves, who enters and when.

An openness is asked once at the start of an episode who is there, and after every step who leaves
and who enters. It never moves the learner (slot 0), keeps to the seats that the team limit
allows, and leaves the learner at least one teammate.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin.dice import Dice
from dropin.errors import InputError

LEAST = 2
"""The learner and at least one teammate."""


@runtime_checkable
class Openness(Protocol):
    """The process that decides who is there."""

    def check(self, sides: tuple[int, ...], limit: int) -> None:
        """Raise `InputError` when the process does not fit these slots and this limit."""
        ...

    def most_agents(self, slots: int, horizon: int) -> int:
        """How many agents can be present, one after another, in an episode of so many steps."""
        ...

    def start(self, dice: Dice, seats: Bool[Array, " slot"]) -> tuple[Any, Bool[Array, " slot"]]:
        """The state of the process at the start of an episode, and who is present.

        Seats are the slots that can be taken; with one side the first ones, up to the team limit.
        """
        ...

    def step(
        self,
        dice: Dice,
        state: Any,
        present: Bool[Array, " slot"],
        seats: Bool[Array, " slot"],
        happened: Any,
    ) -> tuple[Any, Bool[Array, " slot"], Bool[Array, " slot"]]:
        """The next state, and which slots are left and then entered at the end of a step.

        `present` are those whom the game has left there, `happened` is its account of the step.
        """
        ...


def one_side(name: str, sides: tuple[int, ...]) -> None:
    """Raise `InputError` if there are opponents."""
    if any(sides):
        raise InputError(f"{name} is for teams without opponents.")


def _first(candidates: Bool[Array, " n"], number: Int[Array, ""]) -> Bool[Array, " n"]:
    """The first so many of the candidates."""
    index = jnp.arange(candidates.shape[0])
    before = jnp.sum(candidates[None, :] & (index[None, :] < index[:, None]), axis=1)
    return candidates & (before < number)


def _some(
    noise: Float[Array, " n"], candidates: Bool[Array, " n"], number: Int[Array, ""]
) -> Bool[Array, " n"]:
    """So many of the candidates, chosen uniformly (all of them if there are fewer)."""
    before = jnp.sum(candidates[None, :] & (noise[None, :] < noise[:, None]), axis=1)
    return candidates & (before < number)


class Closed(eqx.Module):
    """A fixed team: as many agents as the limit says, all of them there from the start.

    Whoever is taken out by the game does not return.
    """

    def check(self, sides: tuple[int, ...], limit: int) -> None:
        """Every team can be closed."""
        del sides, limit

    def most_agents(self, slots: int, horizon: int) -> int:
        """One agent a slot."""
        del horizon
        return slots

    def start(
        self, dice: Dice, seats: Bool[Array, " slot"]
    ) -> tuple[tuple[()], Bool[Array, " slot"]]:
        """Everybody is there."""
        del dice
        return (), seats

    def step(
        self,
        dice: Dice,
        state: tuple[()],
        present: Bool[Array, " slot"],
        seats: Bool[Array, " slot"],
        happened: Any,
    ) -> tuple[tuple[()], Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Nobody moves."""
        del dice, seats, happened
        return state, jnp.zeros_like(present), jnp.zeros_like(present)


class Waiting(eqx.Module):
    """Those present have steps to stay; those who wait sit on a bench with steps to wait."""

    stay: Int[Array, " slot"]
    wait: Int[Array, " bench"]
    seated: Bool[Array, " bench"]


def _range(value: object) -> Int[Array, " 2"]:
    return jnp.asarray(value, jnp.int32)


class Durations(eqx.Module):
    """Agents stay for a sampled time, then wait for a sampled time before they return.

    An agent that is to stay d steps takes part in d steps and is due to leave at the end of the
    last; one that is to wait w steps misses w steps. If more are due to leave than may, or more
    to enter than the limit allows, the choice is uniform and the others stay due.
    The bench has room for whoever exists but is not there; it costs a counter, not a slot.
    """

    active: Int[Array, " 2"] = eqx.field(converter=_range)
    """Fewest and most steps to stay."""
    waiting: Int[Array, " 2"] = eqx.field(converter=_range)
    """Fewest and most steps to wait."""
    population: int | None = eqx.field(static=True, default=None)
    """How many agents exist, the learner included; None: as many as the limit says."""
    head_start: Int[Array, ""] = eqx.field(
        converter=lambda value: jnp.asarray(value, jnp.int32), default=0
    )
    """Steps added to every count at the start of an episode."""

    def __check_init__(self) -> None:
        for name in ("active", "waiting"):
            low, high = (int(bound) for bound in getattr(self, name))
            if not 1 <= low <= high:
                raise InputError(
                    f"The {name} duration is {low} to {high} steps, but the shortest has to be"
                    " at least 1 and the longest no shorter."
                )

    def check(self, sides: tuple[int, ...], limit: int) -> None:
        """A team cannot be larger than the number of agents that exist."""
        one_side("Durations", sides)
        if self.population is not None and limit > self.population:
            raise InputError(
                f"Team limit {limit} is above the {self.population} agents that exist."
            )

    def most_agents(self, slots: int, horizon: int) -> int:
        """Everybody returns as soon and as often as the shortest durations allow."""
        exist = self.population or slots
        shortest = int(self.active[0]) + int(self.waiting[0])
        return 1 + (exist - 1) * (1 + horizon // shortest)

    def start(
        self, dice: Dice, seats: Bool[Array, " slot"]
    ) -> tuple[Waiting, Bool[Array, " slot"]]:
        """The team is full; the rest of those who exist wait."""
        slots, limit = len(seats), jnp.sum(seats)
        bench = max((self.population or slots) - LEAST, 1)
        exist = limit if self.population is None else jnp.int32(self.population)
        state = Waiting(
            stay=dice.integers(self.active[0], self.active[1], slots) + self.head_start,
            wait=dice.integers(self.waiting[0], self.waiting[1], bench) + self.head_start,
            seated=jnp.arange(bench) < exist - limit,
        )
        return state, seats

    def step(
        self,
        dice: Dice,
        state: Waiting,
        present: Bool[Array, " slot"],
        seats: Bool[Array, " slot"],
        happened: Any,
    ) -> tuple[Waiting, Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Those who are due leave, then those who are due enter."""
        del happened
        slots, bench = state.stay.shape[0], state.wait.shape[0]
        stay, wait = state.stay - 1, state.wait - 1

        due = present & (stay <= 0) & (jnp.arange(slots) > 0)
        leaving = _some(dice.uniform(slots), due, jnp.sum(present) - LEAST)
        remaining = present & ~leaving

        ready = state.seated & (wait <= 0)
        called = _some(dice.uniform(bench), ready, jnp.sum(seats) - jnp.sum(remaining))
        entering = _first(~remaining, jnp.sum(called))
        visit = dice.integers(self.active[0], self.active[1], slots)
        stay = jnp.where(entering, visit, stay)

        # Nobody on the bench has a name, so the leavers sit down anywhere.
        kept = state.seated & ~called
        sitting_down = _first(~kept, jnp.sum(leaving))
        pause = dice.integers(self.waiting[0], self.waiting[1], bench)
        wait = jnp.where(sitting_down, pause, wait)
        return Waiting(stay, wait, kept | sitting_down), leaving, entering


class Events(eqx.Module):
    """Now and then one or two teammates leave, and now and then one or two enter."""

    first: int = eqx.field(static=True, default=3)
    """How many agents there are at the start, the learner included, if the limit allows."""
    chance: Float[Array, ""] = eqx.field(
        converter=lambda value: jnp.asarray(value, jnp.float32), default=0.05
    )
    """How likely it is in a step that some leave, and how likely that some enter."""
    two: Float[Array, ""] = eqx.field(
        converter=lambda value: jnp.asarray(value, jnp.float32), default=0.3
    )
    """How likely it is that there are two of them."""
    stay: Int[Array, ""] = eqx.field(
        converter=lambda value: jnp.asarray(value, jnp.int32), default=26
    )
    """Fewest steps to stay."""

    def __check_init__(self) -> None:
        for name in ("chance", "two"):
            value = float(getattr(self, name))
            if not 0 <= value <= 1:
                raise InputError(f"The chance {name!r} of openness is {value:g}, not within 0..1.")
        if self.first < LEAST:
            raise InputError(f"A team starts with at least {LEAST} agents, not {self.first}.")

    def check(self, sides: tuple[int, ...], limit: int) -> None:
        """Any team without opponents can be open in this way."""
        del limit
        one_side("Events", sides)

    def most_agents(self, slots: int, horizon: int) -> int:
        """Everybody leaves as soon as possible and is followed by another at once."""
        return 1 + (slots - 1) * (1 + horizon // max(int(self.stay), 1))

    def start(
        self, dice: Dice, seats: Bool[Array, " slot"]
    ) -> tuple[Int[Array, " slot"], Bool[Array, " slot"]]:
        """The first few; the state is how long each has been there."""
        del dice
        slots = len(seats)
        return jnp.zeros(slots, jnp.int32), seats & (jnp.arange(slots) < self.first)

    def step(
        self,
        dice: Dice,
        state: Int[Array, " slot"],
        present: Bool[Array, " slot"],
        seats: Bool[Array, " slot"],
        happened: Any,
    ) -> tuple[Int[Array, " slot"], Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Some who have been there long enough leave, then others enter."""
        del happened
        slots, limit = len(present), jnp.sum(seats)
        happens, pair = dice.uniform(2) < self.chance, dice.uniform(2) < self.two
        number = jnp.where(happens, jnp.where(pair, 2, 1), 0)
        age = state + 1
        due = present & (age >= self.stay) & (jnp.arange(slots) > 0)
        most = jnp.minimum(number[0], jnp.sum(present) - LEAST)
        leaving = _some(dice.uniform(slots), due, most)
        remaining = present & ~leaving
        entering = _first(~remaining, jnp.minimum(number[1], limit - jnp.sum(remaining)))
        return jnp.where(entering, 0, age), leaving, entering


class Scripted(eqx.Module):
    """A schedule given as data.

    `Scripted([1, 2], [(10, "leaves", 1), (12, "enters", 3)])`: teammates in slots 1 and 2 at the
    start; at the end of step 10 slot 1 is left, at the end of step 12 slot 3 is entered. Within a
    step those who leave do so before others enter.
    """

    first: tuple[int, ...] = eqx.field(static=True)
    """The slots of the teammates at the start."""
    events: tuple[tuple[int, str, int], ...] = eqx.field(static=True)
    """(step, "leaves" or "enters", slot), steps counted from 1."""

    def __init__(self, first: Sequence[int], events: Sequence[tuple[int, str, int]]):
        self.first = tuple(first)
        self.events = tuple(sorted((step, what, slot) for step, what, slot in events))
        for step, what, slot in self.events:
            if what not in ("leaves", "enters"):
                raise InputError(
                    f"Step {step} of the schedule says slot {slot} {what!r}: it can be 'leaves'"
                    " or 'enters'."
                )
            if step < 1:
                raise InputError(f"The schedule names step {step}, but steps count from 1.")

    def check(self, sides: tuple[int, ...], limit: int) -> None:
        """Follow the schedule once: every slot exists, every event is possible."""
        one_side("A schedule", sides)
        slots = len(sides)
        present = set(self.first)
        for slot in [*self.first, *(slot for _, _, slot in self.events)]:
            if not 1 <= slot < slots:
                raise InputError(
                    f"The schedule names slot {slot}, but teammates have slots 1 to {slots - 1}."
                )
        self._check_size(0, len(present) + 1, limit)
        steps = sorted({step for step, _, _ in self.events})
        for step in steps:
            # "leaves" is done before "enters".
            for when, what, slot in sorted(self.events, key=lambda event: event[1], reverse=True):
                if when != step:
                    continue
                if (slot in present) == (what == "enters"):
                    state = "is there already" if what == "enters" else "is not there"
                    raise InputError(
                        f"At step {step} of the schedule slot {slot} {what}, but it {state}."
                    )
                present ^= {slot}
            self._check_size(step, len(present) + 1, limit)

    def _check_size(self, step: int, size: int, limit: int) -> None:
        if not LEAST <= size <= limit:
            raise InputError(
                f"After step {step} of the schedule the team has {size} agents, but it has to"
                f" have between {LEAST} and the limit of {limit}."
            )

    def most_agents(self, slots: int, horizon: int) -> int:
        """The learner, the first teammates and every entrant."""
        del slots, horizon
        return 1 + len(self.first) + sum(what == "enters" for _, what, _ in self.events)

    def start(
        self, dice: Dice, seats: Bool[Array, " slot"]
    ) -> tuple[Int[Array, ""], Bool[Array, " slot"]]:
        """The teammates named first; the state is the number of steps taken."""
        del dice
        return jnp.int32(0), jnp.asarray(np.isin(np.arange(len(seats)), [0, *self.first]))

    def step(
        self,
        dice: Dice,
        state: Int[Array, ""],
        present: Bool[Array, " slot"],
        seats: Bool[Array, " slot"],
        happened: Any,
    ) -> tuple[Int[Array, ""], Bool[Array, " slot"], Bool[Array, " slot"]]:
        """What the schedule says for this step, as far as the limit allows."""
        del dice, happened
        leaving = self._named("leaves", state + 1, present) & present
        entering = self._named("enters", state + 1, present) & (leaving | ~present)
        leaving = _first(leaving, jnp.sum(present) + jnp.sum(entering) - LEAST)
        remaining = present & ~leaving
        room = jnp.sum(seats) - jnp.sum(remaining)
        return state + 1, leaving, _first(entering & ~remaining, room)

    def _named(
        self, what: str, step: Int[Array, ""], present: Bool[Array, " slot"]
    ) -> Bool[Array, " slot"]:
        named = jnp.zeros_like(present)
        for when, does, slot in self.events:
            if does == what:
                named = named | ((step == when) & (jnp.arange(present.shape[0]) == slot))
        return named
