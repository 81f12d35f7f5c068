"""When teammates of level-based foraging leave and return."""

from dropin.games.lbf.game import LBF
from dropin.teams.openness import Durations

__all__ = ["make_openness"]


def make_openness(rules: str, game: LBF, slots: int) -> Durations:
    """Return the openness of a team: sampled durations of presence and absence.

    Args:
        rules: Under `reference` at least five agents exist, whatever the team limit. The numbers
            are the counters of the authors' program, restated as steps present and absent.
        game: Not used; all games of foraging have the same openness.
        slots: Number of slots, the learner's included.
    """
    del game
    if rules == "reference":
        return Durations((11, 20), (16, 25), population=max(5, slots), initial_extra=1)
    return Durations((15, 25), (10, 20))
