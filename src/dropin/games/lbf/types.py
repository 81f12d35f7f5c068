"""The pool of teammate types of level-based foraging."""

from collections.abc import Callable
from functools import partial

from dropin.games.lbf.heuristics import (
    FollowStrongest,
    Forager,
    closest,
    closest_feasible,
    closest_to_team,
    closest_to_team_feasible,
    farthest,
    follow_farthest,
    highest_feasible,
)
from dropin.games.lbf.learned import load_h5
from dropin.teams.types import Type

__all__ = ["make_types"]


def make_types(rules: str) -> dict[str, Callable[[], Type]]:
    """Return the types of the paper (appendix B.4.2), H1 to H9, each as a function that makes it.

    Args:
        rules: `paper` or `reference`; the two differ in H1.
    """
    strongest = FollowStrongest(level_by_cell=rules == "reference")
    foragers = {
        "H1": ("follows the strongest agent, or the farthest, to its best object", strongest),
        "H2": ("follows the farthest agent to its farthest object", follow_farthest),
        "H3": ("goes for the highest object it can collect alone", highest_feasible),
        "H4": ("goes for the farthest object", farthest),
        "H6": ("goes for the closest object", closest),
        "H7": ("goes for the object closest to the team", closest_to_team),
        "H8": ("goes for the closest object it can collect alone", closest_feasible),
        "H9": ("as H7, but only for what the team can collect", closest_to_team_feasible),
    }
    types: dict[str, Callable[[], Type]] = {
        name: partial(Forager, name, summary, aim) for name, (summary, aim) in foragers.items()
    }
    return dict(sorted({**types, "H5": load_h5}.items()))
