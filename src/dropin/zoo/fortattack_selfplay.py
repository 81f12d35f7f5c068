"""Guards and attackers of FortAttack that learned against each other."""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from dropin.adhoc import make
from dropin.zoo.ppo import PPO, Arenas, Learning, Squad

SLOTS = 5
KINDS = [("paper", 3), ("reference", 3), ("paper", 5), ("reference", 5)]


def idle(view: Any) -> Int[Array, ""]:
    """Does nothing."""
    del view
    return jnp.int32(0)


class SelfPlayState(eqx.Module):
    learning: Learning
    snapshots: Any

    @property
    def steps(self):
        return self.learning.steps


@dataclass(frozen=True)
class SelfPlay(PPO):
    """Both sides learn at once."""

    name: ClassVar[str] = "fortattack/selfplay"
    about: ClassVar[str] = "guards and attackers that learned against each other"
    how: ClassVar[str] = "PPO in self-play, both sides at once, under both rules"
    snapshots: int = 20

    def field(self) -> Arenas:
        from dropin.teams.types import ViewType

        types = [ViewType("guard", "", idle), ViewType("attacker", "", idle, side=1)]
        envs = [
            make(
                "fortattack",
                rules=rules,
                team_limit=limit,
                slots=SLOTS,
                types=types,
                heading="angle",
                ends_with_learner=False,
            )
            for rules, limit in KINDS
        ]
        return Arenas.of(envs, self.arenas)

    def start(self, seed: int) -> SelfPlayState:
        key, one, two = jax.random.split(jax.random.key(seed), 3)
        squads = Squad.fresh(0, SLOTS, one), Squad.fresh(SLOTS, SLOTS, two)
        learning = self.begin(squads, key)
        policies = [squad.policy for squad in squads]
        snapshots = jax.tree.map(lambda leaf: jnp.stack([leaf] * (self.snapshots + 1)), policies)
        return SelfPlayState(learning, snapshots)

    def advance(self, state):
        before = int(state.steps)
        learning, told = self.train(state.learning)
        every = self.steps // self.snapshots
        number = int(learning.steps) // every
        snapshots = state.snapshots
        if number > before // every:
            policies = [squad.policy for squad in learning.squads]
            snapshots = jax.tree.map(lambda old, new: old.at[number].set(new), snapshots, policies)
        return SelfPlayState(learning, snapshots), told

    def weights(self, state):
        return state.snapshots

    def scores(self, weights):
        return []
