"""A forager that learned: H5."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.dice import pick
from dropin.games.lbf.game import LOAD, NOBODY, State
from dropin.models.layers import MLP
from dropin.teams.learned import learned
from dropin.teams.types import Scene, Type

OBJECTS, AGENTS = 3, 5
"""It sees so many objects and agents, itself among them; more are left out."""
INPUTS = 3 * (OBJECTS + AGENTS)
SCALE = 8.0
"""Rows, columns and levels are divided by it."""


def network(key: PRNGKeyArray) -> MLP:
    """A fresh network: logits of the actions."""
    return MLP([INPUTS, 96, 64, LOAD + 1], key=key)


def perceive(state: State) -> Float[Array, "slot input"]:
    """What each agent sees: the objects, itself, then the others who are there, by slot."""
    slots = len(state.agents)
    objects = _first(state.objects, OBJECTS).reshape(-1)
    slot = jnp.arange(slots)

    def own(me: Int[Array, ""]) -> Float[Array, " input"]:
        # The agent itself comes first, and whoever is absent last.
        order = jnp.where(state.present, jnp.where(slot == me, -1, slot), 2 * slots + slot)
        place = jnp.sum(order[None] < order[:, None], axis=1)
        rows = _placed(state.agents, place[None] == slot[:, None])
        return jnp.concatenate([objects, _first(rows, AGENTS).reshape(-1)]).astype(jnp.float32)

    return jax.vmap(own)(slot) / SCALE


def _placed(rows: Int[Array, "n 3"], at: Bool[Array, "place n"]) -> Int[Array, "place 3"]:
    return jnp.sum(jnp.where(at[:, :, None], rows[None], 0), axis=1)


def _first(rows: Int[Array, "n 3"], number: int) -> Int[Array, "number 3"]:
    """The first so many rows, filled up with those of nobody."""
    missing = max(number - len(rows), 0)
    nobody = jnp.broadcast_to(jnp.asarray(NOBODY), (missing, 3))
    return jnp.concatenate([rows, nobody])[:number]


class LearnedForager(Type):
    """A type that a network plays for; it sees the whole grid."""

    net: MLP

    def plan(self, scene: Scene, memory: Any) -> tuple[Int[Array, " actor"], Any]:
        """An action drawn by the network."""
        seen = perceive(scene.state)[scene.first :]
        chances = jax.nn.softmax(self.net(seen), axis=-1)
        return pick(chances, scene.views.chance[:, 0]), memory


def learned_forager() -> LearnedForager:
    """H5 of the zoo."""
    return LearnedForager("H5", "collects as it learned from rewards", learned("lbf/H5", _like))


def _like() -> MLP:
    return network(jax.random.key(0))
