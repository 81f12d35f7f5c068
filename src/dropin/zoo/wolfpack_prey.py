"""Prey that learn to flee, from wolves that learn to hunt them (paper: appendix B.1).

Six networks learn side by side, each for itself, by deep Q-learning: two prey, which lose a point
when they are captured, and four wolves with the rewards of the game. The wolves are thrown away.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.dice import Dice
from dropin.games.wolfpack import State, Wandering, preset
from dropin.games.wolfpack.game import STAY
from dropin.models.layers import MLP
from dropin.teams.pool import select
from dropin.teams.wolfpack.prey import STUMBLES, Fleeing, action_values, networks, patches
from dropin.zoo.hunts import captures
from dropin.zoo.qlearning import Learning, QLearning, explore, of_actions
from dropin.zoo.recipe import Score

GAME = preset("reference")
"""With shaped rewards, for the wolves."""
WOLVES = 4
UNITS = 64


class Lived(eqx.Module):
    """One step of the game, as it is remembered."""

    before: State
    after: State
    wolf_actions: Int[Array, " wolf"]
    prey_actions: Int[Array, " prey"]
    rewards: Float[Array, " wolf"]


class Networks(eqx.Module):
    """All that learn, side by side in every array."""

    prey: MLP
    wolves: MLP


def wolf_features(state: State) -> Float[Array, "wolf feature"]:
    """What a wolf sees: where it is, and where all prey and the other wolves are from there."""
    others = np.array([[j for j in range(WOLVES) if j != i] for i in range(WOLVES)])
    to_prey = state.prey[None] - state.hunters[:, None]
    to_wolves = state.hunters[others] - state.hunters[:, None]
    rows = jnp.concatenate([state.hunters[:, None], to_prey, to_wolves], axis=1)
    return rows.reshape(WOLVES, -1).astype(jnp.float32) / 10.0


def wolf_values(nets: MLP, state: State) -> Float[Array, "wolf action"]:
    """The values of each wolf's actions."""
    return eqx.filter_vmap(lambda net, row: net(row))(nets, wolf_features(state))


@dataclass(frozen=True)
class FleeingPrey(QLearning):
    """Independent deep Q-learning of two prey and four wolves."""

    name: ClassVar[str] = "wolfpack/prey"
    about: ClassVar[str] = "two prey that flee from the hunters they see"
    how: ClassVar[str] = "independent deep Q-learning together with four wolves"

    steps: int = 3_200_000
    exploring: int = 1_600_000

    def fresh(self, key: PRNGKeyArray) -> Networks:
        """Two prey, four wolves."""
        one, two = jax.random.split(key)
        inputs = 2 * (GAME.prey + WOLVES)
        wolf = eqx.filter_vmap(lambda key: MLP([inputs, UNITS, UNITS, STAY + 1], key=key))
        return Networks(networks(one), wolf(jax.random.split(two, WOLVES)))

    def place(self, key: PRNGKeyArray) -> State:
        """Four wolves and two prey."""
        return GAME.start(Dice(key), jnp.ones(WOLVES, bool))

    def live(
        self, networks: Networks, state: State, epsilon: Float[Array, ""], key: PRNGKeyArray
    ) -> tuple[State, Lived, Float[Array, ""]]:
        """All act at once; after 200 steps the game starts anew."""
        dice = Dice(key)
        prey = explore(dice, action_values(networks.prey, patches(GAME.size, state)), epsilon)
        wolves = explore(dice, wolf_values(networks.wolves, state), epsilon)
        after, outcome = GAME.move(GAME.respawn(dice, state), wolves, prey)
        lived = Lived(state, after, wolves, prey, outcome.rewards)
        following = select(outcome.truncated, self.place(dice.key()), after)
        return following, lived, jnp.sum(after.captured, dtype=jnp.float32)

    def error(self, networks: Networks, targets: Networks, lived: Lived) -> Float[Array, ""]:
        """Of all six; a prey's life ends with its capture."""
        before, after = lived.before, lived.after
        chosen = action_values(networks.prey, patches(GAME.size, before))
        chosen = of_actions(chosen, lived.prey_actions)
        ahead = jnp.max(action_values(targets.prey, patches(GAME.size, after)), axis=1)
        worth = jnp.where(after.captured, -1.0, self.discount * ahead)
        # What a prey chose when it had just been captured was carried out elsewhere.
        missed = jnp.where(before.captured, 0.0, chosen - worth)

        chosen = of_actions(wolf_values(networks.wolves, before), lived.wolf_actions)
        ahead = jnp.max(wolf_values(targets.wolves, after), axis=1)
        worth = lived.rewards + self.discount * ahead
        return jnp.sum(missed**2) + jnp.sum((chosen - worth) ** 2)

    def weights(self, state: Learning) -> MLP:
        """The networks of the prey."""
        return state.networks.prey

    def scores(self, weights: Any) -> list[Score]:
        """How often three hunters of a kind capture these prey, and prey that act at random."""
        prey = {
            "learned": Fleeing(weights, STUMBLES),
            "learned, without stumbling": Fleeing(weights),
            "random": Wandering(),
        }
        return [
            Score.of(
                f"captures in 200 steps by three {kind}", who, captures([kind], instinct=instinct)
            )
            for kind in ("H2", "H4")
            for who, instinct in prey.items()
        ]
