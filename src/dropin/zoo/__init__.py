"""The zoo: recipes that train learned teammates, prey and agents, and cards that report on them.

Importing this package is cheap: a recipe's module is imported when the recipe is made.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from dropin.core.errors import unknown

if TYPE_CHECKING:
    from dropin.zoo.recipe import Recipe

    AnyRecipe = Recipe[Any, Any]

__all__ = ["AGENT_RECIPES", "RECIPES", "make_recipe"]


def _lbf_h5() -> "AnyRecipe":
    from dropin.zoo.lbf_h5 import BestOfFour

    return BestOfFour()


def _wolfpack_prey() -> "AnyRecipe":
    from dropin.zoo.wolfpack_prey import FleeingPrey

    return FleeingPrey()


def _wolfpack_recurrent_prey() -> "AnyRecipe":
    from dropin.zoo.wolfpack_prey_search import PreySearch

    return PreySearch()


def _wolfpack_h5() -> "AnyRecipe":
    from dropin.zoo.wolfpack_h5 import Imitation

    return Imitation()


def _wolfpack_h6() -> "AnyRecipe":
    from dropin.zoo.wolfpack_h6 import RelationalHunter

    return RelationalHunter()


def _fortattack_g4() -> "AnyRecipe":
    from dropin.zoo.fortattack_g4 import SelfPlay

    return SelfPlay()


def _fortattack_g6() -> "AnyRecipe":
    from dropin.zoo.fortattack_g6 import Ensemble

    return Ensemble()


def _fortattack_untrained(name: str) -> "AnyRecipe":
    from dropin.zoo.fortattack_untrained import UNTRAINED

    return UNTRAINED[name]()


RECIPES: Mapping[str, Callable[[], "AnyRecipe"]] = {
    "lbf/H5": _lbf_h5,
    "wolfpack/prey": _wolfpack_prey,
    "wolfpack/recurrent-prey": _wolfpack_recurrent_prey,
    "wolfpack/H5": _wolfpack_h5,
    "wolfpack/H6": _wolfpack_h6,
    "fortattack/G1": partial(_fortattack_untrained, "G1"),
    "fortattack/G2": partial(_fortattack_untrained, "G2"),
    "fortattack/G3": partial(_fortattack_untrained, "G3"),
    "fortattack/G4": _fortattack_g4,
    "fortattack/G6": _fortattack_g6,
    "fortattack/A1": partial(_fortattack_untrained, "A1"),
    "fortattack/A2": partial(_fortattack_untrained, "A2"),
}
"""Functions that make the recipes with their default settings, by `game/name`."""
AGENT_RECIPES: Mapping[str, tuple[str, str]] = {
    "lbf/gpl-q": ("lbf", "gpl-q"),
    "lbf/gpl-spi": ("lbf", "gpl-spi"),
    "lbf/ql": ("lbf", "ql"),
    "wolfpack/gpl-q": ("wolfpack", "gpl-q"),
    "wolfpack/gpl-spi": ("wolfpack", "gpl-spi"),
    "fortattack/gpl-q": ("fortattack", "gpl-q"),
    "fortattack/gpl-spi": ("fortattack", "gpl-spi"),
}
"""The game and the learner of the trained agents, by `game/name`."""


def make_recipe(name: str) -> "AnyRecipe":
    """Make a recipe with its default settings.

    Args:
        name: `game/name`, one of `RECIPES`.

    Raises:
        InputError: If there is no such recipe.
    """
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]()
