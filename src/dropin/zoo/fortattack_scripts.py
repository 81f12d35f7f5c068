"""The cards of the types of FortAttack that nobody trained: scripts, and a fresh network."""

from dataclasses import dataclass
from typing import Any, ClassVar

from dropin.teams.fortattack.pool import types
from dropin.zoo.fights import conduct
from dropin.zoo.recipe import Recipe, Score


@dataclass(frozen=True)
class Script(Recipe):
    """Nothing to train: what the type does is measured."""

    how: ClassVar[str] = "a script"

    steps: int = 0

    def start(self, seed: int) -> tuple[()]:
        """Nothing."""
        del seed
        return ()

    def step(self, state: tuple[()]) -> int:
        """It is done."""
        del state
        return 0

    def advance(self, state: tuple[()]) -> tuple[tuple[()], dict[str, Any]]:
        """Nothing to do."""
        return state, {}

    def weights(self, state: tuple[()]) -> None:
        """None."""
        del state

    def scores(self, weights: None) -> list[Score]:
        """What the type does against the other side."""
        del weights
        return conduct(types("paper")[self.name.removeprefix("fortattack/")]())


class G1(Script):
    """Guard type 1."""

    name = "fortattack/G1"
    about = "guards that act almost at random"
    how = "a network that was never trained"


class G2(Script):
    """Guard type 2."""

    name = "fortattack/G2"
    about = "guards that stand in front of the fort and flash their lasers"


class G3(Script):
    """Guard type 3."""

    name = "fortattack/G3"
    about = "guards that stand along the width and flash their lasers"


class A1(Script):
    """Attacker type 1."""

    name = "fortattack/A1"
    about = "attackers that look for a gap along the whole width"


class A2(Script):
    """Attacker type 2."""

    name = "fortattack/A2"
    about = "attackers of whom most come from one side and one goes round the other"
