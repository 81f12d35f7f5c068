import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin.models.layers import MLP, Linear


def test_weights_start_uniform_within_one_over_the_root_of_the_inputs():
    layer = Linear(25, 400, key=jax.random.key(0))
    for part in (layer.weight, layer.bias):
        assert float(jnp.abs(part).max()) <= 0.2
        assert float(part.mean()) == pytest.approx(0, abs=0.02)
        assert float(part.std()) == pytest.approx(0.2 / 3**0.5, rel=0.1)


def test_an_input_in_parts_gives_the_same_as_in_one_piece():
    network = MLP([7, 5, 4], key=jax.random.key(1))
    a, b = (
        jax.random.normal(jax.random.key(2), (3, 4)),
        jax.random.normal(jax.random.key(3), (1, 3)),
    )
    whole = jnp.concatenate([a, jnp.broadcast_to(b, (3, 3))], axis=1)
    assert np.asarray(network.of_parts([a, b])) == pytest.approx(
        np.asarray(network(whole)), abs=1e-6
    )
