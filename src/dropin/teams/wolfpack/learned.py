"""Hunters that learned: H5 imitates teammate-aware hunters, H6 learned from rewards."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.games.wolfpack.game import State
from dropin.models.layers import MLP
from dropin.models.relational import Block
from dropin.sparse import where_needed
from dropin.teams.learned import learned
from dropin.teams.types import CarryOut, Scene, Type
from dropin.teams.wolfpack.heuristics import ACTIONS, Chances, Intent, Legwork, always, do
from dropin.teams.wolfpack.search import Search, shortest

SCALE = 10.0
"""Rows and columns are divided by it."""


class HunterNet(eqx.Module):
    """A relational network over all hunters and prey: a number for each action of each hunter."""

    first: Block
    second: Block
    readout: MLP

    def __init__(self, key: PRNGKeyArray):
        keys = jax.random.split(key, 5)
        self.first = Block(_NODE, 60, 50, keys=(keys[0], keys[1]))
        self.second = Block(50, 40, 30, keys=(keys[2], keys[3]))
        self.readout = MLP([30, 35, ACTIONS], key=keys[4])

    def __call__(
        self, state: State, slots: Int[Array, " wanted"] | None = None
    ) -> Float[Array, "wanted action"]:
        """The numbers for the actions of whoever is in each slot, or in these."""
        wanted = jnp.arange(len(state.hunters)) if slots is None else slots
        nodes = features(state)
        present = jnp.concatenate([state.present, jnp.ones(len(state.prey), bool)])
        hidden = jax.nn.relu(self.first(nodes, present))
        return self.readout(jax.nn.relu(self.second(hidden, present, wanted)))


_NODE = 8


def features(state: State) -> Float[Array, "node feature"]:
    """Hunters, then prey: row, column, which of both it is, and where a prey faces."""
    cells = jnp.concatenate([state.hunters, state.prey]).astype(jnp.float32) / SCALE
    is_prey = jnp.arange(len(cells)) >= len(state.hunters)
    facing = (state.facing[:, None] == jnp.arange(4)[None]).astype(jnp.float32)
    facing = jnp.concatenate([jnp.zeros((len(state.hunters), 4)), facing])
    kind = jnp.stack([~is_prey, is_prey], axis=1).astype(jnp.float32)
    return jnp.concatenate([cells, kind, facing], axis=1)


class LearnedHunter(Type):
    """A type that a network plays for."""

    net: HunterNet
    greedy: bool = eqx.field(static=True)
    """Whether it takes the action with the highest number, or draws by the softmax."""
    search: Search = eqx.field(static=True)
    """That of the types it shares a pool with."""

    def plan(self, scene: Scene, memory: Any) -> tuple[Intent, Any]:
        """What each actor is about to do; the network is asked for its own alone."""
        slots = jnp.arange(scene.first, scene.first + len(scene.character))
        chances = jax.vmap(
            lambda asked, slot: where_needed(_ask, asked, (scene.state, slot), self, block=32)
        )(scene.asked, slots)
        return jax.vmap(do)(chances), memory

    def chances(self, state: State, slot: Int[Array, ""]) -> Chances:
        """How likely each action of the hunter in a slot is."""
        numbers = self.net(state, slot[None])[0]
        return always(jnp.argmax(numbers)) if self.greedy else jax.nn.softmax(numbers)

    @property
    def carry_out(self) -> CarryOut:
        """Drawing an action, together with the other types of Wolfpack."""
        return Legwork(self.search)


def _ask(given: tuple[State, Int[Array, ""]], hunter: LearnedHunter) -> Chances:
    return hunter.chances(*given)


def imitator(net: HunterNet | None = None, search: Search = shortest) -> LearnedHunter:
    """H5, with the network of the zoo if none is given."""
    net = net or _from_zoo("wolfpack/H5")
    return LearnedHunter("H5", "imitates H4, by a network", net, greedy=False, search=search)


def by_rewards(net: HunterNet | None = None, search: Search = shortest) -> LearnedHunter:
    """H6, with the network of the zoo if none is given."""
    net = net or _from_zoo("wolfpack/H6")
    return LearnedHunter("H6", "hunts as it learned from rewards", net, greedy=True, search=search)


def _from_zoo(name: str) -> HunterNet:
    return learned(name, _like)


def _like() -> HunterNet:
    return HunterNet(jax.random.key(0))
