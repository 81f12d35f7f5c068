"""FortAttack: guards keep attackers from a fort on a plane; both sides shoot."""

from dropin.games.fortattack.game import FortAttack, preset
from dropin.games.fortattack.state import State

__all__ = ["FortAttack", "State", "preset"]
