"""Openness: the process that decides who leaves, who enters and when.

`reset` says who is present at the start of an episode, `step` says after every step who leaves and
who enters. Openness never moves the learner (slot 0), stays within the slots that the team limit
allows, and leaves the learner at least one teammate.
"""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from dropin._xla.random import StepRNG
from dropin.core.arrays import as_float, as_int
from dropin.core.errors import InputError

__all__ = [
    "MIN_TEAM_SIZE",
    "Churn",
    "Closed",
    "Durations",
    "Openness",
    "require_one_side",
    "select_first",
]

MIN_TEAM_SIZE = 2
"""The learner and at least one teammate."""


@runtime_checkable
class Openness(Protocol):
    """The process that decides who is present."""

    def validate(self, sides: tuple[int, ...], limit: int) -> None:
        """Raise `InputError` if the process does not fit these slots and this team limit.

        Args:
            sides: The side of every slot.
            limit: The team limit.
        """
        ...

    def max_agents_per_episode(self, slots: int, horizon: int) -> int:
        """Return the most agents that can appear in an episode, at a time or one after another.

        Args:
            slots: Number of slots of the learner's team.
            horizon: Number of steps of an episode.
        """
        ...

    def reset(
        self, rng: StepRNG, usable_slots: Bool[Array, " slot"]
    ) -> tuple[PyTree, Bool[Array, " slot"]]:
        """Start an episode.

        Args:
            rng: Random numbers of this step.
            usable_slots: Which slots may be occupied; without opponents the first ones, up to the
                team limit.

        Returns:
            The state of the process, and which slots are occupied.
        """
        ...

    def step(
        self,
        rng: StepRNG,
        state: PyTree,
        present: Bool[Array, " slot"],
        usable_slots: Bool[Array, " slot"],
        events: PyTree,
    ) -> tuple[PyTree, Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Decide who leaves and who enters at the end of a step.

        Args:
            rng: Random numbers of this step.
            state: The state of the process.
            present: Which agents are present after the game's step.
            usable_slots: Which slots may be occupied.
            events: The game's record of the step.

        Returns:
            The next state, which slots are left, and which slots are entered after that.
        """
        ...


def require_one_side(name: str, sides: tuple[int, ...]) -> None:
    """Raise `InputError` if there are opponents.

    Args:
        name: What does not allow opponents, for the message.
        sides: The side of every slot.
    """
    if any(sides):
        raise InputError(f"{name} is for teams without opponents.")


def select_first(candidates: Bool[Array, " n"], number: Int[Array, ""]) -> Bool[Array, " n"]:
    """Select the first candidates.

    Args:
        candidates: Which entries may be selected.
        number: How many to select; all candidates if there are fewer.
    """
    index = jnp.arange(candidates.shape[0])
    before = jnp.sum(candidates[None, :] & (index[None, :] < index[:, None]), axis=1)
    return candidates & (before < number)


def _sample(
    noise: Float[Array, " n"], candidates: Bool[Array, " n"], number: Int[Array, ""]
) -> Bool[Array, " n"]:
    """Select `number` candidates uniformly, or all of them if there are fewer."""
    before = jnp.sum(candidates[None, :] & (noise[None, :] < noise[:, None]), axis=1)
    return candidates & (before < number)


class Closed(eqx.Module):
    """A fixed team: as many agents as the limit allows, all present from the start.

    An agent that the game removes does not return.
    """

    def validate(self, sides: tuple[int, ...], limit: int) -> None:
        """Accept every team."""
        del sides, limit

    def max_agents_per_episode(self, slots: int, horizon: int) -> int:
        """Return one agent per slot."""
        del horizon
        return slots

    def reset(
        self, rng: StepRNG, usable_slots: Bool[Array, " slot"]
    ) -> tuple[tuple[()], Bool[Array, " slot"]]:
        """Fill the team."""
        del rng
        return (), usable_slots

    def step(
        self,
        rng: StepRNG,
        state: tuple[()],
        present: Bool[Array, " slot"],
        usable_slots: Bool[Array, " slot"],
        events: PyTree,
    ) -> tuple[tuple[()], Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Let nobody leave or enter."""
        del rng, usable_slots, events
        return state, jnp.zeros_like(present), jnp.zeros_like(present)


class DurationsState(eqx.Module):
    """How long agents still stay, and how long those on the bench still wait."""

    stay: Int[Array, " slot"]
    """Steps until the agent in each slot is due to leave."""
    wait: Int[Array, " bench"]
    """Steps until the agent in each place of the bench is due to enter."""
    occupied: Bool[Array, " bench"]
    """Which places of the bench are occupied."""


class Durations(eqx.Module):
    """Agents stay for a sampled time, then wait for a sampled time before they return.

    An agent with an active duration of d takes part in d steps and is due to leave at the end of
    the last one. An agent with a waiting duration of w misses w steps. If more agents are due to
    leave than may, or more to enter than the limit allows, the choice is uniform and the others
    stay due. The bench has a place for every agent that exists but is not present; an agent on
    the bench costs a counter, not a slot.
    """

    active: Int[Array, " 2"] = eqx.field(converter=as_int)
    """Shortest and longest active duration, in steps."""
    waiting: Int[Array, " 2"] = eqx.field(converter=as_int)
    """Shortest and longest waiting duration, in steps."""
    population: int | None = eqx.field(static=True, default=None)
    """How many agents exist, the learner included; None means as many as the team limit."""
    initial_extra: Int[Array, ""] = eqx.field(converter=as_int, default=0)
    """Steps added to every duration at the start of an episode."""

    def __check_init__(self) -> None:
        for name in ("active", "waiting"):
            low, high = np.asarray(getattr(self, name)).tolist()
            if not 1 <= low <= high:
                raise InputError(
                    f"The {name} duration is {low} to {high} steps, but the shortest has to be"
                    " at least 1 and the longest no shorter."
                )

    def validate(self, sides: tuple[int, ...], limit: int) -> None:
        """Raise `InputError` if there are opponents, or fewer agents than the limit."""
        require_one_side("Durations", sides)
        if self.population is not None and limit > self.population:
            raise InputError(
                f"Team limit {limit} is above the {self.population} agents that exist."
            )

    def max_agents_per_episode(self, slots: int, horizon: int) -> int:
        """Return the count if everybody returns as soon and as often as possible."""
        exist = self.population or slots
        shortest = int(self.active[0]) + int(self.waiting[0])
        return 1 + (exist - 1) * (1 + horizon // shortest)

    def reset(
        self, rng: StepRNG, usable_slots: Bool[Array, " slot"]
    ) -> tuple[DurationsState, Bool[Array, " slot"]]:
        """Fill the team; all other agents that exist wait."""
        slots, limit = len(usable_slots), jnp.sum(usable_slots)
        bench = max((self.population or slots) - MIN_TEAM_SIZE, 1)
        exist = limit if self.population is None else jnp.int32(self.population)
        state = DurationsState(
            stay=rng.integers(self.active[0], self.active[1], slots) + self.initial_extra,
            wait=rng.integers(self.waiting[0], self.waiting[1], bench) + self.initial_extra,
            occupied=jnp.arange(bench) < exist - limit,
        )
        return state, usable_slots

    def step(
        self,
        rng: StepRNG,
        state: DurationsState,
        present: Bool[Array, " slot"],
        usable_slots: Bool[Array, " slot"],
        events: PyTree,
    ) -> tuple[DurationsState, Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Let agents that are due leave, then let agents that are due enter."""
        del events
        slots, bench = state.stay.shape[0], state.wait.shape[0]
        stay, wait = state.stay - 1, state.wait - 1

        due = present & (stay <= 0) & (jnp.arange(slots) > 0)
        leaving = _sample(rng.uniform(slots), due, jnp.sum(present) - MIN_TEAM_SIZE)
        remaining = present & ~leaving

        ready = state.occupied & (wait <= 0)
        room = jnp.sum(usable_slots) - jnp.sum(remaining)
        called = _sample(rng.uniform(bench), ready, room)
        entering = select_first(~remaining, jnp.sum(called))
        new_stay = rng.integers(self.active[0], self.active[1], slots)
        stay = jnp.where(entering, new_stay, stay)

        # Agents on the bench have no identity, so leavers take any free place.
        still_waiting = state.occupied & ~called
        sitting_down = select_first(~still_waiting, jnp.sum(leaving))
        new_wait = rng.integers(self.waiting[0], self.waiting[1], bench)
        wait = jnp.where(sitting_down, new_wait, wait)
        return DurationsState(stay, wait, still_waiting | sitting_down), leaving, entering


class Churn(eqx.Module):
    """In every step, with a fixed probability, one or two teammates leave, and likewise enter."""

    initial_size: int = eqx.field(static=True, default=3)
    """Number of agents at the start, the learner included, if the limit allows."""
    probability: Float[Array, ""] = eqx.field(converter=as_float, default=0.05)
    """Probability that some leave in a step, and that some enter."""
    pair_probability: Float[Array, ""] = eqx.field(converter=as_float, default=0.3)
    """Probability that it is two of them."""
    min_stay: Int[Array, ""] = eqx.field(converter=as_int, default=26)
    """Fewest steps that an agent stays."""

    def __check_init__(self) -> None:
        for name in ("probability", "pair_probability"):
            value = float(getattr(self, name))
            if not 0 <= value <= 1:
                raise InputError(f"Churn's {name} is {value:g}, but it has to be within 0 to 1.")
        if self.initial_size < MIN_TEAM_SIZE:
            raise InputError(
                f"A team starts with at least {MIN_TEAM_SIZE} agents, not {self.initial_size}."
            )

    def validate(self, sides: tuple[int, ...], limit: int) -> None:
        """Raise `InputError` if there are opponents."""
        del limit
        require_one_side("Churn", sides)

    def max_agents_per_episode(self, slots: int, horizon: int) -> int:
        """Return the count if everybody leaves as soon as possible and is replaced at once."""
        return 1 + (slots - 1) * (1 + horizon // max(int(self.min_stay), 1))

    def reset(
        self, rng: StepRNG, usable_slots: Bool[Array, " slot"]
    ) -> tuple[Int[Array, " slot"], Bool[Array, " slot"]]:
        """Start with the first slots; the state is how long each agent has been present."""
        del rng
        slots = len(usable_slots)
        first = jnp.arange(slots) < self.initial_size
        return jnp.zeros(slots, jnp.int32), usable_slots & first

    def step(
        self,
        rng: StepRNG,
        state: Int[Array, " slot"],
        present: Bool[Array, " slot"],
        usable_slots: Bool[Array, " slot"],
        events: PyTree,
    ) -> tuple[Int[Array, " slot"], Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Let some agents that have stayed long enough leave, then let others enter."""
        del events
        slots, limit = len(present), jnp.sum(usable_slots)
        happens = rng.uniform(2) < self.probability
        is_pair = rng.uniform(2) < self.pair_probability
        number = jnp.where(happens, jnp.where(is_pair, 2, 1), 0)
        age = state + 1
        due = present & (age >= self.min_stay) & (jnp.arange(slots) > 0)
        max_leaving = jnp.minimum(number[0], jnp.sum(present) - MIN_TEAM_SIZE)
        leaving = _sample(rng.uniform(slots), due, max_leaving)
        remaining = present & ~leaving
        entering = select_first(~remaining, jnp.minimum(number[1], limit - jnp.sum(remaining)))
        return jnp.where(entering, 0, age), leaving, entering
