import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_models import slow_mlp

from dropin.models.layers import LSTM, MLP, Linear, LSTMState, init_weights


def draw(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def is_uniform_within(bound, array):
    assert bound * 0.95 < float(jnp.abs(array).max()) <= bound
    assert float(array.mean()) == pytest.approx(0, abs=bound / 10)
    assert float(array.std()) == pytest.approx(bound / 3**0.5, rel=0.1)


def test_weights_and_bias_are_uniform_within_the_bound():
    weight, bias = init_weights(jax.random.key(0), 0.5, 25, 400)
    assert weight.shape == (25, 400)
    assert bias.shape == (400,)
    is_uniform_within(0.5, weight)
    is_uniform_within(0.5, bias)
    rows = np.concatenate([weight, bias[None]])
    assert len(np.unique(rows)) > 0.99 * rows.size


def test_a_linear_layer_starts_within_one_over_the_root_of_its_input_size():
    layer = Linear(25, 400, key=jax.random.key(0))
    is_uniform_within(0.2, layer.weight)
    is_uniform_within(0.2, layer.bias)


def test_an_lstm_starts_within_one_over_the_root_of_its_hidden_size():
    layer = LSTM(7, 100, key=jax.random.key(0))
    assert layer.weight.shape == (107, 400)
    is_uniform_within(0.1, layer.weight)
    is_uniform_within(0.1, layer.bias)


def test_initial_weights_are_drawn_without_compiling_a_program(caplog):
    key = jax.random.key(0)
    with jax.log_compiles():
        Linear(43, 29, key=key)
        assert "Compiling" not in caplog.text
        jnp.add(jnp.zeros((43, 29)), 1.0)  # To see that programs would have been noticed.
    assert "Compiling" in caplog.text


def test_the_layers_of_a_network_start_with_different_weights():
    one, two = MLP([5, 5, 5], key=jax.random.key(0)).layers
    assert not np.isin(one.weight, two.weight).any()


@pytest.mark.parametrize("sizes", [[6, 3], [6, 5, 3], [6, 5, 4, 3]])
@pytest.mark.parametrize("leading", [(), (4,), (2, 3)])
def test_a_network_is_its_layers_with_a_relu_between_them(sizes, leading):
    network, x = MLP(sizes, key=jax.random.key(1)), draw(2, *leading, 6)
    expected = np.apply_along_axis(lambda row: slow_mlp(network, row), -1, np.asarray(x))
    assert (expected < 0).any()  # There is no ReLU after the last layer.
    np.testing.assert_allclose(network(x), expected, atol=1e-5)


@pytest.mark.parametrize(
    "shapes",
    [
        [(3, 4), (1, 3)],
        [(1, 4), (3, 3)],
        [(3, 1, 2), (1, 5, 4), (1, 1, 1)],
        [(7,)],
    ],
)
def test_an_input_in_parts_gives_the_same_as_in_one_piece(shapes):
    network = MLP([7, 5, 4], key=jax.random.key(1))
    parts = [draw(seed, *shape) for seed, shape in enumerate(shapes)]
    leading = np.broadcast_shapes(*(shape[:-1] for shape in shapes))
    whole = [jnp.broadcast_to(part, (*leading, part.shape[-1])) for part in parts]
    expected = network(jnp.concatenate(whole, axis=-1))
    assert expected.shape == (*leading, 4)
    np.testing.assert_allclose(network.apply_to_parts(parts), expected, atol=1e-5)


def test_an_lstm_agrees_with_the_cell_of_equinox():
    ours, theirs = LSTM(3, 5, key=jax.random.key(0)), eqx.nn.LSTMCell(3, 5, key=jax.random.key(1))
    theirs = eqx.tree_at(
        lambda cell: (cell.weight_ih, cell.weight_hh, cell.bias),
        theirs,
        (ours.weight[:3].T, ours.weight[3:].T, ours.bias),
    )
    step, reference_step = jax.jit(ours.__call__), jax.jit(jax.vmap(theirs))
    state, rows = LSTMState(draw(1, 4, 5), draw(2, 4, 5)), (draw(1, 4, 5), draw(2, 4, 5))
    for seed in range(3, 6):
        x = draw(seed, 4, 3)
        state, rows = step(x, state), reference_step(x, rows)
        np.testing.assert_allclose(state.hidden, rows[0], atol=1e-6)
        np.testing.assert_allclose(state.cell, rows[1], atol=1e-6)


def test_the_initial_state_of_an_lstm_is_zero():
    state = LSTM(3, 5, key=jax.random.key(0)).init_state(4)
    for rows in (state.hidden, state.cell):
        assert rows.shape == (4, 5)
        assert not rows.any()
