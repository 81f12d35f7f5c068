import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin.adhoc import make
from dropin.learners.gpl import GPL, GPLConfig
from dropin.training.chunk import TrainConfig
from dropin.training.schedule import Linear
from dropin.training.update import advance, start

SMALL = GPLConfig(
    type_units=8, type_memory=8, type_size=6, graph_units=8, rank=2, message_units=6, embedding=6
)
CONFIG = TrainConfig(envs=4, period=2)
ENV = make("lbf", rules="reference", team_limit=3)


def run(seed=0, chunks=(5, 5)):
    learner = GPL(ENV.interface, SMALL, key=jax.random.key(seed))
    state = start(ENV, learner, CONFIG, jax.random.key(seed + 1))
    before = jax.tree.map(np.asarray, eqx.filter((state.learner, state.target), eqx.is_array))
    metrics = []
    for chunk in chunks:
        state, totals, alarm = advance((ENV, CONFIG, jnp.int32(chunk)), state)
        metrics.append(totals)
        assert int(alarm.loss) == int(alarm.game) == int(state.updates)
    return before, state, metrics


@pytest.fixture(scope="module")
def trained():
    return run()


def test_the_same_seed_gives_the_same_bits(trained):
    _, state, metrics = run()
    assert eqx.tree_equal(state.learner, trained[1].learner)
    assert eqx.tree_equal(metrics, trained[2])


def test_chunks_of_other_lengths_give_the_same_bits_in_the_same_compilation(trained):
    compiled = advance.compilations()
    _, state, _ = run(chunks=(3, 1, 6))
    assert eqx.tree_equal(state.learner, trained[1].learner)
    assert advance.compilations() == compiled


def test_another_seed_gives_another_run(trained):
    assert not eqx.tree_equal(run(seed=1)[1].learner, trained[1].learner)


def test_every_part_learns_and_the_target_follows_slowly(trained):
    (learner, target), state, _ = trained
    moved = jax.tree.map(lambda a, b: np.abs(a - b).max(), learner, state.learner)
    assert all(leaf > 0 for leaf in jax.tree.leaves(moved))
    new, slow = jax.tree.leaves(state.learner.value), jax.tree.leaves(state.target)
    for before, after, behind in zip(jax.tree.leaves(target), new, slow, strict=True):
        assert 0 < np.abs(behind - before).max() < 0.02 * np.abs(after - before).max()


def test_metrics_are_sane(trained):
    _, state, metrics = trained
    assert int(state.updates) == 10
    for totals in metrics:
        assert np.isfinite(totals.value_loss)
        assert 0 <= float(totals.accuracy) / 5 <= 1
        assert 2 <= float(totals.team_size) / 5 <= 3


def test_the_first_loss_that_is_not_a_number_is_named():
    learner = GPL(ENV.interface, SMALL, key=jax.random.key(0))
    state = start(ENV, learner, CONFIG, jax.random.key(1))
    state, _, _ = advance((ENV, CONFIG, jnp.int32(3)), state)
    broken = eqx.tree_at(lambda s: s.learner.value.graph.individual.layers[0].bias, state,
                         replace_fn=lambda bias: bias.at[0].set(jnp.nan))  # fmt: skip
    _, _, alarm = advance((ENV, CONFIG, jnp.int32(4)), broken)
    assert int(alarm.loss) == 3


@pytest.mark.parametrize(
    ("step", "value"), [(0, 1.0), (3199, 1.0), (3200, 1 - 0.95 / 1500), (4_800_000, 0.05)]
)
def test_a_schedule_goes_down_chunk_by_chunk(step, value):
    epsilon = Linear(1.0, 0.05, 4_800_000)
    assert float(epsilon(jnp.int32(step))) == pytest.approx(value, rel=1e-6)
    assert float(epsilon(jnp.int32(6_400_000))) == pytest.approx(0.05)
