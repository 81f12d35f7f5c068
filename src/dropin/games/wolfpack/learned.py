"""Learned hunters: H5 imitates teammate-aware hunters, H6 was trained by deep Q-learning.

The recipes that train them are `dropin.zoo.wolfpack_h5` and `dropin.zoo.wolfpack_h6`.
"""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.compute_where import compute_where
from dropin.games.wolfpack.heuristics import ActionProbs, ExecutePlan, Plan, certain
from dropin.games.wolfpack.search import Search, shortest_path_search
from dropin.games.wolfpack.state import NUM_ACTIONS, State
from dropin.models.layers import MLP
from dropin.models.relational import RelationalBlock
from dropin.teams.types import Execute, PolicyInput, Type
from dropin.teams.weights import load_weights

__all__ = ["HunterNetwork", "LearnedHunter", "make_h5", "make_h6", "node_features"]

SCALE = 10.0
"""Rows and columns are divided by this number."""
NUM_NODE_FEATURES = 8
WEIGHTS = Path(__file__).parent / "weights"


class HunterNetwork(eqx.Module):
    """A relational network over all hunters and prey with an output per action of each hunter."""

    first: RelationalBlock
    second: RelationalBlock
    readout: MLP

    def __init__(self, key: PRNGKeyArray):
        keys = jax.random.split(key, 5)
        self.first = RelationalBlock(NUM_NODE_FEATURES, 60, 50, keys=(keys[0], keys[1]))
        self.second = RelationalBlock(50, 40, 30, keys=(keys[2], keys[3]))
        self.readout = MLP([30, 35, NUM_ACTIONS], key=keys[4])

    def __call__(
        self, state: State, slots: Int[Array, " wanted"] | None = None
    ) -> Float[Array, "wanted action"]:
        """Return the outputs for the hunters in the given slots.

        Args:
            state: The state of the game.
            slots: The slots to compute outputs for; all by default.

        Returns:
            Logits (H5) or action values (H6).
        """
        wanted = jnp.arange(len(state.hunters)) if slots is None else slots
        nodes = node_features(state)
        present = jnp.concatenate([state.present, jnp.ones(len(state.prey), bool)])
        hidden = jax.nn.relu(self.first(nodes, present))
        return self.readout(jax.nn.relu(self.second(hidden, present, wanted)))


def node_features(state: State) -> Float[Array, "node feature"]:
    """Return the inputs of the network, one node per hunter and then one per prey.

    Returns:
        Scaled row and column, whether it is a hunter, whether it is a prey, and the direction that
        a prey faces, one-hot.
    """
    cells = jnp.concatenate([state.hunters, state.prey]).astype(jnp.float32) / SCALE
    is_prey = jnp.arange(len(cells)) >= len(state.hunters)
    facing = (state.facing[:, None] == jnp.arange(4)[None]).astype(jnp.float32)
    facing = jnp.concatenate([jnp.zeros((len(state.hunters), 4)), facing])
    kind = jnp.stack([~is_prey, is_prey], axis=1).astype(jnp.float32)
    return jnp.concatenate([cells, kind, facing], axis=1)


class LearnedHunter(Type):
    """A type whose policy is a network."""

    network: HunterNetwork
    greedy: bool = eqx.field(static=True)
    """Whether it takes the action with the highest output; otherwise it samples by the softmax."""
    search: Search = eqx.field(static=True)
    """The search of the other types of the pool; with the same one, plans are executed together."""

    def plan(self, inputs: PolicyInput, memory: PyTree) -> tuple[Plan, PyTree]:
        """Return the plan of each actor; the network runs for active actors only."""
        slots = jnp.arange(inputs.first, inputs.first + len(inputs.agent_seed))
        probs = jax.vmap(
            lambda active, slot: compute_where(
                _action_probs, active, (inputs.state, slot), self, block=32
            )
        )(inputs.active, slots)
        return jax.vmap(Plan.without_goal)(probs), memory

    def action_probs(self, state: State, slot: Int[Array, ""]) -> ActionProbs:
        """Return the probability of each action of the hunter in a slot.

        Args:
            state: The state of the game.
            slot: The hunter's slot.
        """
        outputs = self.network(state, slot[None])[0]
        return certain(jnp.argmax(outputs)) if self.greedy else jax.nn.softmax(outputs)

    @property
    def execute(self) -> Execute:
        """The function that turns plans into actions."""
        return ExecutePlan(self.search)


def _action_probs(row: tuple[State, Int[Array, ""]], hunter: LearnedHunter) -> ActionProbs:
    return hunter.action_probs(*row)


def make_h5(
    network: HunterNetwork | None = None, search: Search = shortest_path_search
) -> LearnedHunter:
    """Return H5, which imitates teammate-aware hunters.

    Args:
        network: Its network; the one that comes with the package by default.
        search: The search of the other types of the pool.

    Raises:
        InputError: If the weights are missing or damaged.
    """
    network = network or _load_network("H5")
    return LearnedHunter("H5", "imitates H4, by a network", network, greedy=False, search=search)


def make_h6(
    network: HunterNetwork | None = None, search: Search = shortest_path_search
) -> LearnedHunter:
    """Return H6, which was trained by deep Q-learning.

    Args:
        network: Its network; the one that comes with the package by default.
        search: The search of the other types of the pool.

    Raises:
        InputError: If the weights are missing or damaged.
    """
    network = network or _load_network("H6")
    summary = "hunts as it learned from rewards"
    return LearnedHunter("H6", summary, network, greedy=True, search=search)


def _load_network(name: str) -> HunterNetwork:
    return load_weights(WEIGHTS / f"{name}.safetensors", f"wolfpack/{name}", _network_template)


def _network_template() -> HunterNetwork:
    return HunterNetwork(jax.random.key(0))
