"""Chunks of updates in one compiled call."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PyTree

from dropin._xla.compile import compiled
from dropin.core import arrays as core_arrays
from dropin.core.metrics import Mean, Metric, Metrics, accumulate, zeros_like
from dropin.core.specs import Learner
from dropin.env import AnyEnv, EnvState, nonfinite_slots

__all__ = ["NonFinite", "RunState", "blank_states", "get_state", "set_state", "train_chunk"]


class RunState(eqx.Module):
    """Everything that changes in a run.

    All arrays of several runs that train together have a leading axis [seed].
    """

    train_state: PyTree
    """The learner's train state."""
    updates: Int[Array, "*seed"]
    """Number of updates so far."""


class NonFinite(eqx.Module):
    """The first update in which something was not finite; the number of updates if all is well."""

    metric: Int[Array, "*seed"]
    """The first update with a metric, such as a loss, that was not finite."""
    state: Int[Array, "*seed"]
    """The first update with a state of an environment that was not finite."""
    slot: Int[Array, "*seed"]
    """The slot of the agent in that state."""
    leaf: Int[Array, "*seed"]
    """The first array of the train state and the metrics, in the order of `array_paths`, that was
    finite before the chunk and is not after it; -1 if there is none."""


def _finite(tree: PyTree) -> Bool[Array, " leaf"]:
    """Return which arrays of a pytree hold finite numbers only."""
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_array))
    floats = [jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves]
    pairs = zip(leaves, floats, strict=True)
    return jnp.stack(
        [jnp.all(jnp.isfinite(a)) if is_float else jnp.array(True) for a, is_float in pairs]
    )


def _first_broken(before: Bool[Array, " leaf"], after: Bool[Array, " leaf"]) -> Int[Array, ""]:
    """Return the first array that was finite and is not any more, or -1.

    An array that is not finite from the start, such as a best loss of infinity, is meant so.
    """
    broken = before & ~after
    return jnp.where(jnp.any(broken), jnp.argmax(broken), -1)


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
        leaf=found.leaf,
    )


Fixed = tuple[AnyEnv, Learner, Int[Array, ""]]
"""The environment, the learner, and how many updates to do."""


def _train_chunk(fixed: Fixed, state: RunState) -> tuple[RunState, dict[str, Metric], NonFinite]:
    """Do many updates in one compiled call.

    The number of updates is a run-time value, so chunks of all lengths are compiled once.

    Args:
        fixed: The environment, the learner, and how many updates to do.
        state: The state of the run, or of several runs that train together; its buffers are
            donated.

    Returns:
        The state afterwards, the accumulated metrics, and whether something was not finite, all
        with the leading axis of the state.
    """
    if state.updates.ndim:
        return eqx.filter_vmap(_train_chunk, in_axes=(None, eqx.if_array(0)))(fixed, state)
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

    blank = zeros_like(shapes)
    before = _finite((arrays, blank))
    carry = (arrays, blank, NonFinite(last, last, jnp.int32(0), jnp.int32(-1)))
    arrays, totals, nonfinite = jax.lax.fori_loop(0, num_updates, body, carry)
    # Once a chunk: whatever breaks stays broken, or is in a loss or a return soon. Some of it would
    # not be in a loss at all, as an infinite moment of Adam, which stops its weight for good.
    leaf = _first_broken(before, _finite((arrays, totals)))
    nonfinite = eqx.tree_at(lambda found: found.leaf, nonfinite, leaf)
    return RunState(eqx.combine(arrays, static), last), totals, nonfinite


train_chunk = compiled(_train_chunk, donate="all-except-first")


def blank_states(template: RunState, number: int) -> RunState:
    """Return zeros for the states of several runs that train together.

    Args:
        template: The shapes of the state of one run, as `equinox.filter_eval_shape` gives them.
        number: Number of runs.
    """

    def with_axis(leaf: PyTree) -> PyTree:
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct((number, *leaf.shape), leaf.dtype)
        return leaf

    return core_arrays.zeros_like(jax.tree.map(with_axis, template))


def _set_state(new: tuple[Int[Array, ""], RunState], states: RunState) -> RunState:
    index, state = new
    return jax.tree.map(
        lambda all_runs, one: all_runs.at[index].set(one) if eqx.is_array(one) else one,
        states,
        state,
    )


def _get_state(states: RunState, index: Int[Array, ""]) -> RunState:
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, states)


set_state = compiled(_set_state, donate="all-except-first", quick=True)
"""`((index, state), states)`: replace the state of one of several runs that train together.

The buffers of `states` are donated: there is no moment with two copies of all states, which for a
learner with a replay buffer would be large.
"""
get_state = compiled(_get_state, quick=True)
"""`(states, index)`: return a copy of the state of one of several runs that train together."""
