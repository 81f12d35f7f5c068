"""The types of guards and attackers in FortAttack (appendix B.3 of the paper)."""

from collections.abc import Callable
from functools import partial

from dropin.games.fortattack.learned import load_fighter, untrained_fighter
from dropin.games.fortattack.scripted import (
    DECEIVE,
    FLASH_LASER,
    SNEAK,
    SPREAD_OUT_FLASH_LASER,
    Script,
    ScriptedFighter,
)
from dropin.games.fortattack.state import ATTACKER, GUARD
from dropin.teams.types import Type

__all__ = ["ATTACKER_EPSILON", "GUARD_EPSILON", "has_shared_type", "make_types"]

GUARD_EPSILON, ATTACKER_EPSILON = 0.05, 0.3
"""Probability of a random action in a step of a scripted guard or attacker."""


def make_types(rules: str) -> dict[str, Callable[[], Type]]:
    """Return functions that make the types, by their names in the paper.

    Args:
        rules: Unused: the types are the same under all rules.
    """
    del rules
    return {
        "G1": partial(untrained_fighter, "G1", "acts almost at random"),
        "G2": _guard("G2", "stands in front of the fort and shoots all the time", FLASH_LASER),
        "G3": _guard(
            "G3", "stands along the width and shoots all the time", SPREAD_OUT_FLASH_LASER
        ),
        "G4": partial(
            load_fighter, "G4", "spreads out and shoots to hit, as it learned in self-play"
        ),
        "G6": partial(load_fighter, "G6", "learned against both types of attackers"),
        "A1": _attacker("A1", "looks for a gap along the whole width", SNEAK),
        "A2": _attacker("A2", "most come from one side, one goes round", DECEIVE),
    }


def _guard(name: str, summary: str, script: Script) -> Callable[[], Type]:
    return partial(ScriptedFighter, name, summary, script, GUARD_EPSILON, side=GUARD)


def _attacker(name: str, summary: str, script: Script) -> Callable[[], Type]:
    return partial(ScriptedFighter, name, summary, script, ATTACKER_EPSILON, side=ATTACKER)


def has_shared_type(rules: str) -> bool:
    """Return whether a side has one type for a whole episode: only in the authors' program."""
    return rules == "reference"
