"""Level-based foraging: agents and objects with levels on a grid."""

from dropin.games.lbf.game import LBF, Happened, State
from dropin.games.lbf.game import preset as preset

__all__ = ["LBF", "Happened", "State", "preset"]
