"""The pool and the openness of level-based foraging under each set of rules."""

from dropin.games.lbf.game import LBF
from dropin.teams.lbf import heuristics as by
from dropin.teams.lbf.view import Look
from dropin.teams.openness import Durations
from dropin.teams.pool import Pool

PAPER_SIGHTS = (1, 2, 3)
"""Squares of 3x3, 5x5 and 7x7 cells."""


def types(rules: str) -> tuple[by.Forager, ...]:
    """The types of the paper, by the paper's names."""
    return (
        by.Forager(
            "H1",
            "follows the strongest agent above its level, or the farthest, to its best object",
            by.FollowStrongest(level_by_cell=rules == "reference"),
        ),
        by.Forager("H2", "follows the farthest agent to its farthest object", by.follow_farthest),
        by.Forager("H3", "goes for the highest object it can collect alone", by.highest_feasible),
        by.Forager("H4", "goes for the farthest object", by.farthest),
        by.Forager("H6", "goes for the closest object", by.closest),
        by.Forager("H7", "goes for the object closest to the team", by.closest_to_team),
        by.Forager("H8", "goes for the closest object it can collect alone", by.closest_feasible),
        by.Forager(
            "H9",
            "goes for the object closest to the team that the team can collect",
            by.closest_to_team_feasible,
        ),
    )


def pool(game: LBF, rules: str) -> Pool:
    """All types with equal chances; under `reference` they see the whole grid."""
    sights = (game.size,) if rules == "reference" else PAPER_SIGHTS
    return Pool(types(rules), Look(game, sights))


def openness(rules: str, slots: int) -> Durations:
    """Sampled durations; the counters of the reference, restated as steps present and absent."""
    if rules == "reference":
        return Durations((11, 20), (16, 25), population=max(5, slots), head_start=1)
    return Durations((15, 25), (10, 20))
