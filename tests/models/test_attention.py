import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_models import slow_mlp

from dropin.models.attention import Attention, masked_softmax

HEADS, SIZE = 3, 4
LAYER = Attention(
    input_size=5, hidden_size=6, head_size=SIZE, num_heads=HEADS, key=jax.random.key(0)
)


def slow_attention(query_nodes, nodes, present):
    """One query, one head, one node after another."""
    output, weights = [], np.zeros((HEADS, len(query_nodes), len(nodes)))
    for q, query_node in enumerate(query_nodes):
        heads = []
        for h in range(HEADS):
            own = slice(h * SIZE, (h + 1) * SIZE)
            query = slow_mlp(LAYER.query, query_node)[own]
            scores = {
                n: np.exp(query @ slow_mlp(LAYER.key, nodes[n])[own] / np.sqrt(SIZE))
                for n in np.flatnonzero(present)
            }
            total, mean = sum(scores.values()), np.zeros(SIZE)
            for n, score in scores.items():
                weights[h, q, n] = score / total
                mean += score / total * slow_mlp(LAYER.value, nodes[n])[own]
            heads.append(mean)
        output.append(np.concatenate(heads))
    return np.array(output), weights


@pytest.mark.parametrize("present", [[1, 1, 1, 1], [1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
def test_attention_is_that_of_a_slow_loop(present):
    nodes = np.random.default_rng(0).normal(size=(4, 5)) * 2
    output, weights = LAYER(jnp.float32(nodes[:2]), jnp.float32(nodes), jnp.array(present, bool))
    slow_output, slow_weights = slow_attention(nodes[:2], nodes, np.array(present, bool))
    np.testing.assert_allclose(output, slow_output, atol=1e-5)
    np.testing.assert_allclose(weights, slow_weights, atol=1e-6)


def test_queries_keys_and_values_come_from_different_networks():
    query, key, value = (net.layers[0].weight for net in (LAYER.query, LAYER.key, LAYER.value))
    assert not np.isin(query, key).any()
    assert not np.isin(query, value).any()
    assert not np.isin(key, value).any()


def slow_softmax(scores, present):
    shares = np.zeros(len(scores))
    if present.any():
        kept = np.asarray(scores, float)[present]
        kept = np.exp(kept - kept.max())
        shares[present] = kept / kept.sum()
    return shares


@jax.jit
def shares_and_slope(scores, present, ranks):
    """The softmax, and the gradient of the mean rank under it."""

    def mean_rank(scores):
        return jnp.sum(masked_softmax(scores, present) * ranks)

    return masked_softmax(scores, present), jax.grad(mean_rank)(scores)


@given(
    scores=st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=6),
    seed=st.integers(0, 2**16),
    junk=st.sampled_from([0.0, np.nan, np.inf, -np.inf, 1e38]),
)
def test_the_softmax_is_over_those_present_and_nothing_is_ever_nan(scores, seed, junk):
    present = np.random.default_rng(seed).random(len(scores)) < 0.5
    mask = jnp.array(present)
    held = jnp.where(mask, jnp.float32(scores), jnp.float32(junk))
    ranks = np.arange(len(scores), dtype=np.float32)
    shares, slope = map(np.asarray, shares_and_slope(held, mask, jnp.asarray(ranks)))
    expected = slow_softmax(scores, present)
    assert (shares[~present] == 0).all()
    assert (slope[~present] == 0).all()
    np.testing.assert_allclose(shares, expected, atol=1e-6)
    np.testing.assert_allclose(slope, expected * (ranks - expected @ ranks), atol=1e-5)


def test_the_softmax_is_over_the_last_axis():
    scores = np.random.default_rng(2).normal(size=(2, 3, 4))
    present = np.array([True, False, True, True])
    expected = [[slow_softmax(row, present) for row in rows] for rows in scores]
    found = masked_softmax(jnp.float32(scores), jnp.array(present))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_node_alone_gets_its_own_value():
    nodes = jnp.float32(np.random.default_rng(1).normal(size=(3, 5)))
    nodes = nodes.at[1:].set(jnp.nan)
    output, weights = LAYER(nodes[:1], nodes, jnp.array([True, False, False]))
    np.testing.assert_allclose(weights[:, 0], [[1, 0, 0]] * HEADS)
    np.testing.assert_allclose(output[0], slow_mlp(LAYER.value, np.asarray(nodes[0])), atol=1e-5)
