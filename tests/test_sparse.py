import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dropin.sparse import LEAST, where_needed


def halvings(given, shared):
    """A loop whose length depends on the row, and a pytree of results."""
    (number,) = given

    def step(carry):
        return carry[0] / 2, carry[1] + 1

    small, steps = jax.lax.while_loop(lambda c: c[0] > 1, step, (number * shared, jnp.int32(0)))
    return {"small": small, "steps": steps}


def slow(number):
    small, steps = number * 3, 0
    while small > 1:
        small, steps = small / 2, steps + 1
    return small, steps


@jax.jit
def many(needed, number):
    def one(needed, number):
        return where_needed(halvings, needed, (number,), jnp.float32(3))

    return jax.vmap(jax.vmap(one))(needed, number)


@given(
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    shape=st.sampled_from([(1, 1), (3, 5), (1, LEAST), (7, 9)]),
    seed=st.integers(0, 100),
)
def test_rows_that_are_needed_are_worked_out_and_others_are_zero(share, shape, seed):
    random = np.random.default_rng(seed)
    needed = random.random(shape) < share
    number = random.uniform(0, 1000, shape).astype(np.float32)
    got = jax.device_get(many(needed, number))
    for at in np.ndindex(shape):
        small, steps = slow(number[at]) if needed[at] else (0.0, 0)
        assert got["small"][at] == pytest.approx(small, rel=1e-5)
        assert got["steps"][at] == steps


def test_alone_it_is_the_function_itself():
    yes = where_needed(halvings, jnp.array(True), (jnp.float32(5),), jnp.float32(3))
    assert (float(yes["small"]), int(yes["steps"])) == slow(5)
    no = where_needed(halvings, jnp.array(False), (jnp.float32(5),), jnp.float32(3))
    assert (float(no["small"]), int(no["steps"])) == (0, 0)


def test_what_is_the_same_for_all_rows_need_not_be_batched():
    out = jax.vmap(
        lambda needed: where_needed(halvings, needed, (jnp.float32(5),), jnp.float32(3))["steps"]
    )(jnp.array([True, False, True]))
    assert out.tolist() == [4, 0, 4]


def test_what_is_shared_may_differ_between_rows():
    out = jax.vmap(
        lambda needed, shared: where_needed(halvings, needed, (jnp.float32(5),), shared)["steps"]
    )(jnp.array([True, True, False]), jnp.array([3.0, 1.0, 3.0]))
    assert out.tolist() == [4, 3, 0]


def test_what_is_shared_may_differ_between_batches_of_rows():
    def of_batch(shared, needed):
        def of_row(needed, number):
            return where_needed(halvings, needed, (number,), shared)["steps"]

        return jax.vmap(of_row)(needed, jnp.array([5.0, 100.0, 1000.0]))

    needed = jnp.array([[True, False, True], [True, True, False]])
    out = jax.jit(jax.vmap(of_batch))(jnp.array([3.0, 6.0]), needed)
    assert out.tolist() == [[4, 0, slow(1000.0)[1]], [5, slow(200.0)[1], 0]]


def test_it_goes_with_loops_and_gradients_that_pass_it_by():
    needed = jnp.array([True, False, True, True])

    def loss(weight):
        def step(total, number):
            found = jax.vmap(
                lambda needed, number: where_needed(halvings, needed, (number,), jnp.float32(3))
            )(needed, jnp.full(4, number))
            return total + weight * jnp.sum(found["steps"]).astype(jnp.float32), None

        return jax.lax.scan(step, jnp.float32(0), jnp.array([5.0, 100.0]))[0]

    steps = sum(3 * slow(number)[1] for number in (5.0, 100.0))
    assert float(jax.jit(jax.grad(loss))(2.0)) == steps
