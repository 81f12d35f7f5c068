"""Chunks of updates in one compiled call."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

from dropin._xla.compile import compiled
from dropin.core.metrics import Mean, Metric, Metrics, accumulate, zeros_like
from dropin.core.specs import Learner
from dropin.env import AnyEnv, EnvState, nonfinite_slots

__all__ = ["NonFinite", "RunState", "train_chunk"]


class RunState(eqx.Module):
    """Everything that changes in a run."""

    train_state: PyTree
    """The learner's train state."""
    updates: Int[Array, ""]
    """Number of updates so far."""


class NonFinite(eqx.Module):
    """The first update in which something was not finite; the number of updates if all is well."""

    metric: Int[Array, ""]
    """The first update with a metric, such as a loss, that was not finite."""
    state: Int[Array, ""]
    """The first update with a state of an environment that was not finite."""
    slot: Int[Array, ""]
    """The slot of the agent in that state."""


def _check(
    found: NonFinite, train_state: PyTree, metrics: Metrics, number: Int[Array, ""]
) -> NonFinite:
    """Note the update if it is the first in which something is not finite."""
    totals = [each.total for each in metrics.values() if isinstance(each, Mean)]
    finite = jnp.isfinite(sum(totals, jnp.float32(0)))
    bad = jnp.array([False])
    for each in jax.tree.leaves(train_state, is_leaf=lambda node: isinstance(node, EnvState)):
        if isinstance(each, EnvState):
            bad = nonfinite_slots(each)
    first = jnp.any(bad) & (number < found.state)
    return NonFinite(
        metric=jnp.where(finite, found.metric, jnp.minimum(found.metric, number)),
        state=jnp.where(first, number, found.state),
        slot=jnp.where(first, jnp.argmax(bad), found.slot),
    )


Fixed = tuple[AnyEnv, Learner, Int[Array, ""]]
"""The environment, the learner, and how many updates to do."""


def _train_chunk(fixed: Fixed, state: RunState) -> tuple[RunState, dict[str, Metric], NonFinite]:
    """Do many updates in one compiled call.

    The number of updates is a run-time value, so chunks of all lengths are compiled once.

    Args:
        fixed: The environment, the learner, and how many updates to do.
        state: The state of the run; its buffers are donated.

    Returns:
        The state afterwards, the accumulated metrics, and whether something was not finite.
    """
    env, learner, num_updates = fixed
    arrays, static = eqx.partition(state.train_state, eqx.is_array)
    last = state.updates + num_updates

    # Traced once, here for the shapes of the metrics and below in the loop.
    @jax.jit
    def update(env_arrays: PyTree, arrays: PyTree) -> PyTree:
        following, metrics = learner.update(
            eqx.combine(env_arrays, env_static), eqx.combine(arrays, static)
        )
        return eqx.filter(following, eqx.is_array), metrics

    env_arrays, env_static = eqx.partition(env, eqx.is_array)
    _, shapes = jax.eval_shape(update, env_arrays, arrays)

    def body(index: Int[Array, ""], carry: PyTree) -> PyTree:
        arrays, totals, nonfinite = carry
        arrays, metrics = update(env_arrays, arrays)
        nonfinite = _check(nonfinite, eqx.combine(arrays, static), metrics, state.updates + index)
        return arrays, accumulate(totals, metrics), nonfinite

    carry = (arrays, zeros_like(shapes), NonFinite(last, last, jnp.int32(0)))
    arrays, totals, nonfinite = jax.lax.fori_loop(0, num_updates, body, carry)
    return RunState(eqx.combine(arrays, static), last), totals, nonfinite


train_chunk = compiled(_train_chunk, donate="all-except-first")
