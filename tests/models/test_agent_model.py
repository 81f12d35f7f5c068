import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin.models.agent_model import AgentModel, action_chances
from dropin.models.type_inference import TypeNetwork


def relu(x):
    return np.maximum(x, 0)


def linear(layer, x):
    return x @ np.asarray(layer.weight) + np.asarray(layer.bias)


def mlp(network, x):
    for number, layer in enumerate(network.layers):
        x = linear(layer, relu(x) if number else x)
    return x


def slow_logits(model, types):
    """The relational forward model of the agents given, message by message."""
    answers = []
    for j, mine in enumerate(types):
        total = np.zeros(model.block.message.layers[-1].bias.shape)
        for k, theirs in enumerate(types):
            if k != j:
                total = total + mlp(model.block.message, np.concatenate([theirs, mine]))
        answers.append(mlp(model.readout, mlp(model.block.node, np.concatenate([mine, total]))))
    return np.array(answers)


MODEL = AgentModel(types=6, hidden=5, embedding=8, readout=4, actions=3, key=jax.random.key(0))


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
def test_logits_are_those_of_message_passing_one_by_one(slots):
    types = np.asarray(jax.random.normal(jax.random.key(slots), (slots, 6)))
    fast = MODEL(jnp.asarray(types), jnp.ones(slots, bool))
    assert np.asarray(fast) == pytest.approx(slow_logits(MODEL, types), abs=1e-5)


def test_absent_agents_send_no_messages():
    types = np.asarray(jax.random.normal(jax.random.key(9), (4, 6)))
    present = np.array([True, False, True, True])
    held = types.copy()
    held[1] = 1e5
    fast = np.asarray(MODEL(jnp.asarray(held), jnp.asarray(present)))
    assert fast[present] == pytest.approx(slow_logits(MODEL, types[present]), abs=1e-5)


def test_chances_add_up_to_one():
    chances = action_chances(jnp.array([[1.0, 2.0, 30.0], [0.0, 0.0, 0.0]]))
    assert chances.sum(axis=1).tolist() == pytest.approx([1, 1])
    assert chances[1].tolist() == pytest.approx([1 / 3] * 3)


NETWORK = TypeNetwork(inputs=5, units=6, memory=7, outputs=4, key=jax.random.key(1))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def slow_type(network, steps):
    """The type vector of one agent after these inputs, from a zero memory, gate by gate."""
    hidden = cell = np.zeros(7)
    weight, bias = np.asarray(network.lstm.weight), np.asarray(network.lstm.bias)
    for x in steps:
        y = linear(network.second, relu(linear(network.first, x)))
        enter, forget, new, show = np.split(np.concatenate([y, hidden]) @ weight + bias, 4)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
        hidden = sigmoid(show) * np.tanh(cell)
    return linear(network.last, relu(hidden))


def test_type_vectors_remember_since_the_arrival_and_no_further():
    random = np.random.default_rng(0)
    agents = random.normal(size=(6, 3, 2)).astype(np.float32)
    shared = random.normal(size=(6, 3)).astype(np.float32)
    arrived = np.zeros((6, 3), bool)
    arrived[0] = True
    arrived[3, 1] = True
    memory = NETWORK.start(3)
    since = [0, 0, 0]
    for t in range(6):
        types, memory = NETWORK(memory, *map(jnp.asarray, (agents[t], shared[t], arrived[t])))
        for slot in range(3):
            since[slot] = t if arrived[t, slot] else since[slot]
            steps = [
                np.concatenate([agents[k, slot], shared[k]]) for k in range(since[slot], t + 1)
            ]
            assert np.asarray(types[slot]) == pytest.approx(slow_type(NETWORK, steps), abs=1e-5)
