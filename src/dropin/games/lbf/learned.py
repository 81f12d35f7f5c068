"""H5: a teammate whose policy is a network that was trained by reinforcement learning.

The recipe that trains it is `dropin.zoo.lbf_h5`.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.compute_where import compute_where
from dropin._xla.random import sample_categorical
from dropin.games.lbf.game import ABSENT, NUM_ACTIONS, State
from dropin.models.layers import MLP
from dropin.teams.types import PolicyInput, Type
from dropin.teams.weights import load_weights

__all__ = ["INPUT_SIZE", "LearnedForager", "load_h5", "make_network", "network_inputs"]

MAX_OBJECTS, MAX_AGENTS = 3, 5
"""Number of objects and agents (itself included) that the network sees; any more are left out."""
INPUT_SIZE = 3 * (MAX_OBJECTS + MAX_AGENTS)
"""Number of inputs of the network: row, column and level of each object and agent."""
SCALE = 8.0
"""Rows, columns and levels are divided by this number."""
WEIGHTS = Path(__file__).parent / "weights" / "H5.safetensors"


class LearnedForager(Type):
    """A type that samples its actions from a network; it sees the whole grid."""

    network: MLP
    """Maps the network inputs of an agent to the logits of its actions."""

    def plan(self, inputs: PolicyInput, memory: PyTree) -> tuple[Int[Array, " actor"], PyTree]:
        """Return the action of each active actor; the network is evaluated for no others."""
        rows = network_inputs(inputs.state)[inputs.first :]
        actions = jax.vmap(
            lambda active, *row: compute_where(_sample_action, active, row, self.network, block=64)
        )(inputs.active, rows, inputs.views.uniform[:, 0])
        return actions, memory


def _sample_action(
    given: tuple[Float[Array, " input"], Float[Array, ""]], network: MLP
) -> Int[Array, ""]:
    """Sample the action of one agent from its network inputs and a uniform number."""
    inputs, uniform = given
    return sample_categorical(jax.nn.softmax(network(inputs)), uniform)


def make_network(key: PRNGKeyArray) -> MLP:
    """Return a network with random weights that maps network inputs to action logits."""
    return MLP([INPUT_SIZE, 96, 64, NUM_ACTIONS], key=key)


def load_h5() -> LearnedForager:
    """Return H5 with the weights that come with the package.

    Raises:
        InputError: If the weights are missing or damaged.
    """
    network = load_weights(WEIGHTS, "lbf/H5", _network_template)
    return LearnedForager("H5", "collects as it learned from rewards", network)


def _network_template() -> MLP:
    return make_network(jax.random.key(0))


def network_inputs(state: State) -> Float[Array, "slot input"]:
    """Return the inputs of the network for the agent in each slot.

    Returns:
        Row, column and level of each object, of the agent itself, and of the other agents that
        are present in the order of their slots, scaled. Missing ones are (-1, -1, 0), scaled.
    """
    slots = len(state.agents)
    objects = _first_rows(state.objects, MAX_OBJECTS).reshape(-1)
    slot = jnp.arange(slots)

    def inputs_of(me: Int[Array, ""]) -> Float[Array, " input"]:
        # The agent itself comes first and absent agents come last.
        order = jnp.where(state.present, jnp.where(slot == me, -1, slot), 2 * slots + slot)
        rank = jnp.sum(order[None] < order[:, None], axis=1)
        agents = _permute_rows(state.agents, rank[None] == slot[:, None])
        rows = jnp.concatenate([objects, _first_rows(agents, MAX_AGENTS).reshape(-1)])
        return rows.astype(jnp.float32)

    return jax.vmap(inputs_of)(slot) / SCALE


def _permute_rows(
    rows: Int[Array, "n 3"], permutation: Bool[Array, "new old"]
) -> Int[Array, "new 3"]:
    """Return the rows in another order, given as a permutation matrix."""
    return jnp.sum(jnp.where(permutation[:, :, None], rows[None], 0), axis=1)


def _first_rows(rows: Int[Array, "n 3"], count: int) -> Int[Array, "count 3"]:
    """Return the first `count` rows, padded with rows of absent agents or objects."""
    missing = max(count - len(rows), 0)
    padding = jnp.broadcast_to(jnp.asarray(ABSENT), (missing, 3))
    return jnp.concatenate([rows, padding])[:count]
