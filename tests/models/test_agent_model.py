import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_models import slow_mlp

from dropin.models.agent_model import AgentModel, action_probs

MODEL = AgentModel(
    type_size=6,
    hidden_size=5,
    embedding_size=8,
    readout_size=4,
    num_actions=3,
    key=jax.random.key(0),
)


def slow_logits(model, types):
    """The relational forward model of the agents given, message by message."""
    rows = []
    for j, own in enumerate(types):
        total = np.zeros(8)
        for k, other in enumerate(types):
            if k != j:
                total += slow_mlp(model.block.message, other, own)
        rows.append(slow_mlp(model.readout, slow_mlp(model.block.node, own, total)))
    return np.array(rows)


def draw(seed, slots):
    return np.asarray(jax.random.normal(jax.random.key(seed), (slots, 6)))


def test_the_networks_have_the_given_sizes():
    networks = (MODEL.block.message, MODEL.block.node, MODEL.readout)
    sizes = [[layer.weight.shape for layer in network.layers] for network in networks]
    assert sizes == [[(12, 5), (5, 8)], [(14, 5), (5, 8)], [(8, 4), (4, 3)]]


def test_the_networks_start_with_different_weights():
    first = [leaf for leaf in jax.tree.leaves(MODEL) if leaf.ndim == 2]
    values = np.concatenate([np.ravel(leaf) for leaf in first])
    assert len(np.unique(values)) == len(values)


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
def test_logits_are_those_of_message_passing_one_by_one(slots):
    types = draw(slots, slots)
    logits = MODEL(jnp.asarray(types), jnp.ones(slots, bool))
    np.testing.assert_allclose(logits, slow_logits(MODEL, types), atol=1e-5)


def test_absent_agents_send_no_messages():
    types = draw(9, 4)
    present = np.array([True, False, True, True])
    held = types.copy()
    held[1] = 1e5
    logits = np.asarray(MODEL(jnp.asarray(held), jnp.asarray(present)))
    np.testing.assert_allclose(logits[present], slow_logits(MODEL, types[present]), atol=1e-5)


def test_probabilities_are_the_softmax_of_the_logits():
    logits = np.array([[1.0, 2.0, -3.0], [0.0, 0.0, 0.0], [5.0, 5.0 + np.log(2), -np.inf]])
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(action_probs(jnp.float32(logits)), expected, atol=1e-6)
    np.testing.assert_allclose(action_probs(jnp.float32(logits + 1000)), expected, atol=1e-4)
