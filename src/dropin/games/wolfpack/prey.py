"""How prey act: the protocol of their policies, random prey, and prey without memory that learned.

A learned prey sees a patch of the grid in front of it, rotated with the prey: its own row of cells
and the eight rows ahead, up to eight cells to either side, as in the authors' program. (The main
text of the paper says that prey see a limited patch ahead of them; the 17x25 cells around the prey
in the appendix would cover nearly the whole grid.) `LearnedPrey` have a small network without
memory; they were the prey of version 0.1. The default prey of the game, in
`dropin.games.wolfpack.recurrent_prey`, see the same patch.
"""

from pathlib import Path
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.random import StepRNG, uniform_to_index
from dropin.games.base import as_float
from dropin.games.wolfpack.state import NUM_PREY_ACTIONS, State
from dropin.models.layers import MLP
from dropin.teams.weights import load_weights

__all__ = [
    "NUM_PATCH_CELLS",
    "PATCH_DEPTH",
    "PATCH_SIDE",
    "PATCH_WIDTH",
    "RANDOM_ACTION_PROB",
    "LearnedPrey",
    "PreyPolicy",
    "RandomPrey",
    "fast_q_values",
    "init_networks",
    "learned_prey",
    "observe_patches",
    "q_values",
]

PATCH_DEPTH = 9
"""Rows of a patch: the prey's own row and those ahead."""
PATCH_SIDE = 8
"""Columns of a patch to either side of the prey."""
PATCH_WIDTH = 2 * PATCH_SIDE + 1
NUM_PATCH_CELLS = PATCH_DEPTH * PATCH_WIDTH
NUM_CHANNELS = 3
"""Per cell of a patch: whether it holds a hunter, holds a prey, or is outside of the grid."""
HIDDEN_SIZE = 64
NUM_NETWORKS = 2
"""Number of trained networks, one for each of two prey."""
RANDOM_ACTION_PROB = 0.1
"""Probability with which a prey without memory takes a random action instead of its best one.
Without it these prey are hardly ever caught."""
WEIGHTS = Path(__file__).parent / "weights" / "prey.safetensors"


@runtime_checkable
class PreyPolicy(Protocol):
    """How the prey choose their actions."""

    def init_memory(self, num_prey: int) -> PyTree:
        """Return the memory of the prey at the start of an episode, a pytree."""
        ...

    def act(self, rng: StepRNG, size: int, state: State) -> tuple[Int[Array, " prey"], PyTree]:
        """Choose an action for each prey.

        Args:
            rng: Random numbers of this step.
            size: Rows and columns of the grid.
            state: The state of the game; `state.memory` is the memory of the prey.

        Returns:
            The actions, and the memory afterwards.
        """
        ...


class RandomPrey(eqx.Module):
    """Prey that choose uniformly among all actions."""

    def init_memory(self, num_prey: int) -> tuple[()]:
        """Return an empty memory."""
        del num_prey
        return ()

    def act(self, rng: StepRNG, size: int, state: State) -> tuple[Int[Array, " prey"], tuple[()]]:
        """Draw an action for each prey."""
        del size
        uniform = rng.uniform(state.prey.shape[0])
        return uniform_to_index(uniform, jnp.full(uniform.shape, NUM_PREY_ACTIONS)), ()


class LearnedPrey(eqx.Module):
    """Prey that take the action with the highest value, or now and then a random one."""

    networks: MLP
    """The networks of two prey, stacked along a leading axis, see `init_networks`."""
    random_action_prob: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)
    """Probability with which a prey takes a random action in a step."""

    def init_memory(self, num_prey: int) -> tuple[()]:
        """Return an empty memory."""
        del num_prey
        return ()

    def act(self, rng: StepRNG, size: int, state: State) -> tuple[Int[Array, " prey"], tuple[()]]:
        """Choose the action with the highest value, or a random one, for each prey."""
        values = fast_q_values(self.networks, size, state)
        best = jnp.argmax(values, axis=1).astype(jnp.int32)
        num_prey = len(best)
        random_actions = rng.integers(0, NUM_PREY_ACTIONS - 1, num_prey)
        is_random = rng.uniform(num_prey) < self.random_action_prob
        return jnp.where(is_random, random_actions, best), ()


def learned_prey() -> LearnedPrey:
    """Return the prey of the zoo without memory, those of version 0.1.

    Raises:
        InputError: If their weights are missing or damaged.
    """
    networks = load_weights(WEIGHTS, "wolfpack/prey", _template)
    return LearnedPrey(networks, RANDOM_ACTION_PROB)


def _template() -> MLP:
    return init_networks(jax.random.key(0))


def init_networks(key: PRNGKeyArray) -> MLP:
    """Initialise the networks of two prey, each from a patch to the values of the actions.

    Returns:
        One MLP whose arrays have a leading axis for the two networks.
    """
    sizes = [NUM_CHANNELS * NUM_PATCH_CELLS, HIDDEN_SIZE, HIDDEN_SIZE, NUM_PREY_ACTIONS]
    init = eqx.filter_vmap(lambda key: MLP(sizes, key=key))
    return init(jax.random.split(key, NUM_NETWORKS))


def q_values(networks: MLP, patches: Float[Array, "prey input"]) -> Float[Array, "prey action"]:
    """Return the action values of each prey.

    Args:
        networks: The networks of two prey; further prey reuse them in turn.
        patches: What each prey sees, see `observe_patches`.
    """
    per_prey = _networks_per_prey(networks, len(patches))
    return eqx.filter_vmap(lambda network, patch: network(patch))(per_prey, patches)


def _networks_per_prey(networks: MLP, num_prey: int) -> MLP:
    if num_prey == NUM_NETWORKS:
        return networks
    index = np.arange(num_prey) % NUM_NETWORKS
    return jax.tree.map(lambda leaf: leaf[index], networks)


def fast_q_values(networks: MLP, size: int, state: State) -> Float[Array, "prey action"]:
    """Return what `q_values` returns for the patches of a state, without building the patches.

    Few cells of a patch hold anything, and those on the grid form a rectangle. So the first layer
    is a sum of a few rows of its weights and of differences of their cumulative sums.

    Args:
        networks: The networks of two prey; further prey reuse them in turn.
        size: Rows and columns of the grid.
        state: The state of the game.
    """
    per_prey = _networks_per_prey(networks, len(state.prey))
    hunters = _patch_index(state, state.hunters, state.present)
    prey = _patch_index(state, state.prey, ~state.captured)
    # Cells between each prey and the edges of the grid: ahead, to its right, to its left.
    last = size - 1 - state.prey
    to_edges = jnp.stack([state.prey[:, 0], last[:, 1], last[:, 0], state.prey[:, 1]], axis=1)
    directions = (state.facing[:, None] + np.array([0, 1, 3])[None]) % 4
    room = jnp.take_along_axis(to_edges, directions, axis=1)

    def values(network: MLP, hunters: Array, prey: Array, room: Array) -> Array:
        first = network.layers[0]
        channels = first.weight.reshape(NUM_CHANNELS, NUM_PATCH_CELLS, HIDDEN_SIZE)
        total = first.bias
        for weights, indices in zip(channels, (hunters, prey), strict=False):
            padded = jnp.pad(weights, ((0, 1), (0, 0)))  # The last row is for what is not seen.
            for index in indices:
                total = total + padded.at[index].get(mode="promise_in_bounds")
        return network.after_first_layer(total + _outside_sum(channels[2], room))

    return eqx.filter_vmap(values)(per_prey, hunters, prey, room)


def _outside_sum(
    weights: Float[Array, "cell hidden"], room: Int[Array, " 3"]
) -> Float[Array, " hidden"]:
    """Return the sum of the weights of all cells of a patch that are outside of the grid.

    Args:
        weights: Weights of each cell of the patch.
        room: Number of cells on the grid ahead, to the right and to the left of the prey.
    """
    by_row = np.tri(PATCH_DEPTH, dtype=np.float32)
    by_column = np.tri(PATCH_WIDTH + 1, PATCH_WIDTH, -1, dtype=np.float32)
    grid = weights.reshape(PATCH_DEPTH, PATCH_WIDTH, HIDDEN_SIZE)
    sums = jnp.einsum("dr,wc,rch->dwh", by_row, by_column, grid)
    depth = jnp.minimum(room[0], PATCH_DEPTH - 1)
    right = PATCH_SIDE + 1 + jnp.minimum(room[1], PATCH_SIDE)
    left = PATCH_SIDE - jnp.minimum(room[2], PATCH_SIDE)
    return sums[-1, -1] - (sums[depth, right] - sums[depth, left])


def observe_patches(size: int, state: State) -> Float[Array, "prey input"]:
    """Return what each prey sees.

    Captured prey are not visible, not even to themselves.

    Args:
        size: Rows and columns of the grid.
        state: The state of the game.

    Returns:
        For each prey its patch as three channels, flattened: hunters, prey, outside of the grid.
    """
    hunters = _occupied(state, state.hunters, state.present)
    prey = _occupied(state, state.prey, ~state.captured)
    return jnp.concatenate([hunters, prey, _outside(size, state)], axis=1).astype(jnp.float32)


def _occupied(
    state: State, cells: Int[Array, "n 2"], visible: Bool[Array, " n"]
) -> Bool[Array, "prey cell"]:
    """Return which cells of each prey's patch are among the given visible cells."""
    index = _patch_index(state, cells, visible)
    return jnp.any(index[:, :, None] == jnp.arange(NUM_PATCH_CELLS)[None, None], axis=1)


def _patch_index(
    state: State, cells: Int[Array, "n 2"], visible: Bool[Array, " n"]
) -> Int[Array, "prey n"]:
    """Return the index of each cell in each prey's patch; `NUM_PATCH_CELLS` if it is not seen."""
    ahead, aside = _to_prey_frame(state.facing, cells[None] - state.prey[:, None])
    inside = (ahead >= 0) & (ahead < PATCH_DEPTH) & (jnp.abs(aside) <= PATCH_SIDE) & visible[None]
    return jnp.where(inside, ahead * PATCH_WIDTH + aside + PATCH_SIDE, NUM_PATCH_CELLS)


def _to_prey_frame(
    facing: Int[Array, " prey"], offset: Int[Array, "prey n 2"]
) -> tuple[Int[Array, "prey n"], Int[Array, "prey n"]]:
    """Rotate offsets (down, right) on the grid into offsets (ahead, to the right) of each prey."""
    down, right = offset[..., 0], offset[..., 1]
    direction = facing[:, None]
    ahead = jnp.where(direction % 2 == 0, -down, right)
    aside = jnp.where(direction % 2 == 0, right, down)
    reversed_ = direction >= 2
    return jnp.where(reversed_, -ahead, ahead), jnp.where(reversed_, -aside, aside)


def _outside(size: int, state: State) -> Bool[Array, "prey cell"]:
    """Return which cells of each prey's patch are outside of the grid."""
    ahead, aside = np.divmod(np.arange(NUM_PATCH_CELLS), PATCH_WIDTH)
    offsets = jnp.asarray(np.stack([-ahead, aside - PATCH_SIDE], axis=1))[None]
    # The inverse of the rotation in `_to_prey_frame`.
    down, right = offsets[..., 0], offsets[..., 1]
    direction = state.facing[:, None]
    row = jnp.where(direction % 2 == 0, down, right)
    column = jnp.where(direction % 2 == 0, right, -down)
    sign = jnp.where(direction >= 2, -1, 1)
    row = state.prey[:, :1] + sign * row
    column = state.prey[:, 1:] + sign * column
    return (row < 0) | (row >= size) | (column < 0) | (column >= size)
