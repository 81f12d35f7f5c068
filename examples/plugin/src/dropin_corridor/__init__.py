"""A plug-in for Dropin: a game, an openness, a type for another game, a learner, an experiment.

The entry point in `pyproject.toml` names `register`. Dropin calls it once in each process that
needs a name which Dropin does not have itself.
"""

from functools import partial

from dropin import (
    register_experiment,
    register_game,
    register_learner,
    register_openness,
    register_type,
)
from dropin.teams.types import as_type
from dropin_corridor import corridor, dueling, experiment
from dropin_corridor.corridor.openness import make_relay
from dropin_corridor.wanderer import wanderer

__all__ = ["register"]


def register() -> None:
    """Make everything in this package known to Dropin by its name."""
    register_game(corridor.SPEC)
    register_openness("relay", make_relay)
    register_type("lbf", "wanderer", partial(as_type, wanderer))
    register_learner(dueling.SPEC)
    register_experiment(experiment.SPEC)
