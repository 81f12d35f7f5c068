"""Guards and attackers that are played by a neural network."""

from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.compute_where import compute_where
from dropin._xla.random import sample_categorical, subkeys
from dropin.games.fortattack.observer import View
from dropin.games.fortattack.state import SHOOT
from dropin.models.layers import MLP, Linear
from dropin.teams.types import PolicyInput, Type
from dropin.teams.weights import load_weights

__all__ = [
    "FighterNetwork",
    "LearnedFighter",
    "NetworkInput",
    "OtherAgents",
    "encode_view",
    "load_fighter",
    "untrained_fighter",
]

WEIGHTS = Path(__file__).parent / "weights"
OWN_SIZE, OTHER_SIZE = 10, 10
"""Number of features of the agent itself and of each other agent."""
EMBEDDING_SIZE, HIDDEN_SIZE = 32, 64


class OtherAgents(eqx.Module):
    """The features of the agents of one side, as one agent sees them."""

    features: Float[Array, "*n slot other"]
    present: Bool[Array, "*n slot"]
    """Which of them are present; never the agent itself."""


class NetworkInput(eqx.Module):
    """A view as features, all relative to the agent's position and heading."""

    own: Float[Array, "*n own"]
    """Features of the agent itself."""
    mates: OtherAgents
    opponents: OtherAgents


def encode_view(view: View, sides: tuple[int, ...], side: int) -> NetworkInput:
    """Return the features that a network gets of an agent's view.

    Args:
        view: The view of one agent.
        sides: The side of every slot; the slots of a side are neighbours.
        side: The side of the agent.
    """
    cosine, sine = jnp.cos(view.heading), jnp.sin(view.heading)
    below_fort = view.half_height - view.y
    own = [
        view.x / view.half_width,
        view.y / view.half_height,
        cosine,
        sine,
        view.vx,
        view.vy,
        # The centre of the fort: ahead, to the left, and how far away.
        below_fort * sine - view.x * cosine,
        below_fort * cosine + view.x * sine,
        jnp.sqrt(view.x * view.x + below_fort * below_fort),
        view.fort_radius,
    ]
    cosines, sines = jnp.cos(view.headings), jnp.sin(view.headings)
    relative_vx, relative_vy = view.vxs - view.vx, view.vys - view.vy
    others = [
        view.ahead,
        view.left,
        view.distance,
        # Cosine and sine of the angle between the two headings.
        cosines * cosine + sines * sine,
        sines * cosine - cosines * sine,
        relative_vx * cosine + relative_vy * sine,
        relative_vy * cosine - relative_vx * sine,
        view.in_laser.astype(jnp.float32),
        view.in_laser_of.astype(jnp.float32),
        view.half_height - view.ys,
    ]

    def agents_of(which: int, present: Bool[Array, " slot"]) -> OtherAgents:
        first = sides.index(which)
        rows = slice(first, first + sides.count(which))
        return OtherAgents(jnp.stack([each[rows] for each in others], axis=1), present[rows])

    return NetworkInput(
        jnp.stack(own), agents_of(side, view.mates), agents_of(1 - side, view.opponents)
    )


class FighterNetwork(eqx.Module):
    """Embeds each other agent, takes the maximum over mates and over opponents, and decides.

    The same weights serve any number of agents. The names of the fields are those of the arrays in
    the weight files.

    Args:
        outputs: Number of outputs: one for each action by default.
        key: A random key for the initial weights.
    """

    mate: Linear
    opponent: Linear
    decide: MLP

    def __init__(self, outputs: int = SHOOT + 1, *, key: PRNGKeyArray):
        mate_key, opponent_key, decide_key = subkeys(key, 3)
        self.mate = Linear(OTHER_SIZE, EMBEDDING_SIZE, key=mate_key)
        self.opponent = Linear(OTHER_SIZE, EMBEDDING_SIZE, key=opponent_key)
        sizes = [OWN_SIZE + 2 * EMBEDDING_SIZE, HIDDEN_SIZE, HIDDEN_SIZE, outputs]
        self.decide = MLP(sizes, key=decide_key)

    def __call__(self, inputs: NetworkInput) -> Float[Array, "*n output"]:
        """Return the outputs for each agent: by default the logits of its actions."""
        pooled = [
            jnp.max(
                jnp.where(agents.present[..., None], jax.nn.relu(layer(agents.features)), 0.0),
                axis=-2,
            )
            for layer, agents in ((self.mate, inputs.mates), (self.opponent, inputs.opponents))
        ]
        return self.decide(jnp.concatenate([inputs.own, *pooled], axis=-1))


class LearnedFighter(Type):
    """A guard or attacker whose actions are sampled from the softmax of a network."""

    network: FighterNetwork

    def plan(self, inputs: PolicyInput, memory: PyTree) -> tuple[Int[Array, " actor"], PyTree]:
        """Return the action of each active actor; the network is evaluated for no others."""
        # The compiler encodes the views once for all types of a side.
        encode = partial(encode_view, sides=inputs.sides, side=self.side)
        given = (jax.vmap(encode)(inputs.views), inputs.views.uniform[:, 0])
        actions = jax.vmap(
            lambda active, given: compute_where(
                _sample_action, active, given, self.network, block=64
            )
        )(inputs.active, given)
        return actions, memory


def _sample_action(
    given: tuple[NetworkInput, Float[Array, ""]], network: FighterNetwork
) -> Int[Array, ""]:
    """Sample the action of one agent from its view, encoded, and a uniform number."""
    inputs, uniform = given
    return sample_categorical(jax.nn.softmax(network(inputs)), uniform)


def _build_network() -> FighterNetwork:
    return FighterNetwork(key=jax.random.key(0))


def untrained_fighter(name: str, summary: str) -> LearnedFighter:
    """Return a guard with the initial weights of a network, always the same ones.

    Args:
        name: The name of the type.
        summary: What it does, in one line.
    """
    return LearnedFighter(name, summary, _build_network())


def load_fighter(name: str, summary: str) -> LearnedFighter:
    """Return a guard with the weights that come with the package.

    Args:
        name: Name of the type, as `G4`.
        summary: One line that says what the type does.

    Raises:
        InputError: If the weights are missing or damaged.
    """
    path = WEIGHTS / f"{name}.safetensors"
    return LearnedFighter(name, summary, load_weights(path, f"fortattack/{name}", _build_network))
