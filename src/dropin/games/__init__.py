"""The games, one folder each. Importing this package registers them and the kinds of openness."""

from dropin.core.registry import register_game, register_openness
from dropin.games import fortattack, lbf, wolfpack
from dropin.teams.openness import Churn, Closed, Durations

__all__: list[str] = []

for _spec in (lbf.SPEC, wolfpack.SPEC, fortattack.SPEC):
    register_game(_spec)

register_openness("closed", lambda rules, game, slots: Closed())  # noqa: ARG005
register_openness("churn", lambda rules, game, slots: Churn())  # noqa: ARG005
register_openness("durations", lambda rules, game, slots: Durations((15, 25), (10, 20)))  # noqa: ARG005
register_openness("shooting", fortattack.make_openness)
