"""Control over what the compiler fuses."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Shaped

__all__ = ["materialize"]


def materialize(value: Shaped[Array, "*n"]) -> Shaped[Array, "*n"]:
    """Return `value` unchanged, computed once at this point and stored in memory.

    XLA on the CPU fuses a chain of element-wise operations into every use of its result. With
    broadcasting, a choice among a few agents is then computed again for every cell, object or pair
    that it is combined with. XLA does store the result of a reduction, so this function reduces
    over the pair (value, zero). `jax.lax.optimization_barrier` does not help: XLA removes it before
    fusion. `benchmarks/xla.py` measures the gain.

    Args:
        value: An array of booleans, integers or 32-bit floats. Floats lose their gradient.

    Returns:
        An equal array, to the bit.
    """
    is_value = jnp.expand_dims(jnp.arange(2) == 0, range(1, value.ndim + 1))
    if value.dtype == jnp.bool_:
        return jnp.any(value[None] & is_value, axis=0)
    if value.dtype == jnp.float32:
        # XLA does not fuse sums of floats with what comes before them, and -0.0 + 0.0 is 0.0.
        bits = jax.lax.bitcast_convert_type(value, jnp.uint32)
        return jax.lax.bitcast_convert_type(materialize(bits), jnp.float32)
    return jnp.sum(jnp.where(is_value, value[None], 0), axis=0, dtype=value.dtype)
