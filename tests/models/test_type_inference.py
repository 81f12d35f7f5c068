import jax
import jax.numpy as jnp
import numpy as np
from slow_models import slow_linear, slow_mlp, slow_relu

from dropin.models.layers import LSTMState
from dropin.models.type_inference import FeedforwardTypeNetwork, TypeNetwork

SIZES = {"input_size": 5, "hidden_size": 6, "lstm_size": 7, "output_size": 4}
NETWORK = TypeNetwork(**SIZES, key=jax.random.key(1))
FEEDFORWARD = FeedforwardTypeNetwork(**SIZES, key=jax.random.key(2))
SLOTS = 3


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def slow_type(network, steps):
    """The type vector of one agent after these inputs, from a zero memory, gate by gate."""
    hidden = cell = np.zeros(7)
    for x in steps:
        y = slow_linear(network.second, slow_relu(slow_linear(network.first, x)))
        gates = slow_linear(network.lstm, np.concatenate([y, hidden]))
        input_gate, forget_gate, candidate, output_gate = np.split(gates, 4)
        cell = sigmoid(forget_gate) * cell + sigmoid(input_gate) * np.tanh(candidate)
        hidden = sigmoid(output_gate) * np.tanh(cell)
    return slow_linear(network.last, slow_relu(hidden))


def observations(steps):
    """Agent features, two for each slot, and three shared features, at each step."""
    random = np.random.default_rng(0)
    agents = random.normal(size=(steps, SLOTS, 2)).astype(np.float32)
    return agents, random.normal(size=(steps, 3)).astype(np.float32)


def filled(value):
    return LSTMState(jnp.full((SLOTS, 7), value), jnp.full((SLOTS, 7), value))


def test_the_memory_starts_at_zero():
    memory = NETWORK.init_memory(SLOTS)
    for rows in (memory.hidden, memory.cell):
        assert rows.shape == (SLOTS, 7)
        assert not rows.any()


def test_type_vectors_remember_since_the_arrival_and_no_further():
    agents, shared = observations(6)
    arrived = np.zeros((6, SLOTS), bool)
    arrived[0] = True
    arrived[3, 1] = True
    memory = filled(jnp.nan)  # Left by agents of an earlier episode.
    since = [0] * SLOTS
    for t in range(6):
        types, memory = NETWORK(memory, *map(jnp.asarray, (agents[t], shared[t], arrived[t])))
        for slot in range(SLOTS):
            since[slot] = t if arrived[t, slot] else since[slot]
            steps = [
                np.concatenate([agents[k, slot], shared[k]]) for k in range(since[slot], t + 1)
            ]
            np.testing.assert_allclose(types[slot], slow_type(NETWORK, steps), atol=1e-5)


def test_no_gradient_reaches_back_beyond_an_arrival():
    agents, shared = observations(1)
    arrived = jnp.array([True, False, True])

    def total(memory):
        types, _ = NETWORK(memory, jnp.asarray(agents[0]), jnp.asarray(shared[0]), arrived)
        return jnp.sum(types)

    gradient = jax.grad(total)(filled(0.1))
    for rows in (gradient.hidden, gradient.cell):
        assert not rows[arrived].any()
        assert rows[~arrived].any()


def test_type_vectors_without_memory_depend_on_the_observation_alone():
    assert FEEDFORWARD.init_memory(SLOTS) is None
    agents, shared = observations(2)
    for t in range(2):
        expected = [slow_mlp(FEEDFORWARD.layers, row, shared[t]) for row in agents[t]]
        for arrived in (jnp.zeros(SLOTS, bool), jnp.ones(SLOTS, bool)):
            types, memory = FEEDFORWARD(
                None, jnp.asarray(agents[t]), jnp.asarray(shared[t]), arrived
            )
            assert memory is None
            np.testing.assert_allclose(types, expected, atol=1e-5)


def test_without_memory_the_lstm_is_replaced_by_a_layer_of_its_size():
    sizes = [layer.weight.shape for layer in FEEDFORWARD.layers.layers]
    assert sizes == [(5, 6), (6, 6), (6, 7), (7, 4)]
