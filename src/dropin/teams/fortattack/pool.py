"""The game, the types and the openness of FortAttack under each set of rules."""

from collections.abc import Callable
from functools import partial

from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.game import preset as game
from dropin.teams.fortattack import scripted as by
from dropin.teams.fortattack.openness import Shooting, of
from dropin.teams.fortattack.view import Look
from dropin.teams.types import Type

__all__ = ["ALIKE", "game", "look", "openness", "types"]

ALIKE = ("reference",)
"""The rules under which a side has one type for a whole episode."""


def types(rules: str) -> dict[str, Callable[[], Type]]:
    """The types of the paper by its names; each is made when it is wanted."""
    del rules
    guards = {
        "G2": ("stands in front of the fort and shoots all the time", by.Flash(0.3), 0.05),
        "G3": ("stands along the width and shoots all the time", by.Flash(0.8), 0.05),
        "G4": ("keeps to its part of the width and shoots to hit", by.smart, 0.05),
    }
    attackers = {
        "A1": ("looks for a gap along the whole width", by.Sneak(0.3), 0.4),
        "A2": ("most come from one side, one goes round the other", by.Deceive(0.3), 0.4),
    }
    return {
        **{name: partial(by.ScriptedFighter, name, *row) for name, row in guards.items()},
        **{
            name: partial(by.ScriptedFighter, name, *row, side=1) for name, row in attackers.items()
        },
    }


def look(rulebook: FortAttack, rules: str) -> Look:
    """All see the whole plane."""
    del rules
    return Look(rulebook)


def openness(rules: str, rulebook: FortAttack, slots: int) -> Shooting:
    """By shooting."""
    del slots
    return of(rules, rulebook)
