import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin.settle import settle


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32", "bool"])
def test_the_value_and_its_type_stay_the_same(dtype):
    value = (jnp.arange(12).reshape(3, 4) % 5).astype(dtype)
    for function in (settle, jax.jit(settle), jax.vmap(settle)):
        assert function(value).dtype == value.dtype
        assert np.array_equal(function(value), value)
    assert settle(value[0, 1]) == value[0, 1]
