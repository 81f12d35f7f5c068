"""FortAttack: guards keep attackers from a fort on a plane; both sides shoot."""

from dropin.games.fortattack.game import FortAttack, State, preset

__all__ = ["FortAttack", "State", "preset"]
