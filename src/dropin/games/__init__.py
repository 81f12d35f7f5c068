"""The catalogue of games; reading it imports no game."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dropin.errors import unknown

RULES = {
    "paper": "the text of the paper",
    "reference": "the authors' released program, for comparing with published numbers",
}
"""The named presets of every game and its team."""


@dataclass(frozen=True)
class Entry:
    """A game in the catalogue."""

    name: str
    short: str
    """As in the names of other libraries' environments."""
    title: str
    about: str

    def load(self) -> Any:
        """The game's own module."""
        return import_module(f"dropin.games.{self.name}")


CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry(
            "lbf",
            "LBF",
            "Level-based foraging",
            "collect objects on a grid; many take more than one agent's level",
        ),
        Entry(
            "wolfpack",
            "Wolfpack",
            "Wolfpack",
            "hunt prey on a grid; a prey is caught by two or more hunters next to it",
        ),
        Entry(
            "fortattack",
            "FortAttack",
            "FortAttack",
            "guard a fort on a plane against attackers; both sides shoot",
        ),
    )
}


def find(name: str) -> Entry:
    """The catalogue's entry for a game."""
    if name not in CATALOGUE:
        raise unknown("game", name, CATALOGUE)
    return CATALOGUE[name]


def check_rules(rules: str) -> None:
    """Raise `InputError` for rules that do not exist."""
    if rules not in RULES:
        raise unknown("rules", rules, RULES)
