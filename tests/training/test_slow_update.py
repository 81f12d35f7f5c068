"""The compiled update against the one in NumPy."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import slow_update
from jax.flatten_util import ravel_pytree

from dropin.core import registry
from dropin.env import make
from dropin.learners.config import TrainConfig
from dropin.learners.gpl import action_values
from dropin.teams.openness import Durations

TINY = {
    "type_hidden_size": 3,
    "type_lstm_size": 3,
    "type_vector_size": 3,
    "message_hidden_size": 3,
    "embedding_size": 3,
    "readout_hidden_size": 3,
}
GRAPH, LAYERS = (
    {"utility_hidden_size": 3, "rank": 2},
    {"first_hidden_size": 4, "second_hidden_size": 3},
)
CONFIG = TrainConfig(num_envs=3, rollout_length=4, learning_rate=0.01, target_update_rate=0.1)
VARIANTS = {
    "gpl-q": GRAPH,
    "gpl-spi": {**GRAPH, "pair_input": "agent"},
    "ql": LAYERS,
    "ql-am": {**LAYERS, "max_agents_per_side": 4},
    "gnn": {**LAYERS, "num_heads": 2},
    "gnn-am": {**LAYERS, "num_heads": 2},
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
    spec = registry.learners[request.param]
    config = spec.default_settings(**TINY, **VARIANTS[request.param])
    learner: Any = spec.make(config, CONFIG)
    state: Any = None
    rollout: Any = None
    gradient: Any = None
    metrics: Any = None
    after = learner.init(jax.random.key(1), env)
    # Rewards are rare; larger weights make every term count.
    network = jax.tree.map(lambda leaf: 2 * leaf, after.network)
    after = dataclasses.replace(after, network=network, target=network.value)
    for _ in range(8):
        state = after
        rollout, gradient, after, metrics = update_in_parts(learner, env, state)
    temperature = float(learner.exploration(state.updates)[1])
    was, steps, *plain = jax.tree.map(_plain, (state, rollout.steps, after, gradient))
    positions = np.zeros((CONFIG.rollout_length + 1, CONFIG.num_envs, 3), int)
    if state.memory.positions is not None:
        positions = np.concatenate([state.memory.positions[None], rollout.next_inputs.positions])
    steps = SimpleNamespace(**vars(steps), positions=positions)
    return config, was, steps, *plain, metrics, temperature, (learner, state, rollout)


@eqx.filter_jit
def update_in_parts(learner, env, state):
    """What `update` does, with what is computed on the way."""
    key, rollout_key, target_key = jax.random.split(state.key, 3)
    rollout, carry = learner.collect_rollout(env, state, rollout_key)
    targets, memory = learner.td_targets(state, rollout, target_key)
    gradient, losses = eqx.filter_grad(learner.loss, has_aux=True)(state.network, rollout, targets)
    after, metrics = learner.next_state(
        env, state, gradient, carry, rollout.steps, key, target_memory=memory
    )
    return rollout, gradient, after, metrics | losses


def _plain(leaf):
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    array = np.asarray(leaf)
    return array.astype(np.float64) if array.dtype == np.float32 else array


@pytest.mark.parametrize("updated", ["ql-am"], indirect=True)
def test_the_update_consists_of_these_parts(updated):
    *_, (learner, state, _) = updated
    env = environment()
    *_, in_parts, metrics = update_in_parts(learner, env, state)
    after, told = eqx.filter_jit(learner.update)(env, state)
    for one, two in zip(jax.tree.leaves(after), jax.tree.leaves(in_parts), strict=True):
        if not jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    assert set(told) == set(metrics)


def loss_at(learner, state, steps, td_targets):
    return sum(slow_update.losses(learner, state, steps, td_targets))


def slow_goals(config, state, steps, temperature, later=None):
    target = dataclasses.replace(state.target, config=config)
    return slow_update.td_targets(config, state.network, target, state, steps, later, temperature)


def slow_gradient(learner, state, steps, td_targets, leaf, index, eps=1e-6):
    """By central differences, for one entry of one array."""
    leaves, structure = jax.tree.flatten(learner)
    ends = []
    for sign in (1, -1):
        moved = [each.copy() for each in leaves]
        moved[leaf][index] += sign * eps
        ends.append(loss_at(jax.tree.unflatten(structure, moved), state, steps, td_targets))
    return (ends[0] - ends[1]) / (2 * eps)


def test_the_situation_has_everything(updated):
    steps = updated[2]
    assert steps.terminated.any() or steps.truncated.any()
    assert not steps.acted.all()
    assert (steps.observation.arrived & ~steps.truncated[..., None]).any()


def test_losses_are_those_of_the_slow_update(updated):
    config, state, steps, _, _, metrics, temperature, _ = updated
    td_targets = slow_goals(config, state, steps, temperature)
    value, prediction = slow_update.losses(state.network, state, steps, td_targets)
    assert metrics["value_loss"].value == pytest.approx(value, rel=1e-5)
    if "prediction_loss" in metrics:
        assert metrics["prediction_loss"].value == pytest.approx(prediction, rel=1e-5)
    else:
        assert prediction == 0


def test_weights_and_target_after_are_those_of_the_slow_update(updated):
    """Some entries of every array of weights."""
    config, state, steps, after, gradient, _, temperature, _ = updated
    td_targets = slow_goals(config, state, steps, temperature)
    moments = next(part for part in state.opt_state if isinstance(part, optax.ScaleByAdamState))
    _, unravel = ravel_pytree(jax.tree.map(jnp.float32, state.network))
    first, second = (
        jax.tree.map(np.asarray, unravel(jnp.float32(part))) for part in (moments.mu, moments.nu)
    )
    trees = (state.network, gradient, first, second, after.network)
    rng = np.random.default_rng(0)
    for leaf, arrays in enumerate(zip(*map(jax.tree.leaves, trees), strict=True)):
        for number in rng.permutation(arrays[0].size)[:5]:
            index = np.unravel_index(number, arrays[0].shape)
            old, fast, first, second, new = (each[index] for each in arrays)
            slow = slow_gradient(state.network, state, steps, td_targets, leaf, index)
            assert fast == pytest.approx(slow, rel=2e-4, abs=2e-6)
            # Of the gradient itself: Adam would magnify what rounding does to small ones.
            expected = slow_update.adam(
                old, fast, first, second, int(np.asarray(moments.count)), 0.01
            )
            assert new == pytest.approx(expected, rel=1e-4, abs=2e-6)
    before, later = (jax.tree.leaves(each.target) for each in (state, after))
    for old, now, new in zip(before, later, jax.tree.leaves(after.network.value), strict=True):
        np.testing.assert_allclose(now, 0.9 * old + 0.1 * new, rtol=1e-5, atol=1e-6)


def test_sarsas_targets_are_those_of_the_slow_update(updated):
    targets_agree(updated, target="sarsa")


@GPL_ALONE
def test_optimistic_targets_are_those_of_the_slow_update(updated):
    targets_agree(updated, teammate_actions="optimistic")


def targets_agree(updated, **changes):
    config, state, steps, _, _, _, temperature, (learner, fast_state, rollout) = updated
    config = dataclasses.replace(config, **changes)
    target = dataclasses.replace(fast_state.target, config=config)
    fast_state = dataclasses.replace(fast_state, target=target)
    later = None
    if config.target == "sarsa":
        later = rollout.steps.actions[0]
        rollout = eqx.tree_at(lambda c: c.next_actions, rollout, later, is_leaf=lambda x: x is None)
    changed = dataclasses.replace(learner, config=config)
    found, _ = eqx.filter_jit(changed.td_targets)(fast_state, rollout, jax.random.key(0))
    expected = slow_goals(config, state, steps, temperature, later)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@GPL_ALONE
def test_sampled_teammates_agree_with_the_expectation_in_the_mean(updated):
    config, *_, (_, state, _) = updated
    observation = jax.tree.map(lambda leaf: leaf[0], state.observation)
    memory = jax.tree.map(lambda leaf: leaf[0], state.memory)
    learner = state.network
    exact, _ = eqx.filter_jit(learner)(memory, observation, jax.random.key(0))
    many = dataclasses.replace(config, teammate_actions="sampled", num_samples=20_000)
    weigh = eqx.filter_jit(action_values)
    drawn = weigh(
        many, exact.utilities, exact.teammate_logits, observation.present, jax.random.key(0)
    )
    np.testing.assert_allclose(drawn, exact.q_values, atol=0.02 * np.ptp(exact.q_values) + 0.02)
    few = dataclasses.replace(config, teammate_actions="sampled", num_samples=1)
    one = weigh(few, exact.utilities, exact.teammate_logits, observation.present, jax.random.key(0))
    assert not np.allclose(one, exact.q_values, atol=1e-4)
