"""Pytrees as flat arrays, and blank copies of them."""

from typing import Any
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin._xla.random import subkeys
from dropin.core.arrays import as_float, as_int, shapes_of, zeros_like
from dropin.models.layers import MLP


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


@pytest.mark.parametrize("with_key", [False, True])
def test_shapes_of_what_is_built_are_those_that_equinox_finds(with_key: bool):
    def build() -> Any:
        keys = subkeys(jax.random.key(0), 2)
        network = MLP((3, 5, 2), key=keys[0])
        return {"network": network, "name": "some", "key": keys[1] if with_key else None}

    found, expected = shapes_of(build), eqx.filter_eval_shape(build)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    assert jax.tree.leaves(found) == jax.tree.leaves(expected)


def test_shapes_are_found_without_computing_random_numbers(monkeypatch):
    monkeypatch.setattr("dropin._xla.random.threefry", None)
    shapes = shapes_of(lambda: MLP((3, 5, 2), key=jax.random.key(0)))
    assert shapes.layers[1].weight.shape == (5, 2)


def test_the_shapes_of_bits_are_traced_once():
    """JAX keeps something of all that it traces: a process that goes on restoring would grow."""
    tree = make_tree()
    zeros_like(tree)
    with mock.patch.object(jax, "eval_shape", side_effect=AssertionError("traced")):
        zeros_like(tree)
