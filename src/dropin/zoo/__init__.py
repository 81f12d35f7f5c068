"""The zoo: recipes that train the learned teammates and prey, and cards that tell how they do.

Reading the catalogue imports no recipe.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dropin.errors import unknown


@dataclass(frozen=True)
class Entry:
    """A recipe in the catalogue."""

    name: str
    """`game/name`, as the weights are called."""
    module: str
    recipe: str

    def load(self) -> Any:
        """The recipe with its default settings."""
        return getattr(import_module(f"dropin.zoo.{self.module}"), self.recipe)()


RECIPES = {
    each.name: each
    for each in (
        Entry("lbf/H5", "lbf_h5", "BestOfFour"),
        Entry("wolfpack/prey", "wolfpack_prey", "FleeingPrey"),
        Entry("wolfpack/H5", "wolfpack_h5", "Imitation"),
        Entry("wolfpack/H6", "wolfpack_h6", "GraphHunter"),
    )
}


def find(name: str) -> Entry:
    """The catalogue's entry for a recipe."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]
