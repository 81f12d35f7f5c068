"""The games, one folder each. Importing this package registers them and the kinds of openness."""

from dropin.core.registry import register_game, register_openness
from dropin.games import fortattack, lbf, wolfpack
from dropin.teams.kinds import make_churn, make_closed, make_durations, make_schedule

__all__: list[str] = []

for _spec in (lbf.SPEC, wolfpack.SPEC, fortattack.SPEC):
    register_game(_spec)

register_openness("closed", make_closed)
register_openness("churn", make_churn)
register_openness("durations", make_durations)
register_openness("schedule", make_schedule)
register_openness("shooting", fortattack.make_openness)
