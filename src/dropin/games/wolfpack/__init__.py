"""Wolfpack: hunters who catch prey together on a grid."""

from dropin.games.wolfpack.game import Happened, Instinct, State, Wandering, Wolfpack
from dropin.games.wolfpack.game import preset as preset

__all__ = ["Happened", "Instinct", "State", "Wandering", "Wolfpack", "preset"]
