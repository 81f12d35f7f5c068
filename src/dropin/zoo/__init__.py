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
        Entry("fortattack/G1", "fortattack_scripts", "G1"),
        Entry("fortattack/G2", "fortattack_scripts", "G2"),
        Entry("fortattack/G3", "fortattack_scripts", "G3"),
        Entry("fortattack/G4", "fortattack_g4", "SelfPlay"),
        Entry("fortattack/G6", "fortattack_g6", "Ensemble"),
        Entry("fortattack/A1", "fortattack_scripts", "A1"),
        Entry("fortattack/A2", "fortattack_scripts", "A2"),
    )
}


def find(name: str) -> Entry:
    """The catalogue's entry for a recipe."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]
