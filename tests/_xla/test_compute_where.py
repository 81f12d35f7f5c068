from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dropin._xla.compute_where import MIN_BLOCK, compute_where


def halvings(given, shared):
    """A loop whose length depends on the row, and a pytree of results."""
    (number,) = given

    def step(carry):
        return carry[0] / 2, carry[1] + 1

    small, steps = jax.lax.while_loop(lambda c: c[0] > 1, step, (number * shared, jnp.int32(0)))
    return {"small": small, "steps": steps}


def slow(number, shared=3.0):
    small, steps = number * shared, 0
    while small > 1:
        small, steps = small / 2, steps + 1
    return small, steps


def draw(key, shared):
    del shared
    return jax.random.uniform(key)


executed = Counter()


def record(given, shared):
    """Count how often the function is executed for each row."""
    jax.debug.callback(lambda row: executed.update([int(row)]), given)
    return given * shared


def executions(where, *, block=MIN_BLOCK):
    """Return how often each row of a batch was executed, rows numbered in order, and the result."""
    where = jnp.asarray(where)
    rows = jnp.arange(where.size).reshape(where.shape)

    def compute(where, row):
        return compute_where(record, where, row, jnp.int32(3), block=block)

    for _ in where.shape:
        compute = jax.vmap(compute)
    executed.clear()
    result = jax.block_until_ready(jax.jit(compute)(where, rows))
    jax.effects_barrier()
    return dict(executed), result


@jax.jit
def nested(where, number):
    def one(where, number):
        return compute_where(halvings, where, (number,), jnp.float32(3))

    return jax.vmap(jax.vmap(one))(where, number)


@given(
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    shape=st.sampled_from([(1, 1), (3, 5), (1, MIN_BLOCK), (7, 9)]),
    seed=st.integers(0, 100),
)
def test_needed_rows_are_computed_and_others_are_zero(share, shape, seed):
    random = np.random.default_rng(seed)
    where = random.random(shape) < share
    number = random.uniform(0, 1000, shape).astype(np.float32)
    got = jax.device_get(nested(where, number))
    for at in np.ndindex(shape):
        small, steps = slow(number[at]) if where[at] else (0.0, 0)
        assert got["small"][at] == pytest.approx(small, rel=1e-5)
        assert got["steps"][at] == steps


@pytest.mark.parametrize("shape", [(100,), (10, 10), (5, 4, 5)])
def test_only_needed_rows_are_executed(shape):
    needed = [3, 17, 18, 50, 99]
    where = np.isin(np.arange(100), needed).reshape(shape)
    rows, result = executions(where)
    assert sorted(rows) == needed
    assert sum(rows.values()) == MIN_BLOCK
    assert np.array_equal(np.ravel(result), np.where(where.ravel(), 3 * np.arange(100), 0))


def test_nothing_is_executed_where_nothing_is_needed():
    rows, result = executions(np.zeros((4, 25), bool))
    assert rows == {}
    assert not np.any(result)


def test_each_row_is_executed_once_where_all_are_needed():
    rows, result = executions(np.ones((4, 4 * MIN_BLOCK), bool))
    assert rows == dict.fromkeys(range(16 * MIN_BLOCK), 1)
    assert np.array_equal(np.ravel(result), 3 * np.arange(16 * MIN_BLOCK))


def test_rows_of_all_batch_axes_share_blocks():
    # Ten rows, one in each inner batch: two blocks, not ten.
    rows, _ = executions(np.eye(10, dtype=bool))
    assert sorted(rows) == list(range(0, 100, 11))
    assert sum(rows.values()) == 2 * MIN_BLOCK


@pytest.mark.parametrize(("block", "expected"), [(8, 40), (16, 48), (64, 50)])
def test_a_block_has_at_most_an_eighth_of_all_rows(block, expected):
    # 400 rows of which 40 are needed; blocks of 8, 16 and 50 rows.
    rows, _ = executions(np.arange(400) < 40, block=block)
    assert sum(rows.values()) == expected


@pytest.mark.parametrize("where", [True, False])
def test_without_a_batch_axis_it_is_the_function_itself(where):
    got = compute_where(halvings, jnp.array(where), (jnp.float32(5),), jnp.float32(3))
    assert (float(got["small"]), int(got["steps"])) == (slow(5.0) if where else (0, 0))


def test_given_arrays_need_not_be_batched():
    out = jax.vmap(
        lambda where: compute_where(halvings, where, (jnp.float32(5),), jnp.float32(3))["steps"]
    )(jnp.array([True, False, True]))
    assert out.tolist() == [4, 0, 4]


def test_the_condition_need_not_be_batched():
    def steps(where, number):
        return compute_where(halvings, where, (number,), jnp.float32(3))["steps"]

    number = jnp.array([5.0, 100.0])
    for where in (True, False):
        out = jax.vmap(steps, in_axes=(None, 0))(jnp.array(where), number)
        assert out.tolist() == [slow(each)[1] * where for each in (5.0, 100.0)]


def test_shared_arrays_may_differ_between_rows():
    out = jax.vmap(
        lambda where, shared: compute_where(halvings, where, (jnp.float32(5),), shared)["steps"]
    )(jnp.array([True, True, False]), jnp.array([3.0, 1.0, 3.0]))
    assert out.tolist() == [4, 3, 0]


@pytest.mark.parametrize("inner", [True, False])
def test_shared_arrays_may_differ_along_either_batch_axis(inner):
    number = np.array([[5.0, 100.0, 1000.0], [7.0, 200.0, 3.0]], np.float32)
    where = np.array([[True, False, True], [True, True, False]])
    shared = np.array([3.0, 6.0, 12.0] if inner else [3.0, 6.0], np.float32)

    def steps(where, number, shared):
        return compute_where(halvings, where, (number,), shared)["steps"]

    in_axes = ((0, 0, 0), (0, 0, None)) if inner else ((0, 0, None), (0, 0, 0))
    compute = jax.vmap(jax.vmap(steps, in_axes=in_axes[0]), in_axes=in_axes[1])
    out = jax.jit(compute)(where, number, shared)
    for row, column in np.ndindex(where.shape):
        expected = slow(number[row, column], float(shared[column if inner else row]))[1]
        assert out[row, column] == (expected if where[row, column] else 0)


def test_shared_arrays_are_not_copied_for_each_row():
    def product(given, weight):
        return weight @ given

    def one(where, given):
        return compute_where(product, where, given, jnp.ones((37, 41)))

    arguments = jnp.ones((3, 5), bool), jnp.ones((3, 5, 41))
    program = str(jax.make_jaxpr(jax.vmap(jax.vmap(one)))(*arguments))
    assert "[37,41]" in program
    assert ",37,41]" not in program


def test_leaves_that_are_not_arrays_are_passed_on():
    def power(given, shared):
        return shared["function"](given["number"]) ** given["exponent"]

    def one(where, number):
        given = {"number": number, "exponent": 2}
        return compute_where(power, where, given, {"function": jnp.negative})

    out = jax.vmap(one)(jnp.array([True, False]), jnp.array([3.0, 4.0]))
    assert out.tolist() == [9.0, 0.0]


def test_random_keys_can_be_given():
    keys = jax.random.split(jax.random.key(0), 3)
    out = jax.vmap(lambda where, key: compute_where(draw, where, key))(
        jnp.array([True, False, True]), keys
    )
    assert out.tolist() == [float(jax.random.uniform(keys[0])), 0.0, jax.random.uniform(keys[2])]


def test_the_function_is_traced_once():
    calls = []

    def traced(given, shared):
        calls.append(given)
        return given + shared

    def one(where, number):
        return compute_where(traced, where, number, jnp.float32(1))

    where, number = jnp.ones((2, 3, 4), bool), jnp.ones((2, 3, 4))
    jax.jit(jax.vmap(jax.vmap(jax.vmap(one)))).lower(where, number)
    jax.jit(jax.vmap(jax.vmap(one))).lower(where[0], number[0])
    assert len(calls) == 1


def test_it_works_in_loops_and_beside_gradients():
    where = jnp.array([True, False, True, True])

    def loss(weight):
        def step(total, number):
            found = jax.vmap(
                lambda where, number: compute_where(halvings, where, (number,), jnp.float32(3))
            )(where, jnp.full(4, number))
            return total + weight * jnp.sum(found["steps"]).astype(jnp.float32), None

        return jax.lax.scan(step, jnp.float32(0), jnp.array([5.0, 100.0]))[0]

    steps = sum(3 * slow(number)[1] for number in (5.0, 100.0))
    assert float(jax.jit(jax.grad(loss))(2.0)) == steps
