import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin.adhoc import make
from dropin.learners.gpl import GPLConfig
from dropin.training.schedule import Linear
from dropin.training.update import TrainConfig, advance, choose, start

SMALL = GPLConfig(
    type_units=8, type_memory=8, type_size=6, graph_units=8, rank=2, message_units=6, embedding=6
)
CONFIG = TrainConfig(envs=4, period=2)


def run(policy="q", seed=0, chunks=2):
    env = make("lbf", rules="reference", team_limit=3)
    fixed = (env, GPLConfig(**(vars(SMALL) | {"policy": policy})), CONFIG, 5)
    state = start(*fixed[:3], jax.random.key(seed))
    before = jax.tree.map(np.asarray, eqx.filter((state.learner, state.target), eqx.is_array))
    metrics = []
    for _ in range(chunks):
        state, each = advance(fixed, state)
        metrics.append(each)
    return before, state, metrics


@pytest.fixture(scope="module")
def trained():
    return run()


def test_the_same_seed_gives_the_same_bits(trained):
    _, state, metrics = run()
    assert eqx.tree_equal(state.learner, trained[1].learner)
    assert eqx.tree_equal(metrics, trained[2])


def test_another_seed_gives_another_run(trained):
    assert not eqx.tree_equal(run(seed=1)[1].learner, trained[1].learner)


def test_every_part_learns_and_the_target_follows_slowly(trained):
    (learner, target), state, _ = trained
    moved = jax.tree.map(lambda a, b: np.abs(a - b).max(), learner, state.learner)
    assert all(leaf > 0 for leaf in jax.tree.leaves(moved))
    new, slow = jax.tree.leaves(state.learner.value), jax.tree.leaves(state.target)
    for before, after, behind in zip(jax.tree.leaves(target), new, slow, strict=True):
        assert 0 < np.abs(behind - before).max() < 0.02 * np.abs(after - before).max()


def test_one_compilation_serves_all_chunks():
    compiled = advance._cached._cache_size()
    run(chunks=3)
    assert advance._cached._cache_size() == compiled


def test_metrics_are_sane(trained):
    metrics = jax.tree.map(lambda *leaf: np.concatenate(leaf), *trained[2])
    assert metrics.value_loss.shape == (10,)
    assert np.isfinite(metrics.value_loss).all()
    assert ((metrics.accuracy >= 0) & (metrics.accuracy <= 1)).all()
    assert ((metrics.team_size >= 2) & (metrics.team_size <= 3)).all()
    assert int(trained[1].updates) == 10


def test_the_boltzmann_policy_trains_too():
    _, state, metrics = run("spi", chunks=1)
    assert int(state.updates) == 5
    assert np.isfinite(metrics[0].value_loss).all()


def test_actions_are_greedy_but_for_a_share():
    values = jnp.tile(jnp.array([[0.0, 2.0, 1.0]]), (30_000, 1))
    key = jax.random.key(0)
    shares = np.bincount(choose(values, "q", jnp.float32(0.3), jnp.float32(1), key)) / 30_000
    assert shares == pytest.approx([0.1, 0.8, 0.1], abs=0.01)
    shares = np.bincount(choose(values, "spi", jnp.float32(0), jnp.float32(0.5), key)) / 30_000
    weights = np.exp(np.array([0, 2, 1]) / 0.5)
    assert shares == pytest.approx(weights / weights.sum(), abs=0.01)


@pytest.mark.parametrize(
    ("step", "value"), [(0, 1.0), (3199, 1.0), (3200, 1 - 0.95 / 1500), (4_800_000, 0.05)]
)
def test_a_schedule_goes_down_chunk_by_chunk(step, value):
    epsilon = Linear(1.0, 0.05, 4_800_000)
    assert float(epsilon(jnp.int32(step))) == pytest.approx(value, rel=1e-6)
    assert float(epsilon(jnp.int32(6_400_000))) == pytest.approx(0.05)
