import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin._xla.materialize import materialize

DTYPES = ("int32", "uint32", "float32", "bool")
MARKER = {"int32": "xor", "uint32": "xor", "float32": "multiply", "bool": "xor"}
"""By dtype, an operation that stands in the chain and nowhere else."""


def chain(few):
    """A few element-wise operations on each of a few values."""
    if few.dtype == jnp.float32:
        return few * (few + 3)
    return (few & few[::-1]) ^ few


def program(between, dtype, emitters):
    """Return the optimised program that combines a chain of 7 values with each of 1000 others."""

    def combine(few, many):
        return jnp.maximum(between(chain(few))[:, None], many[None])

    few, many = jnp.ones(7, dtype), jnp.ones(1000, dtype)
    lowered = jax.jit(combine).lower(few, many)
    try:
        options = {"xla_cpu_use_fusion_emitters": emitters}
        return lowered.compile(compiler_options=options).as_text()
    except jax.errors.JaxRuntimeError:
        pytest.skip("This version of XLA has one kind of emitters.")


def computed_for_each_pair(text, dtype):
    """Return whether the operation of the chain is fused into a loop over all 7 x 1000 pairs."""
    loops = [
        body
        for body in re.split(r"\n\}", text)
        if re.search(rf" {MARKER[dtype]}\(", body.partition("{")[2])
    ]
    assert loops
    return any("[7,1000]" in body for body in loops)


@pytest.mark.parametrize("emitters", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_comes_before_it_is_computed_once(dtype, emitters):
    assert not computed_for_each_pair(program(materialize, dtype, emitters), dtype)


@pytest.mark.parametrize("between", [lambda value: value, jax.lax.optimization_barrier])
def test_without_it_and_with_a_barrier_a_chain_is_computed_for_each_use(between):
    # If this fails, the compiler has learned better and `materialize` may go.
    assert computed_for_each_pair(program(between, "int32", False), "int32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_value_and_its_type_stay_the_same(dtype):
    value = (jnp.arange(12).reshape(3, 4) % 5).astype(dtype)
    for function in (materialize, jax.jit(materialize), jax.vmap(materialize)):
        assert function(value).dtype == value.dtype
        assert np.array_equal(function(value), value)
    assert materialize(value[0, 1]) == value[0, 1]
    assert materialize(value[:0]).shape == (0, 4)


def test_extreme_values_keep_their_bits():
    floats = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -3.4e38], np.float32)
    assert np.asarray(materialize(jnp.asarray(floats))).tobytes() == floats.tobytes()
    for dtype in (np.int32, np.uint32):
        limits = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
        assert np.array_equal(materialize(jnp.asarray(limits)), limits)
