"""H6 of Wolfpack: a relational network that learns to hunt by deep Q-learning.

It plays for the whole team: every hunter's action values come from its own node, and every hunter
learns from its own reward. Teams have two to five hunters, drawn for each episode.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.dice import Dice
from dropin.games.wolfpack import State
from dropin.teams.pool import select
from dropin.teams.wolfpack.learned import HunterNet, by_rewards
from dropin.teams.wolfpack.pool import game
from dropin.zoo.hunts import captures
from dropin.zoo.qlearning import QLearning, explore, of_actions
from dropin.zoo.recipe import Score

GAME = game("reference")
"""With the prey of the zoo and shaped rewards."""
FEWEST, MOST = 2, 5


class Lived(eqx.Module):
    """One step of the game, as it is remembered."""

    before: State
    after: State
    actions: Int[Array, " slot"]
    rewards: Float[Array, " slot"]


@dataclass(frozen=True)
class GraphHunter(QLearning):
    """Deep Q-learning of one network for all hunters."""

    name: ClassVar[str] = "wolfpack/H6"
    about: ClassVar[str] = "a hunter that learned from rewards"
    how: ClassVar[str] = "deep Q-learning of one relational network for teams of two to five"

    def fresh(self, key: PRNGKeyArray) -> HunterNet:
        """One network for all."""
        return HunterNet(key)

    def place(self, key: PRNGKeyArray) -> State:
        """A team of any size."""
        dice = Dice(key)
        return GAME.start(dice, jnp.arange(MOST) < dice.integers(FEWEST, MOST))

    def live(
        self, networks: HunterNet, state: State, epsilon: Float[Array, ""], key: PRNGKeyArray
    ) -> tuple[State, Lived, Float[Array, ""]]:
        """All act at once; after 200 steps the game starts anew."""
        dice = Dice(key)
        actions = explore(dice, networks(state), epsilon)
        after, outcome = GAME.step(dice, state, actions)
        lived = Lived(state, after, actions, outcome.rewards)
        following = select(outcome.truncated, self.place(dice.key()), after)
        return following, lived, jnp.sum(after.captured, dtype=jnp.float32)

    def error(self, networks: HunterNet, targets: HunterNet, lived: Lived) -> Float[Array, ""]:
        """Of all who are there."""
        chosen = of_actions(networks(lived.before), lived.actions)
        worth = lived.rewards + self.discount * jnp.max(targets(lived.after), axis=1)
        present = lived.before.present
        missed = jnp.where(present, chosen - worth, 0.0)
        return jnp.sum(missed**2) / jnp.sum(present, dtype=jnp.float32)

    def scores(self, weights: Any) -> list[Score]:
        """How often three hunters capture a prey, beside others."""
        what = "captures in 200 steps by three"
        kinds = {"H6": by_rewards(weights), "H1": "H1", "H2": "H2", "H4": "H4"}
        return [Score.of(what, who, captures([kind])) for who, kind in kinds.items()]
