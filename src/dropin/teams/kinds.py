"""The kinds of openness and of type changes that are made of parameters, and checks of these."""

from collections.abc import Sequence
from typing import Any

from dropin.core import registry
from dropin.core.errors import InputError
from dropin.teams.changes import AlternatingPools, Turncoat
from dropin.teams.openness import Churn, Closed, Durations
from dropin.teams.pool import Pool
from dropin.teams.schedule import Schedule

__all__ = [
    "MAX_STEPS",
    "check_number",
    "check_span",
    "check_whole",
    "make_alternating",
    "make_churn",
    "make_closed",
    "make_durations",
    "make_schedule",
    "make_turncoat",
]

MAX_STEPS = 1_000_000_000
"""No parameter that counts steps or agents is larger, so that sums of two fit into an integer."""
_ENTRY = 3


def check_whole(name: str, value: object, least: int = 0) -> int:
    """Return a parameter that is a whole number.

    Args:
        name: What it is, for messages.
        value: The value given.
        least: The smallest allowed one.

    Raises:
        InputError: If it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_STEPS:
        raise InputError(
            f"The {name} {value!r} cannot be used: it is a whole number from {least} to"
            f" {MAX_STEPS}."
        )
    return value


def check_number(name: str, value: object, low: float, high: float) -> float:
    """Return a parameter that is a number.

    Args:
        name: What it is, for messages.
        value: The value given.
        low: The smallest allowed one.
        high: The largest allowed one.

    Raises:
        InputError: If it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InputError(
            f"The {name} {value!r} cannot be used: it is a number from {low:g} to {high:g}."
        )
    return float(value)


def check_span(name: str, value: object) -> tuple[int, int]:
    """Return a parameter that is a shortest and a longest number of steps.

    Args:
        name: What it is, for messages.
        value: The value given.

    Raises:
        InputError: If it is something else.
    """
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise InputError(
            f"The {name} {value!r} cannot be used: it is a shortest and a longest number of steps,"
            " as [10, 30]."
        )
    low, high = (check_whole(name, each, 1) for each in value)
    if low > high:
        raise InputError(f"The {name} is {low} to {high} steps: the longest cannot be shorter.")
    return low, high


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def make_closed(rules: str, game: Any, slots: int) -> Closed:
    """Return a team that never changes."""
    del rules, game, slots
    return Closed()


def make_durations(
    rules: str,
    game: Any,
    slots: int,
    *,
    active: Sequence[int] = (15, 25),
    waiting: Sequence[int] = (10, 20),
    population: int | None = None,
    initial_extra: int = 0,
) -> Durations:
    """Return sampled times of presence and absence; by default those of level-based foraging.

    Args:
        rules: Unused.
        game: Unused.
        slots: Unused.
        active: Shortest and longest active duration, in steps.
        waiting: Shortest and longest waiting duration, in steps.
        population: How many agents exist, the learner included; None means the team limit.
        initial_extra: Steps added to every duration at the start of an episode.
    """
    del rules, game, slots
    return Durations(
        check_span("active duration", active),
        check_span("waiting duration", waiting),
        population=None if population is None else check_whole("population", population, 2),
        initial_extra=check_whole("initial_extra", initial_extra),
    )


def make_churn(
    rules: str,
    game: Any,
    slots: int,
    *,
    initial_size: int = 3,
    probability: float = 0.05,
    pair_probability: float = 0.3,
    min_stay: int = 26,
) -> Churn:
    """Return a team that one or two leave or enter now and then.

    Args:
        rules: Unused.
        game: Unused.
        slots: Unused.
        initial_size: Number of agents at the start, the learner included, if the limit allows.
        probability: Probability that some leave in a step, and that some enter.
        pair_probability: Probability that it is two of them.
        min_stay: Fewest steps that an agent stays.
    """
    del rules, game, slots
    return Churn(
        check_whole("initial_size", initial_size, 2),
        check_number("probability", probability, 0, 1),
        check_number("pair_probability", pair_probability, 0, 1),
        check_whole("min_stay", min_stay),
    )


def make_schedule(
    rules: str,
    game: Any,
    slots: int,
    *,
    start: int | Sequence[int] | None = None,
    events: Sequence[Sequence[Any]] = (),
    every: int = 0,
) -> Schedule:
    """Return a schedule; in a game with opponents it is added to the openness of the game.

    Args:
        rules: Name of the preset.
        game: The game.
        slots: Number of slots of the learner's team.
        start: The slots of the teammates at the start, or the number of agents, the learner
            included, in the first slots; None means a full team.
        events: Entries (step, "leaves" or "enters", slot); steps count from 1.
        every: Steps after which the schedule is repeated; 0 means never.
    """
    if isinstance(start, int):
        start = range(1, check_whole("start", start, 2))
    elif start is not None:
        if not _is_list(start):
            raise InputError(
                f"The start {start!r} cannot be used: it is a number of agents, or a list of slots."
            )
        start = [check_whole("slot", each, 1) for each in start]
    if not _is_list(events):
        raise InputError(
            f"The events {events!r} are no list of [step, 'leaves' or 'enters', slot]."
        )
    entries = [_entry(each) for each in events]
    others = None
    spec = registry.games.get(game.name)
    if any(game.sides(slots)) and spec is not None and spec.openness is not None:
        others = spec.openness(rules, game, slots)
    return Schedule(slots, start, entries, check_whole("every", every), others)


def _entry(entry: object) -> tuple[int, str, int]:
    """Return an entry of a schedule if it is one."""
    if not isinstance(entry, Sequence) or isinstance(entry, str) or len(entry) != _ENTRY:
        raise InputError(f"{entry!r} is no entry of a schedule: write [step, 'leaves', slot].")
    step, what, slot = entry
    return check_whole("step", step, 1), str(what), check_whole("slot", slot, 1)


def make_turncoat(pool: Pool, *, interval: Sequence[int]) -> Turncoat:
    """Return teammates that change their type one by one.

    Args:
        pool: Unused.
        interval: Fewest and most steps between two changes of an agent's type.
    """
    del pool
    return Turncoat(check_span("interval", interval))


def make_alternating(
    pool: Pool, *, pools: Sequence[Sequence[str]], period: int
) -> AlternatingPools:
    """Return teammates that all switch to the next pool at once.

    Args:
        pool: The pool of the environment.
        pools: The names of the types of each pool.
        period: Steps between two switches.
    """
    if not _is_list(pools) or not all(map(_is_list, pools)):
        raise InputError(f"The pools {pools!r} are no lists of types, as [['H1', 'H2'], ['H6']].")
    return AlternatingPools(pools, check_whole("period", period, 1), pool)
