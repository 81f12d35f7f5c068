"""The cards of the types of FortAttack that are not trained: scripts, and an initial network."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

from jaxtyping import Array, Float

from dropin.games import fortattack
from dropin.games.fortattack.types import make_types
from dropin.zoo.fortattack_matches import measure_behaviour
from dropin.zoo.recipe import Measurement, Recipe

__all__ = ["UNTRAINED", "Untrained"]


@dataclass(frozen=True)
class Untrained(Recipe[tuple[()], None]):
    """A recipe without training: the type is only measured."""

    method: ClassVar[str] = "a script"
    game: ClassVar[ModuleType] = fortattack

    steps: int = 0

    def init(self, seed: int) -> tuple[()]:
        """Return an empty state."""
        del seed
        return ()

    def steps_done(self, state: tuple[()]) -> int:
        """Return 0."""
        del state
        return 0

    def train_chunk(self, state: tuple[()]) -> tuple[tuple[()], Mapping[str, Float[Array, ""]]]:
        """Do nothing."""
        return state, {}

    def policy_params(self, state: tuple[()]) -> None:
        """Return None: there are no weights."""
        del state

    def measure(self, params: None) -> list[Measurement]:
        """Measure how the type behaves against each type of the other side."""
        del params
        return measure_behaviour(make_types("paper")[self.name.removeprefix("fortattack/")]())


class _G1(Untrained):
    name = "fortattack/G1"
    summary = "guards that act almost at random"
    method = "a network that was never trained"


class _G2(Untrained):
    name = "fortattack/G2"
    summary = "guards that stand in front of the fort and flash their lasers"


class _G3(Untrained):
    name = "fortattack/G3"
    summary = "guards that stand along the width and flash their lasers"


class _A1(Untrained):
    name = "fortattack/A1"
    summary = "attackers that look for a gap along the whole width"


class _A2(Untrained):
    name = "fortattack/A2"
    summary = "attackers of whom most come from one side and one goes round the other"


UNTRAINED: Mapping[str, type[Untrained]] = {
    each.name.removeprefix("fortattack/"): each for each in (_G1, _G2, _G3, _A1, _A2)
}
"""The recipes by the name of the type."""
