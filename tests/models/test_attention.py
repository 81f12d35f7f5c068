import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dropin.models.attention import Attention, masked_softmax

HEADS, SIZE = 3, 4
LAYER = Attention(5, 6, SIZE, HEADS, key=jax.random.key(0))


def mlp(network, x):
    first, second = network.layers
    x = np.maximum(x @ np.asarray(first.weight, float) + np.asarray(first.bias, float), 0)
    return x @ np.asarray(second.weight, float) + np.asarray(second.bias, float)


def slow_attention(askers, nodes, present):
    """One asker, one head, one node after another."""
    out, weights = [], np.zeros((HEADS, len(askers), len(nodes)))
    for a, asker in enumerate(askers):
        parts = []
        for h in range(HEADS):
            mine = slice(h * SIZE, (h + 1) * SIZE)
            query = mlp(LAYER.query, asker)[mine]
            scores = {
                n: np.exp(query @ mlp(LAYER.key, nodes[n])[mine] / np.sqrt(SIZE))
                for n in np.flatnonzero(present)
            }
            total, part = sum(scores.values()), np.zeros(SIZE)
            for n, score in scores.items():
                weights[h, a, n] = score / total
                part += score / total * mlp(LAYER.value, nodes[n])[mine]
            parts.append(part)
        out.append(np.concatenate(parts))
    return np.array(out), weights


@pytest.mark.parametrize("present", [[1, 1, 1, 1], [1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
def test_attention_is_that_of_a_slow_loop(present):
    nodes = np.random.default_rng(0).normal(size=(4, 5)) * 2
    found, weights = LAYER(jnp.float32(nodes[:2]), jnp.float32(nodes), jnp.array(present, bool))
    expected, shares = slow_attention(nodes[:2], nodes, np.array(present, bool))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(weights, shares, atol=1e-6)


@given(
    scores=st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=6),
    seed=st.integers(0, 2**16),
    junk=st.sampled_from([0.0, np.nan, np.inf, -np.inf, 1e38]),
)
def test_the_absent_count_nothing_and_nothing_is_ever_nan(scores, seed, junk):
    present = np.random.default_rng(seed).random(len(scores)) < 0.5
    held = jnp.where(jnp.array(present), jnp.float32(scores), jnp.float32(junk))
    here = jnp.array(present)

    def total(held):
        return jnp.sum(masked_softmax(held, here) * jnp.arange(len(scores), dtype=jnp.float32))

    shares, slope = np.asarray(masked_softmax(held, here)), np.asarray(jax.grad(total)(held))
    assert (shares[~present] == 0).all()
    assert shares.sum() == pytest.approx(1.0 if present.any() else 0.0, abs=1e-5)
    assert np.isfinite(shares).all()
    assert np.isfinite(slope).all()
    assert (slope[~present] == 0).all()


def test_a_node_alone_gets_what_it_says_itself():
    nodes = jnp.float32(np.random.default_rng(1).normal(size=(3, 5)))
    nodes = nodes.at[1:].set(jnp.nan)
    found, weights = LAYER(nodes[:1], nodes, jnp.array([True, False, False]))
    np.testing.assert_allclose(weights[:, 0], [[1, 0, 0]] * HEADS)
    np.testing.assert_allclose(found[0], mlp(LAYER.value, np.asarray(nodes[0])), atol=1e-5)
