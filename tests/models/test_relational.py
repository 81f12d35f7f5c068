import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_models import slow_mlp

from dropin.models.relational import RelationalBlock

INPUT, HIDDEN, OUTPUT = 6, 5, 4
KEYS = (jax.random.key(0), jax.random.key(1))
BLOCK = RelationalBlock(INPUT, HIDDEN, OUTPUT, keys=KEYS)
STAR = RelationalBlock(INPUT, HIDDEN, OUTPUT, keys=KEYS, graph="star")


def draw(seed, nodes):
    return np.asarray(jax.random.normal(jax.random.key(seed), (nodes, INPUT)))


def slow_block(nodes, present, joined=lambda j, k: True):
    """Message by message."""
    rows = []
    for j, receiver in enumerate(nodes):
        senders = [nodes[k] for k in np.flatnonzero(present) if k != j and joined(j, k)]
        messages = [slow_mlp(BLOCK.message, sender, receiver) for sender in senders]
        rows.append(slow_mlp(BLOCK.node, receiver, sum(messages, np.zeros(OUTPUT))))
    return np.array(rows)


@pytest.mark.parametrize(
    "present", [[1], [1, 1], [1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0]]
)
def test_a_node_gets_the_sum_of_the_messages_of_all_others_that_are_present(present):
    present = np.array(present, bool)
    nodes = draw(len(present), len(present))
    found = BLOCK(jnp.asarray(nodes), jnp.asarray(present))
    np.testing.assert_allclose(found, slow_block(nodes, present), atol=1e-5)


def test_only_the_requested_nodes_are_computed_in_the_requested_order():
    nodes, present = draw(1, 4), np.array([True, False, True, True])
    receivers = np.array([3, 1, 0, 3])
    found = BLOCK(jnp.asarray(nodes), jnp.asarray(present), jnp.asarray(receivers))
    np.testing.assert_allclose(found, slow_block(nodes, present)[receivers], atol=1e-5)


def test_an_absent_node_changes_nothing_whatever_it_holds():
    nodes, present = draw(2, 4), np.array([True, False, True, True])
    found = BLOCK(jnp.asarray(nodes).at[1].set(jnp.nan), jnp.asarray(present))
    expected = slow_block(nodes[present], np.ones(3, bool))
    np.testing.assert_allclose(found[present], expected, atol=1e-5)


@pytest.mark.parametrize("present", [[1], [1, 1], [1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 0, 1]])
@pytest.mark.parametrize("receivers", [None, [0], [2, 0]])
def test_in_a_star_messages_come_from_the_learner_or_go_to_it(present, receivers):
    present = np.array(present, bool)
    nodes = draw(len(present), len(present))
    expected = slow_block(nodes, present, joined=lambda j, k: 0 in (j, k))
    if receivers is not None:
        receivers = np.minimum(receivers, len(present) - 1)
        expected = expected[receivers]
        receivers = jnp.asarray(receivers)
    found = STAR(jnp.asarray(nodes), jnp.asarray(present), receivers)
    np.testing.assert_allclose(found, expected, atol=1e-5)
