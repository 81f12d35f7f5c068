"""The game, the types and the openness of level-based foraging under each set of rules."""

from collections.abc import Callable
from functools import partial

from dropin.games.lbf.game import LBF
from dropin.games.lbf.game import preset as game
from dropin.teams.lbf import heuristics as by
from dropin.teams.lbf.learned import learned_forager
from dropin.teams.lbf.view import Look
from dropin.teams.openness import Durations
from dropin.teams.types import Type

__all__ = ["ALIKE", "game", "look", "openness", "types"]

ALIKE = ()
"""The rules under which a side has one type for a whole episode."""

PAPER_SIGHTS = (1, 2, 3)
"""Squares of 3x3, 5x5 and 7x7 cells."""


def types(rules: str) -> dict[str, Callable[[], Type]]:
    """The types of the paper by its names; each is made when it is wanted."""
    strongest = by.FollowStrongest(level_by_cell=rules == "reference")
    table = {
        "H1": ("follows the strongest agent, or the farthest, to its best object", strongest),
        "H2": ("follows the farthest agent to its farthest object", by.follow_farthest),
        "H3": ("goes for the highest object it can collect alone", by.highest_feasible),
        "H4": ("goes for the farthest object", by.farthest),
        "H6": ("goes for the closest object", by.closest),
        "H7": ("goes for the object closest to the team", by.closest_to_team),
        "H8": ("goes for the closest object it can collect alone", by.closest_feasible),
        "H9": ("as H7, but only for what the team can collect", by.closest_to_team_feasible),
    }
    makers = {name: partial(by.Forager, name, *row) for name, row in table.items()}
    return dict(sorted({**makers, "H5": learned_forager}.items()))


def look(rulebook: LBF, rules: str) -> Look:
    """Under `reference` all see the whole grid."""
    return Look(rulebook, (rulebook.size,) if rules == "reference" else PAPER_SIGHTS)


def openness(rules: str, rulebook: LBF, slots: int) -> Durations:
    """Sampled durations; the counters of the reference, restated as steps present and absent."""
    del rulebook
    if rules == "reference":
        return Durations((11, 20), (16, 25), population=max(5, slots), head_start=1)
    return Durations((15, 25), (10, 20))
