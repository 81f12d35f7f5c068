"""When hunters of Wolfpack leave and enter."""

from dropin.games.wolfpack.game import Wolfpack
from dropin.teams.openness import Churn, Durations

__all__ = ["make_openness"]


def make_openness(rules: str, game: Wolfpack, slots: int) -> Durations | Churn:
    """Return the openness of a team.

    Args:
        rules: Under `paper` hunters stay and stay away for sampled durations; under `reference`
            one or two of them leave or enter now and then.
        game: Not used; the openness is the same for all grids.
        slots: Not used; the openness is the same for all team sizes.
    """
    del game, slots
    return Churn() if rules == "reference" else Durations((25, 35), (15, 25))
