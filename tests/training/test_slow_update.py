"""The compiled update against the one in NumPy."""

import dataclasses
from importlib import import_module
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import slow_update
from jax.flatten_util import ravel_pytree

from dropin.adhoc import make
from dropin.learners import find
from dropin.learners.gpl import action_values
from dropin.teams.openness import Durations
from dropin.training.chunk import TrainConfig, exploration
from dropin.training.update import collect_and_judge, follow, start, targets

TINY = {
    "type_units": 3, "type_memory": 3, "type_size": 3, "message_units": 3, "embedding": 3,
    "readout_units": 3,
}  # fmt: skip
GRAPH, LAYERS = {"graph_units": 3, "rank": 2}, {"first_units": 4, "second_units": 3}
CONFIG = TrainConfig(envs=3, period=4, learning_rate=0.01, target_rate=0.1)
VARIANTS = {
    "gpl-q": GRAPH,
    "gpl-spi": {**GRAPH, "pair_input": "agent"},
    "ql": LAYERS,
    "ql-am": {**LAYERS, "places": 4},
    "gnn": {**LAYERS, "heads": 2},
    "gnn-am": {**LAYERS, "heads": 2},
}


GPL_ALONE = pytest.mark.parametrize("updated", ["gpl-q", "gpl-spi"], indirect=True)
"""For settings that no other learner has."""


def environment():
    """With short stays, so that teams change within an update."""
    stays = Durations(active=(1, 3), waiting=(1, 2))
    return make("lbf", team_limit=3, types=["H6"], openness=stays, size=5, objects=1, horizon=6)


# What QL and GNN do is a part of what QL-AM and GNN-AM do.
@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.slow] * (name in ("ql", "gnn"))) for name in VARIANTS
    ],
)
def updated(request):
    """A state after some updates, the update from it, and what it was made of."""
    env = environment()
    entry = find(request.param)
    config = entry.config(**TINY, **VARIANTS[request.param])
    learner = import_module(entry.module).LEARNER(env.interface, config, key=jax.random.key(1))
    # Rewards are rare; larger weights make every term count.
    learner = jax.tree.map(lambda leaf: 2 * leaf, learner)
    state, after = None, start(env, learner, CONFIG, jax.random.key(2))
    for _ in range(8):
        state = after
        gradient, judged = _gradient(env, state)
        after, metrics = eqx.filter_jit(follow)(CONFIG, state, gradient, judged, jnp.zeros((0, 2)))
    collected = judged.collected
    temperature = float(exploration(CONFIG, state.updates)[1])
    was, steps, *plain = jax.tree.map(_plain, (state, collected.steps, after, gradient))
    seats = np.zeros((CONFIG.period + 1, CONFIG.envs, 3), int)
    if state.memory.seats is not None:
        seats = np.concatenate([state.memory.seats[None], collected.after.seats])
    steps = SimpleNamespace(**vars(steps), seats=seats)
    return config, was, steps, *plain, metrics, temperature, (state, collected)


@eqx.filter_jit
def _gradient(env, state):
    differentiate = eqx.filter_grad(collect_and_judge, has_aux=True)
    return differentiate(state.learner, env, CONFIG, state)


def _plain(leaf):
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    array = np.asarray(leaf)
    return array.astype(np.float64) if array.dtype == np.float32 else array


def loss_at(learner, state, steps, goals):
    return sum(slow_update.losses(learner, state, steps, goals))


def slow_goals(config, state, steps, temperature, later=None):
    target = dataclasses.replace(state.target, config=config)
    return slow_update.goals(config, state.learner, target, state, steps, later, temperature)


def slow_gradient(learner, state, steps, goals, leaf, index, eps=1e-6):
    """By central differences, for one entry of one array."""
    leaves, structure = jax.tree.flatten(learner)
    ends = []
    for sign in (1, -1):
        moved = [each.copy() for each in leaves]
        moved[leaf][index] += sign * eps
        ends.append(loss_at(jax.tree.unflatten(structure, moved), state, steps, goals))
    return (ends[0] - ends[1]) / (2 * eps)


def test_the_situation_has_everything(updated):
    steps = updated[2]
    assert steps.terminated.any() or steps.truncated.any()
    assert not steps.acted.all()
    assert (steps.observation.arrived & ~steps.truncated[..., None]).any()


def test_losses_are_those_of_the_slow_update(updated):
    config, state, steps, _, _, metrics, temperature, _ = updated
    goals = slow_goals(config, state, steps, temperature)
    value, prediction = slow_update.losses(state.learner, state, steps, goals)
    assert float(metrics.value_loss) == pytest.approx(value, rel=1e-5)
    assert float(metrics.prediction_loss) == pytest.approx(prediction, rel=1e-5)


def test_weights_and_target_after_are_those_of_the_slow_update(updated):
    """Some entries of every array of weights."""
    config, state, steps, after, gradient, _, temperature, _ = updated
    goals = slow_goals(config, state, steps, temperature)
    moments = next(part for part in state.optimiser if isinstance(part, optax.ScaleByAdamState))
    _, unravel = ravel_pytree(jax.tree.map(jnp.float32, state.learner))
    first, second = (
        jax.tree.map(np.asarray, unravel(jnp.float32(part))) for part in (moments.mu, moments.nu)
    )
    trees = (state.learner, gradient, first, second, after.learner)
    rng = np.random.default_rng(0)
    for leaf, arrays in enumerate(zip(*map(jax.tree.leaves, trees), strict=True)):
        for number in rng.permutation(arrays[0].size)[:5]:
            index = np.unravel_index(number, arrays[0].shape)
            old, fast, first, second, new = (each[index] for each in arrays)
            slow = slow_gradient(state.learner, state, steps, goals, leaf, index)
            assert fast == pytest.approx(slow, rel=2e-4, abs=2e-6)
            # Of the gradient itself: Adam would magnify what rounding does to small ones.
            expected = slow_update.adam(old, fast, first, second, int(moments.count), 0.01)
            assert new == pytest.approx(expected, rel=1e-4, abs=2e-6)
    before, later = (jax.tree.leaves(each.target) for each in (state, after))
    for old, now, new in zip(before, later, jax.tree.leaves(after.learner.value), strict=True):
        np.testing.assert_allclose(now, 0.9 * old + 0.1 * new, rtol=1e-5, atol=1e-6)


def test_sarsas_targets_are_those_of_the_slow_update(updated):
    targets_agree(updated, target="sarsa")


@GPL_ALONE
def test_optimistic_targets_are_those_of_the_slow_update(updated):
    targets_agree(updated, teammates="optimistic")


def targets_agree(updated, **changes):
    config, state, steps, _, _, _, temperature, (fast_state, collected) = updated
    config = dataclasses.replace(config, **changes)
    target = dataclasses.replace(fast_state.target, config=config)
    fast_state = dataclasses.replace(fast_state, target=target)
    later = None
    if config.target == "sarsa":
        later = collected.steps.actions[0]
        collected = eqx.tree_at(lambda c: c.later, collected, later, is_leaf=lambda x: x is None)
    found, _ = eqx.filter_jit(targets)(
        config, fast_state, collected, jnp.float32(temperature), jax.random.key(0)
    )
    expected = slow_goals(config, state, steps, temperature, later)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@GPL_ALONE
def test_sampled_teammates_agree_with_the_expectation_in_the_mean(updated):
    config, *_, (state, _) = updated
    seen = jax.tree.map(lambda leaf: leaf[0], state.seen)
    memory = jax.tree.map(lambda leaf: leaf[0], state.memory)
    learner = state.learner
    exact, _ = eqx.filter_jit(learner)(memory, seen, jax.random.key(0))
    many = dataclasses.replace(config, teammates="sampled", samples=20_000)
    weigh = eqx.filter_jit(action_values)
    drawn = weigh(many, exact.utilities, exact.logits, seen.present, jax.random.key(0))
    np.testing.assert_allclose(drawn, exact.values, atol=0.02 * np.ptp(exact.values) + 0.02)
    few = dataclasses.replace(config, teammates="sampled", samples=1)
    one = weigh(few, exact.utilities, exact.logits, seen.present, jax.random.key(0))
    assert not np.allclose(one, exact.values, atol=1e-4)
