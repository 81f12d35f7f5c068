"""G6 of FortAttack: guards that learned against both types of attackers."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax

from dropin.teams.fortattack.learned import FighterNet, LearnedFighter
from dropin.teams.types import ViewType
from dropin.zoo.fights import conduct
from dropin.zoo.fortattack_g4 import arena, nobody
from dropin.zoo.ppo import KINDS, PPO, SLOTS, Arenas, Learning, Squad
from dropin.zoo.recipe import Score


@dataclass(frozen=True)
class Ensemble(PPO):
    """Only the guards learn."""

    name: ClassVar[str] = "fortattack/G6"
    about: ClassVar[str] = "guards that learned against both types of attackers"
    how: ClassVar[str] = "PPO of all guards together, against A1 and A2 in equal shares"

    steps: int = 3_000_000

    def field(self) -> Arenas:
        """Attackers of both types; the guards are in a squad."""
        types = [ViewType("guard", "", nobody), "A1", "A2"]
        return Arenas.of([arena(rules, limit, types) for rules, limit in KINDS], self.arenas)

    def start(self, seed: int) -> Learning:
        """A squad of guards."""
        key, one = jax.random.split(jax.random.key(seed))
        return self.begin((Squad.fresh(0, SLOTS, one),), key)

    def advance(self, state: Learning) -> tuple[Learning, dict[str, Any]]:
        """A chunk of updates."""
        return self.train(state)

    def weights(self, state: Learning) -> FighterNet:
        """The guards' policy."""
        return state.squads[0].policy

    def scores(self, weights: FighterNet) -> list[Score]:
        """What the guards do against the attackers of the pool."""
        return conduct(LearnedFighter("G6", "", weights))
