"""Recording and replaying layers: the same values and gradients, without a second forward pass."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin.models import tape
from dropin.models.layers import LSTM, MLP
from dropin.models.type_inference import TypeNetwork

KEY = jax.random.key(0)


def close(one, two):
    one, two = eqx.filter(one, eqx.is_array), eqx.filter(two, eqx.is_array)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6), one, two)


def products(function, *args):
    """How many matrix products the compiled function has."""
    jitted: Any = eqx.filter_jit(function)
    return jitted.lower(*args).compile().compiled.as_text().count(" dot(")


def test_a_replay_has_the_values_and_the_gradient_of_the_function():
    network = MLP([3, 8, 2], key=KEY)
    x = jax.random.normal(jax.random.key(1), (5, 3))
    _, recorded = tape.record(network, x)

    def loss(network_and_x, call):
        network, x = network_and_x
        return jnp.sum(call(network, x) ** 3)

    plain = eqx.filter_value_and_grad(loss)((network, x), lambda network, x: network(x))
    replayed = eqx.filter_value_and_grad(loss)(
        (network, x), lambda network, x: tape.replay(recorded, network, x)
    )
    close(plain, replayed)


def test_a_replay_computes_no_product():
    network = MLP([3, 8, 2], key=KEY)
    x = jnp.ones((5, 3))
    _, recorded = tape.record(network, x)
    assert products(network, x) == 2
    assert products(lambda x: tape.replay(recorded, network, x), x) == 0


def test_rows_that_were_recorded_one_by_one_are_replayed_together():
    network = MLP([6, 8, 7], key=KEY)
    rows = jax.random.normal(jax.random.key(1), (6, 4, 6))
    _, tapes = jax.lax.scan(
        lambda _, x: (None, jax.vmap(lambda x: tape.record(network, x)[1])(x)), None, rows
    )

    def loss(network):
        replayed = jax.vmap(jax.vmap(lambda kept, x: tape.replay(kept, network, x)))(tapes, rows)
        return jnp.sum(replayed**2)

    plain = eqx.filter_grad(lambda network: jnp.sum(network(rows) ** 2))(network)
    close(plain, eqx.filter_grad(loss)(network))
    # At most one for each weight matrix and one for the input of the second layer, for all rows.
    assert products(eqx.filter_grad(loss), network) <= 3


def test_layers_under_an_inner_vmap_are_computed_again():
    network = MLP([3, 8, 2], key=KEY)

    x = jax.random.normal(jax.random.key(1), (5, 3))

    def loss(network, call):
        return jnp.sum(call(network, x) ** 2)

    def outer(network, x):
        return network(x) + jax.vmap(network)(x)

    plain = eqx.filter_grad(loss)(network, outer)

    def taped(network, x):
        kept = jax.vmap(lambda x: tape.record(outer, network, x)[1])(x[None])
        return jax.vmap(lambda kept, x: tape.replay(kept, outer, network, x))(kept, x[None])[0]

    close(plain, eqx.filter_grad(loss)(network, taped))


def test_a_tape_of_another_function_is_refused():
    x = jnp.ones((5, 3))
    _, recorded = tape.record(MLP([3, 8, 8, 2], key=KEY), x)
    with pytest.raises(ValueError, match="2 of the 3 recorded layers"):
        tape.replay(recorded, MLP([3, 8, 2], key=KEY), x)


@pytest.fixture
def sequence():
    """Inputs of an LSTM for five steps of four rows, some of which are reset."""
    lstm = LSTM(3, 6, key=KEY)
    x = jax.random.normal(jax.random.key(1), (5, 4, 3))
    first = lstm(jnp.ones((4, 3)), lstm.init_state(4))
    reset = jax.random.bernoulli(jax.random.key(2), 0.3, (5, 4))
    return lstm, x, first, reset


def step_by_step(lstm, x, state, reset):
    hidden = []
    for row, new in zip(x, reset, strict=True):
        state = lstm(
            row, jax.tree.map(lambda rows, new=new: jnp.where(new[:, None], 0.0, rows), state)
        )
        hidden.append(state.hidden)
    return jnp.stack(hidden), state


def test_steps_of_an_lstm_at_once_are_those_one_by_one(sequence):
    lstm, *inputs = sequence
    close(lstm.over_time(*inputs), step_by_step(lstm, *inputs))


def record_steps(lstm, x, state, reset):
    tapes = []
    for row, new in zip(x, reset, strict=True):
        state, kept = tape.record(lstm, row, state.where_not(new))
        tapes.append(kept)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *tapes)


def test_replayed_steps_of_an_lstm_have_their_gradient(sequence):
    lstm, x, first, reset = sequence
    weights = jax.random.normal(jax.random.key(3), (5, 4, 6))
    tapes = record_steps(*sequence)

    def loss(parts, call):
        lstm, x, first = parts
        return jnp.sum(weights * call(lstm, x, first, reset)[0])

    def replayed(lstm, *inputs):
        return tape.replay(tapes, lstm.over_time, *inputs)

    parts = (lstm, x, first)
    plain = eqx.filter_value_and_grad(loss)(parts, step_by_step)
    close(plain, eqx.filter_value_and_grad(loss)(parts, lambda lstm, *rest: lstm.over_time(*rest)))
    close(plain, eqx.filter_value_and_grad(loss)(parts, replayed))


def test_the_weights_of_an_lstm_get_their_gradient_by_one_product(sequence):
    lstm, x, first, reset = sequence
    tapes = record_steps(*sequence)

    def loss(lstm):
        return jnp.sum(tape.replay(tapes, lstm.over_time, x, first, reset)[0])

    # Four go back from a step to the one before it, and one is for the bias.
    assert products(eqx.filter_grad(loss), lstm) == 1 + 4 + 1


def test_a_type_network_at_once_is_the_one_step_by_step():
    network = TypeNetwork(5, 8, 8, 4, key=KEY)
    agents = jax.random.normal(jax.random.key(1), (4, 2, 3, 3))
    shared = jax.random.normal(jax.random.key(2), (4, 2, 2))
    arrived = jax.random.bernoulli(jax.random.key(3), 0.3, (4, 2, 3))
    memory = jax.vmap(lambda _: network.init_memory(3))(jnp.arange(2))

    def step(memory, inputs):
        types, memory = jax.vmap(network)(memory, *inputs)
        return memory, types

    after, types = jax.lax.scan(step, memory, (agents, shared, arrived))
    close(network.over_time(memory, agents, shared, arrived), (types, after))
