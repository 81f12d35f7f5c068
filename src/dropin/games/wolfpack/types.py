"""The pool of teammate types of Wolfpack."""

from collections.abc import Callable
from functools import partial

from dropin.games.wolfpack import heuristics
from dropin.games.wolfpack.learned import make_h5, make_h6
from dropin.games.wolfpack.search import reading_order_search, shortest_path_search
from dropin.teams.types import Type

__all__ = ["make_types"]


def make_types(rules: str) -> dict[str, Callable[[], Type]]:
    """Return the types of the paper (appendix B.4.1), H1 to H9, each as a function that makes it.

    Args:
        rules: `paper` or `reference`. Under `reference` H3 makes errors, waiting hunters retreat,
            and paths are those of the authors' program.
    """
    is_reference = rules == "reference"
    search = reading_order_search if is_reference else shortest_path_search
    greedy, teammate_aware = heuristics.greedy, heuristics.teammate_aware
    probabilistic = heuristics.GreedyProbabilistic(makes_errors=is_reference)
    waiting = partial(heuristics.Waiting, retreats=is_reference)
    hunters: dict[str, tuple[str, heuristics.Heuristic]] = {
        "H1": ("acts at random", heuristics.random),
        "H2": ("goes straight for the nearest prey", greedy),
        "H3": ("goes for the nearest prey, choosing the axis by chance", probabilistic),
        "H4": ("walks around others to the cell next to a prey assigned to it", teammate_aware),
        "H7": ("waits for company near a prey, else as H2", waiting(greedy)),
        "H8": ("waits for company near a prey, else as H3", waiting(probabilistic)),
        "H9": ("waits for company near a prey, else as H4", waiting(teammate_aware)),
    }
    types: dict[str, Callable[[], Type]] = {
        name: partial(heuristics.HeuristicHunter, name, summary, heuristic, search)
        for name, (summary, heuristic) in hunters.items()
    }
    learned = {"H5": partial(make_h5, search=search), "H6": partial(make_h6, search=search)}
    return dict(sorted({**types, **learned}.items()))
