"""The game, the types and the openness of FortAttack under each set of rules."""

from collections.abc import Callable
from functools import partial

from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.game import preset as game
from dropin.games.fortattack.state import ATTACKER, GUARD
from dropin.teams.fortattack import learned
from dropin.teams.fortattack import scripted as by
from dropin.teams.fortattack.openness import Shooting, of
from dropin.teams.fortattack.view import Look
from dropin.teams.types import Type

__all__ = ["ALIKE", "game", "look", "openness", "types"]

WILD_GUARD, WILD_ATTACKER = 0.05, 0.3
"""How often those who follow a script do anything."""
ALIKE = ("reference",)
"""The rules under which a side has one type for a whole episode."""


def types(rules: str) -> dict[str, Callable[[], Type]]:
    """The types of the paper by its names; each is made when it is wanted."""
    del rules
    scripts = {
        "G2": (GUARD, "stands in front of the fort and shoots all the time", by.FRONT, WILD_GUARD),
        "G3": (GUARD, "stands along the width and shoots all the time", by.LINE, WILD_GUARD),
        "A1": (ATTACKER, "looks for a gap along the whole width", by.SNEAK, WILD_ATTACKER),
        "A2": (ATTACKER, "most come from one side, one goes round", by.DECEIVE, WILD_ATTACKER),
    }
    networks = {
        "G1": (learned.untrained, "acts almost at random"),
        "G4": (learned.from_zoo, "spreads out and shoots to hit, as it learned in self-play"),
        "G6": (learned.from_zoo, "learned against both types of attackers"),
    }
    makers: dict[str, Callable[[], Type]] = {
        name: partial(by.ScriptedFighter, name, *row, side=side)
        for name, (side, *row) in scripts.items()
    }
    makers |= {name: partial(make, name, about) for name, (make, about) in networks.items()}
    return {name: makers[name] for name in ("G1", "G2", "G3", "G4", "G6", "A1", "A2")}


def look(rulebook: FortAttack, rules: str) -> Look:
    """All see the whole plane."""
    del rules
    return Look(rulebook)


def openness(rules: str, rulebook: FortAttack, slots: int) -> Shooting:
    """By shooting."""
    del slots
    return of(rules, rulebook)
