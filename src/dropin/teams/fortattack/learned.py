"""Guards and attackers that learned."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.dice import pick
from dropin.games.fortattack.game import SHOOT
from dropin.models.layers import MLP, Linear
from dropin.sparse import where_needed
from dropin.teams.fortattack.view import View
from dropin.teams.learned import learned
from dropin.teams.types import Scene, Type

OWN, OTHER, MESSAGE, UNITS = 10, 10, 32, 64


class Others(eqx.Module):
    """What a network gets of the agents of one side."""

    rows: Float[Array, "*n slot other"]
    there: Bool[Array, "*n slot"]


class Seen(eqx.Module):
    """What a network gets of the plane: all from one agent's own place and heading."""

    own: Float[Array, "*n own"]
    mates: Others
    opponents: Others


def perceive(view: View, sides: tuple[int, ...], side: int) -> Seen:
    """What a network gets of the view of an agent of a side; `sides` are those of all slots."""
    cosine, sine = jnp.cos(view.heading), jnp.sin(view.heading)
    below = view.half_height - view.y
    own = [
        view.x / view.half_width,
        view.y / view.half_height,
        cosine,
        sine,
        view.vx,
        view.vy,
        below * sine - view.x * cosine,
        below * cosine + view.x * sine,
        jnp.sqrt(view.x * view.x + below * below),
        view.fort,
    ]
    turned = view.headings - view.heading
    speed_x, speed_y = view.vxs - view.vx, view.vys - view.vy
    others = [
        view.ahead,
        view.left,
        view.apart,
        jnp.cos(turned),
        jnp.sin(turned),
        speed_x * cosine + speed_y * sine,
        speed_y * cosine - speed_x * sine,
        view.in_laser.astype(jnp.float32),
        view.aimed.astype(jnp.float32),
        view.half_height - view.ys,
    ]

    def of(which: int, there: Bool[Array, " slot"]) -> Others:
        first = sides.index(which)
        rows = slice(first, first + sides.count(which))
        return Others(jnp.stack([each[rows] for each in others], axis=1), there[rows])

    return Seen(jnp.stack(own), of(side, view.mates), of(1 - side, view.opponents))


class FighterNet(eqx.Module):
    """Encodes each other agent alone, takes the largest of mates and of opponents, and decides."""

    mate: Linear
    opponent: Linear
    decide: MLP

    def __init__(self, outputs: int = SHOOT + 1, *, key: PRNGKeyArray):
        one, two, three = jax.random.split(key, 3)
        self.mate = Linear(OTHER, MESSAGE, key=one)
        self.opponent = Linear(OTHER, MESSAGE, key=two)
        self.decide = MLP([OWN + 2 * MESSAGE, UNITS, UNITS, outputs], key=three)

    def __call__(self, seen: Seen) -> Float[Array, "*n output"]:
        """The numbers for the actions of each agent."""
        both = [
            jnp.max(jnp.where(who.there[..., None], jax.nn.relu(layer(who.rows)), 0.0), axis=-2)
            for layer, who in ((self.mate, seen.mates), (self.opponent, seen.opponents))
        ]
        return self.decide(jnp.concatenate([seen.own, *both], axis=-1))


def _like() -> FighterNet:
    return FighterNet(key=jax.random.key(0))


def untrained(name: str, about: str) -> "LearnedFighter":
    """With a network as it is before training."""
    return LearnedFighter(name, about, _like())


def from_zoo(name: str, about: str) -> "LearnedFighter":
    """With the network of the zoo."""
    return LearnedFighter(name, about, learned(f"fortattack/{name}", _like))


class LearnedFighter(Type):
    """A type that a network plays for: actions are drawn by its softmax."""

    net: FighterNet

    def plan(self, scene: Scene, memory: Any) -> tuple[Int[Array, " actor"], Any]:
        """The network is asked for its own alone."""
        ask = _Ask(scene.sides, self.side)
        drawn = jax.vmap(lambda asked, view: where_needed(ask, asked, view, self.net, block=64))
        return drawn(scene.asked, scene.views), memory


@dataclass(frozen=True)
class _Ask:
    sides: tuple[int, ...]
    side: int

    def __call__(self, view: View, net: FighterNet) -> Int[Array, ""]:
        return pick(jax.nn.softmax(net(perceive(view, self.sides, self.side))), view.chance[0])
