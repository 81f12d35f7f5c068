"""The game with its prey, the types and the openness of Wolfpack under each set of rules."""

from collections.abc import Callable
from functools import partial

from dropin.games.wolfpack.game import Wolfpack, preset
from dropin.teams.openness import Durations, Events
from dropin.teams.types import Type
from dropin.teams.wolfpack import heuristics as by
from dropin.teams.wolfpack.learned import by_rewards, imitator
from dropin.teams.wolfpack.prey import fleeing
from dropin.teams.wolfpack.search import in_reading_order, shortest
from dropin.teams.wolfpack.view import Look, Patience

ALIKE = ()
"""The rules under which a side has one type for a whole episode."""
PATIENCE = {
    "paper": Patience(radius=(3, 4, 5), company=(1,)),
    # Radius 2, 3 and 4 with chances 0.4, 0.4 and 0.2; company 1 with chance 0.7, else 2.
    "reference": Patience(radius=(2, 2, 3, 3, 4), company=(1,) * 7 + (2,) * 3),
}


def game(rules: str, **changes: object) -> Wolfpack:
    """Wolfpack with prey that learned to flee."""
    if "instinct" not in changes:
        changes["instinct"] = fleeing()
    return preset(rules, **changes)


def types(rules: str) -> dict[str, Callable[[], Type]]:
    """The types of the paper by its names; each is made when it is wanted."""
    reference = rules == "reference"
    search = in_reading_order if reference else shortest
    by_chance = by.Probabilistic(errs=reference)
    waiting = partial(by.Waiting, retreats=reference)
    table = {
        "H1": ("acts at random", by.random),
        "H2": ("goes straight for the nearest prey", by.greedy),
        "H3": ("goes for the nearest prey, choosing the axis by chance", by_chance),
        "H4": ("shares out the cells around the prey and walks around others", by.teammate_aware),
        "H7": ("waits for company near a prey, else as H2", waiting(by.greedy)),
        "H8": ("waits for company near a prey, else as H3", waiting(by_chance)),
        "H9": ("waits for company near a prey, else as H4", waiting(by.teammate_aware)),
    }
    makers = {name: partial(by.Hunter, name, *row, search) for name, row in table.items()}
    learned = {"H5": partial(imitator, search=search), "H6": partial(by_rewards, search=search)}
    return dict(sorted({**makers, **learned}.items()))


def look(rulebook: Wolfpack, rules: str) -> Look:
    """All see the whole grid."""
    return Look(rulebook, PATIENCE[rules])


def openness(rules: str, rulebook: Wolfpack, slots: int) -> Durations | Events:
    """Sampled durations, or the reference's events."""
    del rulebook, slots
    return Events() if rules == "reference" else Durations((25, 35), (15, 25))
