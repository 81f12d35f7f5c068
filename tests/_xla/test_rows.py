import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin._xla.rows import add_row, matmul_rows, sum_rows

KEYS = jax.random.split(jax.random.key(0), 4)
X = jax.random.normal(KEYS[0], (4, 5, 3, 6))
WEIGHT = jax.random.normal(KEYS[1], (6, 2))
BIAS = jax.random.normal(KEYS[2], (2,))
OUT = jax.random.normal(KEYS[3], (4, 5, 3, 2))


def affine(x, weight, bias):
    return add_row(matmul_rows(x, weight), bias)


def plain(x, weight, bias):
    return x @ weight + jnp.expand_dims(bias, range(x.ndim - 1))


def nested(function):
    return jax.vmap(jax.vmap(function, (0, None, None)), (0, None, None))


def loss(function):
    return lambda *args: jnp.sum(OUT * function(*args) ** 2)


@pytest.mark.parametrize("batched", [lambda function: function, nested])
@pytest.mark.parametrize("argnums", [0, 1, 2, (0, 1), (1, 2), (0, 1, 2)])
def test_values_and_gradients_are_those_of_the_plain_formula(batched, argnums):
    ours, theirs = (
        jax.value_and_grad(loss(batched(each)), argnums)(X, WEIGHT, BIAS)
        for each in (affine, plain)
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5), ours, theirs)


def test_a_batch_of_weights_is_computed_by_the_ordinary_rules():
    weights, biases = jnp.stack([WEIGHT, -2 * WEIGHT]), jnp.stack([BIAS, 3 * BIAS])
    for axes in ((None, 0, 0), (None, 0, None), (None, None, 0)):
        args = (X, weights if axes[1] == 0 else WEIGHT, biases if axes[2] == 0 else BIAS)
        ours, theirs = (jax.vmap(each, axes)(*args) for each in (affine, plain))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_gradients_of_gradients_and_of_single_rows():
    def second(function):
        inner = jax.grad(lambda weight: jnp.sum(jnp.tanh(function(X[0, 0, 0], weight, BIAS))))
        return jax.grad(lambda weight: jnp.sum(inner(weight) ** 2))(WEIGHT)

    np.testing.assert_allclose(second(affine), second(plain), rtol=1e-4, atol=1e-6)


def test_under_vmap_all_products_of_the_gradient_are_of_two_matrices():
    gradient = jax.grad(loss(nested(affine)), (0, 1, 2))
    text = jax.jit(gradient).lower(X, WEIGHT, BIAS).as_text()
    operands = re.findall(r"dot_general .*: \((.*), (.*)\) ->", text)
    assert len(operands) == 4  # One forward, one back for each argument.
    assert all(each.count("x") == 2 for pair in operands for each in pair), operands


def test_a_sum_of_rows_is_a_product_and_not_a_reduction_that_is_fused():
    text = jax.jit(lambda x: sum_rows(jnp.where(x > 0, x, 0.0))).lower(jnp.ones((96, 64))).compile()
    assert " reduce(" not in str(text.as_text())
    np.testing.assert_allclose(sum_rows(X[0, 0]), np.sum(X[0, 0], axis=0), rtol=1e-6)
