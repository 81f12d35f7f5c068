"""G4 of FortAttack: guards that learned against attackers that learned against them.

Both sides learn at once, all agents of a side with one network, under both sets of rules and at
two team limits. Both networks are kept every so many steps, and of the guards' checkpoints that
one is chosen which behaves most like the description: spread along the width, and shooting only
to hit.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from dropin.adhoc import make
from dropin.teams.fortattack.learned import FighterNet, LearnedFighter
from dropin.teams.types import ViewType
from dropin.zoo.fights import Fight, conduct, fight
from dropin.zoo.ppo import KINDS, PPO, SLOTS, Arenas, Learning, Squad
from dropin.zoo.recipe import Score


class Kept(eqx.Module):
    """Learning, and the policies of both sides at every checkpoint so far."""

    learning: Learning
    policies: tuple[FighterNet, FighterNet]
    """With a leading checkpoint axis."""

    @property
    def steps(self) -> Int[Array, ""]:
        """Environment steps so far."""
        return self.learning.steps


def nobody(view: Any) -> Int[Array, ""]:
    """Does nothing: everybody is in a squad."""
    del view
    return jnp.int32(0)


@dataclass(frozen=True)
class SelfPlay(PPO):
    """Both sides learn at once."""

    name: ClassVar[str] = "fortattack/G4"
    about: ClassVar[str] = "guards that spread out and shoot to hit"
    how: ClassVar[str] = "PPO in self-play, both sides at once; the checkpoint chosen by behaviour"

    steps: int = 4_000_000
    checkpoints: int = 20
    """How many are kept, the fresh networks not counted."""

    def field(self) -> Arenas:
        """Nobody acts by a type."""
        types = [ViewType("guard", "", nobody), ViewType("attacker", "", nobody, side=1)]
        return Arenas.of([arena(rules, limit, types) for rules, limit in KINDS], self.arenas)

    def start(self, seed: int) -> Kept:
        """A squad on each side."""
        key, one, two = jax.random.split(jax.random.key(seed), 3)
        squads = Squad.fresh(0, SLOTS, one), Squad.fresh(SLOTS, SLOTS, two)
        policies = tuple(squad.policy for squad in squads)
        return Kept(
            self.begin(squads, key),
            jax.tree.map(lambda leaf: jnp.stack([leaf] * (self.checkpoints + 1)), policies),
        )

    def advance(self, state: Kept) -> tuple[Kept, dict[str, Any]]:
        """A chunk of updates, and a checkpoint if it is time."""
        learning, told = self.train(state.learning)
        every = -(-self.steps // self.checkpoints)
        number = min(int(learning.steps) // every, self.checkpoints)
        if int(learning.steps) >= self.steps:
            number = self.checkpoints
        if number == int(state.steps) // every:
            return Kept(learning, state.policies), told
        now = tuple(squad.policy for squad in learning.squads)
        policies = jax.tree.map(lambda old, new: old.at[number].set(new), state.policies, now)
        return Kept(learning, policies), told

    def weights(self, state: Kept) -> FighterNet:
        """The guards of the checkpoint that behaves best."""
        fights = [self.test(state, number) for number in range(self.checkpoints + 1)]
        best = int(np.argmax([merit(each) for each in fights]))
        return jax.tree.map(lambda leaf: leaf[best], state.policies[0])

    def test(self, state: Kept, number: int) -> Fight:
        """The guards of a checkpoint against the last attackers."""
        guards, attackers = (
            jax.tree.map(lambda leaf, k=k: leaf[k], policies)
            for policies, k in zip(state.policies, (number, -1), strict=True)
        )
        return fight(
            LearnedFighter("guards", "", guards),
            LearnedFighter("attackers", "", attackers, side=1),
        )

    def besides(self, state: Kept) -> dict[str, Any]:
        """All checkpoints."""
        return {"checkpoints": state.policies}

    def scores(self, weights: FighterNet) -> list[Score]:
        """What the guards do against the attackers of the pool."""
        return conduct(LearnedFighter("G4", "", weights))


def merit(fought: Fight) -> float:
    """How much guards behave as described: they hold the fort, spread out, and shoot to hit."""
    guards = fought.guards
    parts = (1 - fought.fallen, guards.spread, guards.accuracy)
    return float(np.prod([np.nanmean(part) for part in parts]))


def arena(rules: str, limit: int, types: list[Any]) -> Any:
    """Where to learn: an episode does not end with the learner."""
    return make(
        "fortattack",
        rules=rules,
        team_limit=limit,
        slots=SLOTS,
        types=types,
        heading="angle",
        ends_with_learner=False,
    )
