"""Pytrees as flat arrays, and blank copies of them."""

from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dropin.core.arrays import as_float, as_int, zeros_like


def make_tree():
    return {
        "weights": jnp.arange(6.0).reshape(2, 3),
        "count": jnp.int32(4),
        "done": jnp.array([True, False]),
        "keys": jax.random.split(jax.random.key(3), 2),
        "name": "a learner",
    }


def test_zeros_have_the_shapes_and_types_of_the_template():
    tree = make_tree()
    for template in (tree, eqx.filter_eval_shape(make_tree)):
        zeros = zeros_like(template)
        assert zeros["name"] == "a learner"
        for name in ("weights", "count", "done", "keys"):
            assert (zeros[name].shape, zeros[name].dtype) == (tree[name].shape, tree[name].dtype)
        assert np.all(np.asarray(zeros["weights"]) == 0)
        assert not np.any(np.asarray(zeros["done"]))
        assert np.all(np.asarray(jax.random.key_data(zeros["keys"])) == 0)


def test_settings_become_arrays_without_compiling_a_program(caplog):
    with jax.log_compiles():
        number, levels = as_float(0.25), as_int((1, 3))
        assert "Compiling" not in caplog.text
    assert (number.dtype, number.shape, float(number)) == (jnp.float32, (), 0.25)
    assert (levels.dtype, levels.tolist()) == (jnp.int32, [1, 3])
    assert jax.jit(as_int)(jnp.float32(2)).dtype == jnp.int32


def test_the_shapes_of_bits_are_traced_once():
    """JAX keeps something of all that it traces: a process that goes on restoring would grow."""
    tree = make_tree()
    zeros_like(tree)
    with mock.patch.object(jax, "eval_shape", side_effect=AssertionError("traced")):
        zeros_like(tree)
