"""Named metrics that are accumulated inside compiled code and read out between chunks."""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = [
    "Difference",
    "Mean",
    "Metric",
    "Metrics",
    "Snapshot",
    "Sum",
    "accumulate",
    "to_row",
    "zeros_like",
]


class Mean(eqx.Module):
    """A mean that is still being accumulated."""

    total: Float[Array, "*n"]
    """Sum of the values."""
    count: Float[Array, "*n"]
    """Number, or total weight, of the values."""

    @classmethod
    def of(cls, value: Float[Array, ""]) -> "Mean":
        """Return the mean of a single value."""
        return cls(value, jnp.float32(1))

    def add(self, new: "Mean") -> "Mean":
        """Return the mean over the values of both metrics."""
        return jax.tree.map(jnp.add, self, new)

    @property
    def value(self) -> float | None:
        """The mean as a Python float; None if there were no values."""
        return float(self.total) / float(self.count) if float(self.count) else None


class Difference(eqx.Module):
    """The mean of a difference, accumulated as two sums."""

    total: Float[Array, "*n"]
    subtracted: Float[Array, "*n"]
    count: Float[Array, "*n"]

    def add(self, new: "Difference") -> "Difference":
        """Return the mean difference over the values of both."""
        return jax.tree.map(jnp.add, self, new)

    @property
    def value(self) -> float | None:
        """The mean difference as a Python float; None if there were no values."""
        if not float(self.count):
            return None
        return (float(self.total) - float(self.subtracted)) / float(self.count)


class Sum(eqx.Module):
    """A count that is added up."""

    total: Float[Array, "*n"]

    def add(self, new: "Sum") -> "Sum":
        """Return the sum of both."""
        return Sum(self.total + new.total)

    @property
    def value(self) -> int:
        """The sum as a Python integer."""
        return int(self.total)


class Snapshot(eqx.Module):
    """A value that is reported as it was at the start of a chunk, such as a scheduled rate."""

    current: Float[Array, ""]
    seen: Float[Array, ""]
    """1 once there is a value."""

    @classmethod
    def of(cls, value: Float[Array, ""]) -> "Snapshot":
        """Return the snapshot of a value."""
        return cls(value, jnp.float32(1))

    def add(self, new: "Snapshot") -> "Snapshot":
        """Return the earlier of the two values."""
        return Snapshot(jnp.where(self.seen > 0, self.current, new.current), jnp.float32(1))

    @property
    def value(self) -> float | None:
        """The value as a Python float; None if there was none."""
        return float(self.current) if float(self.seen) else None


Metric = Mean | Difference | Sum | Snapshot

Metrics = Mapping[str, Metric]
"""Metrics by name; the names are the columns of `metrics.csv`."""


def zeros_like(metrics: Metrics) -> dict[str, Metric]:
    """Return metrics of the same names and shapes that hold no values yet.

    Args:
        metrics: Metrics, or their shapes as `jax.eval_shape` gives them.
    """
    return {
        name: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), each)
        for name, each in metrics.items()
    }


def accumulate(totals: Metrics, new: Metrics) -> dict[str, Metric]:
    """Return `totals` with the values of `new` added to them.

    Args:
        totals: Metrics by name.
        new: Metrics of the same names; others are left out.
    """
    return {name: each.add(new[name]) for name, each in totals.items()}  # pyright: ignore[reportArgumentType]


def to_row(metrics: Metrics) -> dict[str, float | int | None]:
    """Return the value of each metric as a Python number, None where there were no values."""
    return {name: each.value for name, each in metrics.items()}
