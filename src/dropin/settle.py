"""A hand in what the compiler fuses."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Shaped


def settle(value: Shaped[Array, "*n"]) -> Shaped[Array, "*n"]:
    """The same value, worked out here, once, and stored.

    XLA for the CPU fuses a chain of element-wise operations into every use of its result, so that
    with broadcasting a choice among few agents is worked out again for every cell, object or
    pair it meets. It stores what comes out of a reduction, hence this one over (value, nothing);
    `optimization_barrier` is taken away before fusion and does not help. Floats lose their
    gradient.
    """
    is_value = jnp.expand_dims(jnp.arange(2) == 0, range(1, value.ndim + 1))
    if value.dtype == jnp.bool_:
        return jnp.any(value[None] & is_value, axis=0)
    if value.dtype == jnp.float32:  # Sums of floats are not fused with what comes before them.
        bits = jax.lax.bitcast_convert_type(value, jnp.uint32)
        return jax.lax.bitcast_convert_type(settle(bits), jnp.float32)
    return jnp.sum(jnp.where(is_value, value[None], 0), axis=0, dtype=value.dtype)
