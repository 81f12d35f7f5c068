"""Prey that remember the last five frames: a convolutional network and an LSTM (reference rules).

The network is that of the authors' prey without its batch normalisation. A *frame* is what a prey
sees in one step, the patch of `dropin.games.wolfpack.prey`. In every step the LSTM runs over the
last five frames, from a zero state. Frames before the start of an episode are blank: nothing in
them is occupied, and no cell is outside of the grid.
"""

from functools import cache
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin._xla.materialize import materialize
from dropin._xla.random import StepRNG
from dropin._xla.rows import matmul_rows
from dropin.games.wolfpack.prey import (
    NUM_CHANNELS,
    NUM_NETWORKS,
    PATCH_DEPTH,
    PATCH_WIDTH,
    observe_patches,
)
from dropin.games.wolfpack.state import NUM_PREY_ACTIONS, State
from dropin.models.layers import LSTM, Linear, LSTMGates, LSTMState, affine
from dropin.teams.weights import load_weights

__all__ = [
    "NUM_FRAMES",
    "PreyNetwork",
    "RecurrentPrey",
    "init_recurrent_networks",
    "make_recurrent_prey",
    "normalise",
    "unstack",
    "window_values",
]

NUM_FRAMES = 5
"""Number of frames that a prey chooses by: the current one and those before it."""
FIRST_KERNEL, FIRST_CHANNELS, FIRST_POOL = 4, 16, 3
SECOND_KERNEL, SECOND_CHANNELS, SECOND_POOL = 2, 32, 2
HIDDEN_SIZE = 32
NUM_FEATURES = 640
"""Number of outputs of the convolutions: 2 x 10 cells with 32 channels."""
WEIGHTS = Path(__file__).parent / "weights" / "recurrent-prey.safetensors"


class PreyNetwork(eqx.Module):
    """The network of one prey: two convolutions, an LSTM over five frames, a linear layer.

    Convolutions have stride 1 and no padding. Each is followed by max-pooling with stride 1 and a
    ReLU. Their weights have a row for each input of a kernel, in the order (row, column, channel).

    Args:
        key: A random key for the initial weights.
    """

    first: Linear
    second: Linear
    lstm: LSTM
    readout: Linear

    def __init__(self, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        self.first = Linear(NUM_CHANNELS * FIRST_KERNEL**2, FIRST_CHANNELS, key=keys[0])
        self.second = Linear(FIRST_CHANNELS * SECOND_KERNEL**2, SECOND_CHANNELS, key=keys[1])
        self.lstm = LSTM(NUM_FEATURES, HIDDEN_SIZE, key=keys[2])
        self.readout = Linear(HIDDEN_SIZE, NUM_PREY_ACTIONS, key=keys[3])

    def gate_inputs(self, frames: Float[Array, "*n input"]) -> Float[Array, "*n gates"]:
        """Return what frames add to the gates of the LSTM, which does not depend on its state.

        Args:
            frames: Frames as `observe_patches` returns them.
        """
        first = _max_pool(self.first(_first_windows(frames)), FIRST_POOL)
        second = _max_pool(self.second(_second_windows(first)), SECOND_POOL)
        features = jax.nn.relu(second).reshape(*frames.shape[:-1], NUM_FEATURES)
        return affine(features, self.lstm.weight[:NUM_FEATURES], self.lstm.bias)

    def lstm_step(self, gate_inputs: Float[Array, "*n gates"], state: LSTMState) -> LSTMState:
        """Return the state of the LSTM after a frame.

        Args:
            gate_inputs: What the frame adds to the gates, see `gate_inputs`.
            state: The state before, with the same leading axes.
        """
        recurrent = matmul_rows(state.hidden, self.lstm.weight[NUM_FEATURES:])
        return LSTMGates.of(gate_inputs + recurrent).step(state.cell)


def _first_windows(frames: Float[Array, "*n input"]) -> Float[Array, "..."]:
    """Return the inputs of the first convolution."""
    image = frames.reshape(*frames.shape[:-1], NUM_CHANNELS, PATCH_DEPTH, PATCH_WIDTH)
    return _windows(jnp.moveaxis(image, -3, -1), FIRST_KERNEL)


def _second_windows(first: Float[Array, "*n row column channel"]) -> Float[Array, "..."]:
    """Return the inputs of the second convolution, given the first one after its max-pooling."""
    return _windows(jax.nn.relu(first), SECOND_KERNEL)


def _windows(image: Float[Array, "*n row column channel"], kernel: int) -> Float[Array, "..."]:
    """Return the inputs of each output of a convolution, [*n, row, column, input]."""
    return jnp.concatenate(_shifted(image, kernel), axis=-1)


def _shifted(image: Float[Array, "*n row column channel"], kernel: int) -> list[Array]:
    """Return the image shifted by each offset of a square kernel, cut to where all overlap."""
    rows, columns = image.shape[-3] - kernel + 1, image.shape[-2] - kernel + 1
    return [
        image[..., down : down + rows, right : right + columns, :]
        for down in range(kernel)
        for right in range(kernel)
    ]


def _max_pool(image: Float[Array, "*n row column channel"], kernel: int) -> Float[Array, "..."]:
    """Return the largest value under a square kernel with stride 1, by rows and then by columns."""
    rows, columns = image.shape[-3] - kernel + 1, image.shape[-2] - kernel + 1
    result = image[..., :rows, :, :]
    for down in range(1, kernel):
        result = jnp.maximum(result, image[..., down : down + rows, :, :])
    image, result = result, result[..., :columns, :]
    for right in range(1, kernel):
        result = jnp.maximum(result, image[..., right : right + columns, :])
    return result


class RecurrentPrey(eqx.Module):
    """Prey that take the action with the highest value, given the last five frames.

    The choice needs the state of the LSTM after the last four frames, and the next choices need
    those after the last three, two and one. These four states are the memory: the current frame
    then goes through the convolutions once and is added to all of them in one step of the LSTM.
    """

    networks: tuple[PreyNetwork, ...]
    """One network for each of two prey; further prey reuse them in turn."""
    blank: tuple[LSTMState, ...]
    """For each network its states after four, three, two and one blank frames."""

    def __init__(self, networks: PreyNetwork):
        """Prepare prey for acting.

        Args:
            networks: Networks stacked along a leading axis, see `init_recurrent_networks`.
        """
        self.networks = unstack(networks)
        self.blank = tuple(map(_blank_states, self.networks))

    def init_memory(self, num_prey: int) -> LSTMState:
        """Return the memory at the start of an episode, [prey, frame, hidden]."""
        per_prey = [self.blank[index % len(self.blank)] for index in range(num_prey)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *per_prey)

    def act(self, rng: StepRNG, size: int, state: State) -> tuple[Int[Array, " prey"], LSTMState]:
        """Choose the action with the highest value for each prey; nothing is random."""
        del rng
        values, memory = self.q_values(size, state)
        return jnp.argmax(values, axis=1).astype(jnp.int32), memory

    def q_values(self, size: int, state: State) -> tuple[Float[Array, "prey action"], LSTMState]:
        """Return the action values of each prey, and the memory afterwards.

        Args:
            size: Rows and columns of the grid.
            state: The state of the game, with the memory of the prey.
        """
        frames = materialize(observe_patches(size, state))
        values, memories = [], []
        for prey in range(len(frames)):
            network = self.networks[prey % len(self.networks)]
            windows = jax.tree.map(
                lambda leaf, prey=prey: jnp.pad(leaf[prey], ((0, 1), (0, 0))), state.memory
            )
            after = network.lstm_step(network.gate_inputs(frames[prey])[None], windows)
            values.append(network.readout(after.hidden[0]))
            memories.append(jax.tree.map(lambda leaf: leaf[1:], after))
        return jnp.stack(values), jax.tree.map(lambda *leaves: jnp.stack(leaves), *memories)


def unstack(networks: PreyNetwork) -> tuple[PreyNetwork, ...]:
    """Return the networks that are stacked along a leading axis."""
    number = len(networks.readout.bias)
    return tuple(jax.tree.map(lambda leaf, k=k: leaf[k], networks) for k in range(number))


def _blank_states(network: PreyNetwork) -> LSTMState:
    """Return the states of the LSTM after four, three, two and one blank frames."""
    blank = network.gate_inputs(jnp.zeros((1, NUM_CHANNELS * PATCH_DEPTH * PATCH_WIDTH)))
    state, states = network.lstm.init_state(1), []
    for _ in range(NUM_FRAMES - 1):
        state = network.lstm_step(blank, state)
        states.append(state)
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *reversed(states))


def init_recurrent_networks(key: PRNGKeyArray) -> PreyNetwork:
    """Initialise the networks of two prey.

    Returns:
        One network whose arrays have a leading axis for the two prey.
    """
    return eqx.filter_vmap(PreyNetwork)(jax.random.split(key, NUM_NETWORKS))


def normalise(
    networks: PreyNetwork,
    frames: Float[Array, "n frame input"],
    gate_deviation: float = 1.0,
    value_deviation: float = 1.0,
) -> PreyNetwork:
    """Scale and shift every layer so that its outputs have mean 0 and a given deviation.

    For the convolutions this is what batch normalisation does at the start of training. Without it
    the outputs of an untrained network hardly depend on what the prey sees, and the same action is
    the best one nearly everywhere.

    Args:
        networks: Networks stacked along a leading axis.
        frames: Sequences of five frames, over which mean and deviation of each output are taken.
        gate_deviation: Standard deviation of what frames add to the gates of the LSTM. The larger
            it is, the less alike are the values of similar frames.
        value_deviation: Standard deviation of the action values.

    Returns:
        The networks with other weights.
    """

    def one(network: PreyNetwork) -> PreyNetwork:
        inputs = _first_windows(frames)
        first = _normalised(network.first, inputs)
        inputs = _second_windows(_max_pool(first(inputs), FIRST_POOL))
        second = _normalised(network.second, inputs)
        network = eqx.tree_at(lambda net: (net.first, net.second), network, (first, second))
        gates = network.gate_inputs(frames).reshape(-1, 4 * HIDDEN_SIZE)
        mean, deviation = jnp.mean(gates, axis=0), jnp.std(gates, axis=0) / gate_deviation
        weight = network.lstm.weight
        scaled = weight.at[:NUM_FEATURES].divide(deviation[None])
        bias = (network.lstm.bias - mean) / deviation
        network = eqx.tree_at(lambda net: (net.lstm.weight, net.lstm.bias), network, (scaled, bias))
        hidden = _hidden_after(network, network.gate_inputs(frames))
        readout = _normalised(network.readout, hidden, value_deviation)
        return eqx.tree_at(lambda net: net.readout, network, readout)

    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(one, unstack(networks)))


def _normalised(layer: Linear, inputs: Float[Array, "*n input"], deviation: float = 1.0) -> Linear:
    """Return a layer whose outputs for these inputs have mean 0 and this standard deviation."""
    outputs = layer(inputs).reshape(-1, len(layer.bias))
    mean, scale = jnp.mean(outputs, axis=0), jnp.std(outputs, axis=0) / deviation
    weight, bias = layer.weight / scale[None], (layer.bias - mean) / scale
    return eqx.tree_at(lambda layer: (layer.weight, layer.bias), layer, (weight, bias))


def _hidden_after(
    network: PreyNetwork, gate_inputs: Float[Array, "n frame gates"]
) -> Float[Array, "n hidden"]:
    """Return the hidden state of the LSTM after sequences of frames, from a zero state."""
    state = network.lstm.init_state(len(gate_inputs))
    for frame in range(gate_inputs.shape[1]):
        state = network.lstm_step(gate_inputs[:, frame], state)
    return state.hidden


def window_values(
    network: PreyNetwork, frames: Float[Array, "frame input"], times: Int[Array, " frame"]
) -> Float[Array, "window action"]:
    """Return the action values of a prey after each window of five consecutive frames.

    Args:
        network: Its network.
        frames: A sequence of frames. A new episode may start in it.
        times: The time of each frame in its episode.

    Returns:
        The values after frame 5, 6, ... of the sequence.
    """
    gate_inputs = network.gate_inputs(frames)
    blank = network.gate_inputs(jnp.zeros_like(frames[:1]))
    windows = len(frames) - NUM_FRAMES + 1
    last = times[NUM_FRAMES - 1 :]
    zeros = jnp.zeros((windows, HIDDEN_SIZE), frames.dtype)
    state = LSTMState(zeros, zeros)
    for first in range(NUM_FRAMES):
        in_episode = (last >= NUM_FRAMES - 1 - first)[:, None]
        inputs = jnp.where(in_episode, gate_inputs[first : first + windows], blank)
        state = network.lstm_step(inputs, state)
    return network.readout(state.hidden)


@cache
def make_recurrent_prey() -> RecurrentPrey:
    """Return the prey of the zoo with memory, the default prey of the game.

    Raises:
        InputError: If their weights are missing or damaged.
    """
    networks = load_weights(WEIGHTS, "wolfpack/recurrent-prey", _template)
    # Prepared once, even while JAX traces the caller.
    with jax.ensure_compile_time_eval():
        return jax.jit(RecurrentPrey)(networks)


def _template() -> PreyNetwork:
    return init_recurrent_networks(jax.random.key(0))
