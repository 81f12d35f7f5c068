"""Chunks of updates of GPL-Q."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin.env import make
from dropin.learners.config import LinearSchedule, TrainConfig
from dropin.learners.gpl import GPLConfig, GPLNetwork
from dropin.learners.value_based import ValueLearner
from dropin.training.chunk import RunState, train_chunk

SMALL = GPLConfig(
    type_hidden_size=8,
    type_lstm_size=8,
    type_vector_size=6,
    utility_hidden_size=8,
    rank=2,
    message_hidden_size=6,
    embedding_size=6,
)
LEARNER = ValueLearner(GPLNetwork, SMALL, TrainConfig(num_envs=4, rollout_length=2))
ENV = make("lbf", rules="reference", team_limit=3)


def first_state(seed=0):
    return RunState(LEARNER.init(jax.random.key(seed), ENV), jnp.int32(0))


def run(seed=0, chunks=(5, 5)):
    state = first_state(seed)
    trained = (state.train_state.network, state.train_state.target)
    before = jax.tree.map(np.asarray, eqx.filter(trained, eqx.is_array))
    metrics = []
    for chunk in chunks:
        state, totals, nonfinite = train_chunk((ENV, LEARNER, jnp.int32(chunk)), state)
        metrics.append(totals)
        assert int(nonfinite.metric) == int(nonfinite.state) == int(state.updates)
    return before, state.train_state, metrics


@pytest.fixture(scope="module")
def trained():
    return run()


def test_the_same_seed_gives_the_same_bits(trained):
    _, state, metrics = run()
    assert eqx.tree_equal(state.network, trained[1].network)
    assert eqx.tree_equal(metrics, trained[2])


def test_chunks_of_other_lengths_give_the_same_bits_in_the_same_compilation(trained):
    compilations = train_chunk.compilations()
    _, state, _ = run(chunks=(3, 1, 6))
    assert eqx.tree_equal(state.network, trained[1].network)
    assert train_chunk.compilations() == compilations


def test_another_seed_gives_another_run(trained):
    assert not eqx.tree_equal(run(seed=1)[1].network, trained[1].network)


def test_every_network_learns_and_the_target_moves_slowly(trained):
    (network, target), state, _ = trained
    moved = jax.tree.map(lambda a, b: np.abs(a - b).max(), network, state.network)
    assert all(leaf > 0 for leaf in jax.tree.leaves(moved))
    new, slow = jax.tree.leaves(state.network.value), jax.tree.leaves(state.target)
    for before, after, behind in zip(jax.tree.leaves(target), new, slow, strict=True):
        assert 0 < np.abs(behind - before).max() < 0.02 * np.abs(after - before).max()


def test_metrics_are_means_over_the_updates_of_a_chunk(trained):
    """Against updates that are done one by one."""
    _, state, metrics = trained
    assert int(state.updates) == 10
    single = run(chunks=[1] * 10)[2]
    for number, totals in enumerate(metrics):
        own = single[5 * number : 5 * number + 5]
        for name in ("value_loss", "prediction_loss", "prediction_accuracy", "team_size"):
            expected = np.mean([each[name].value for each in own])
            assert totals[name].value == pytest.approx(expected, rel=1e-6)
        assert totals["episodes"].value == sum(each["episodes"].value for each in own)
        assert totals["epsilon"].value == own[0]["epsilon"].value
        assert 0 <= totals["prediction_accuracy"].value <= 1
        assert 2 <= totals["team_size"].value <= 3


def test_the_first_loss_that_is_not_finite_is_named():
    state, _, _ = train_chunk((ENV, LEARNER, jnp.int32(3)), first_state())
    broken = eqx.tree_at(
        lambda s: s.train_state.network.value.graph.individual.layers[0].bias,
        state,
        replace_fn=lambda bias: bias.at[0].set(jnp.nan),
    )
    _, _, nonfinite = train_chunk((ENV, LEARNER, jnp.int32(4)), broken)
    assert int(nonfinite.metric) == 3


@pytest.mark.parametrize(
    ("step", "value"), [(0, 1.0), (3199, 1.0), (3200, 1 - 0.95 / 1500), (4_800_000, 0.05)]
)
def test_a_schedule_changes_in_steps(step, value):
    epsilon = LinearSchedule(1.0, 0.05, 4_800_000)
    assert float(epsilon(jnp.int32(step))) == pytest.approx(value, rel=1e-6)
    assert float(epsilon(jnp.int32(6_400_000))) == pytest.approx(0.05)
