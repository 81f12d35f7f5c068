"""Affine maps of rows, as products of two matrices also under `vmap` and in gradients.

`x @ weight` and its gradient are correct for any number of leading axes. But the gradient of the
weights is then a contraction over all leading axes, for which XLA on the CPU first transposes its
operands, and the gradient of a bias is a sum that is fused with all that comes before it, so that
this is computed again. Here all leading axes are joined to one before the gradient is formed, and
the bias gets its gradient by a product with ones. `benchmarks/xla.py` measures the gain.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

__all__ = ["add_row", "matmul_rows", "sum_rows"]


def matmul_rows(
    x: Float[Array, "*n input"], weight: Float[Array, "input output"]
) -> Float[Array, "*n output"]:
    """Return `x @ weight`.

    Args:
        x: The rows.
        weight: The matrix that every row is multiplied with.
    """
    return _matmul_rows.bind(x, weight)


def add_row(
    x: Float[Array, "*n output"], row: Float[Array, " output"]
) -> Float[Array, "*n output"]:
    """Return `x + row`.

    Args:
        x: The rows.
        row: What is added to each of them.
    """
    return _add_row.bind(x, row)


def sum_rows(rows: Float[Array, "row output"]) -> Float[Array, " output"]:
    """Return the sum of all rows, as a product with ones.

    XLA fuses a sum, and a product of a vector and a matrix too, with what comes before it, and
    computes that a second time. It does not do so with a product of two matrices.
    """
    return (jnp.ones((8, len(rows)), rows.dtype) @ rows)[0]


def _joined(x: Float[Array, "*n size"]) -> Float[Array, "row size"]:
    """Return an array with all axes but the last joined to one."""
    return x.reshape(-1, x.shape[-1])


def _matmul(x: Array, weight: Array) -> Array:
    return (_joined(x) @ weight).reshape(*x.shape[:-1], weight.shape[-1])


def _matmul_transpose_x(cotangent: Array, x: Any, weight: Array) -> Array:
    return _matmul(cotangent, weight.T).reshape(x.aval.shape)


def _matmul_transpose_weight(cotangent: Array, x: Array, weight: Any) -> Array:
    del weight
    return _joined(x).T @ _joined(cotangent)


def _add(x: Array, row: Array) -> Array:
    return x + jnp.expand_dims(row, range(x.ndim - 1))


def _add_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    out = _add_row.bind(*primals)
    x_dot, row_dot = tangents
    if isinstance(row_dot, ad.Zero):
        return out, x_dot
    return out, _add_row.bind(ad.instantiate_zeros(x_dot), row_dot)


def _add_transpose(cotangent: Any, x: Any, row: Any) -> list[Any]:
    if isinstance(cotangent, ad.Zero):
        return [cotangent, ad.Zero(row.aval) if ad.is_undefined_primal(row) else None]
    row_bar = None
    if ad.is_undefined_primal(row):
        row_bar = sum_rows(_joined(cotangent))
    return [cotangent if ad.is_undefined_primal(x) else None, row_bar]


def _primitive(name: str, function: Callable[[Array, Array], Array]) -> Primitive:
    """Make a primitive of rows and something that all of them share.

    Under `vmap`, a batch of rows is more rows. A batch of what they share is computed by the
    ordinary rules.
    """
    primitive = Primitive(name)
    primitive.def_impl(function)
    primitive.def_abstract_eval(lambda *args: _shaped(jax.eval_shape(function, *args)))
    mlir.register_lowering(primitive, mlir.lower_fun(function, multiple_results=False))

    def batch(args: Sequence[Array], axes: Sequence[int | None]) -> tuple[Array, int]:
        (x, shared), (axis, shared_axis) = args, axes
        if axis is not None and shared_axis is None:
            return primitive.bind(jnp.moveaxis(x, axis, 0), shared), 0
        return jax.vmap(function, in_axes=(axis, shared_axis))(x, shared), 0

    batching.primitive_batchers[primitive] = batch
    return primitive


def _shaped(array: jax.ShapeDtypeStruct) -> ShapedArray:
    return ShapedArray(array.shape, array.dtype)


_matmul_rows = _primitive("matmul_rows", _matmul)
ad.defbilinear(_matmul_rows, _matmul_transpose_x, _matmul_transpose_weight)
_add_row = _primitive("add_row", _add)
ad.primitive_jvps[_add_row] = _add_jvp
ad.primitive_transposes[_add_row] = _add_transpose
