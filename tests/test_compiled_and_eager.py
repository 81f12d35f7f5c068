"""Compiled programs against the same computation without a compiler, for few and for many rows.

Version 0.10.2 of jax miscompiles such a program on the CPU (jax issue 39103) and is excluded.
"""

import os
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin.core import registry
from dropin.core.metrics import accumulate
from dropin.env import make
from dropin.learners.common import EpisodeReturns, episode_metrics
from dropin.learners.config import TrainConfig
from dropin.learners.replay_based import sample_transitions
from dropin.learners.value_based import agent_model_loss, bootstrap_value

pytestmark = pytest.mark.skipif(
    os.environ.get("DROPIN_TEST_XLA") != "normal",
    reason="about what the compiler does for users: make test-optimised",
)
ROWS = (3, 2100)
"""Few environments, and enough for XLA to choose other kernels."""


def test_the_case_that_jax_0_10_2_gets_wrong():
    rows = jnp.arange(32769, dtype=jnp.float32)[:, None] * jnp.array([[1.0, 0.0, 0.0]])

    def squared(row):
        return jnp.sum((jnp.eye(3) @ row) ** 2)

    found = np.asarray(jax.jit(jax.vmap(squared))(rows))
    expected = np.sum(np.asarray(rows, np.float64) ** 2, axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def same(compiled, eager, rtol=2e-5):
    for one, two in zip(jax.tree.leaves(compiled), jax.tree.leaves(eager), strict=True):
        if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            continue
        if one.dtype == jnp.float32:
            np.testing.assert_allclose(one, two, rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(one, two)


def by_rows(function, args, rows):
    """The function without vmap and without a compiler, for some of the rows."""
    some = sorted({0, rows // 2, rows - 1})
    with jax.disable_jit():
        each = [function(*jax.tree.map(lambda leaf, k=k: leaf[k], args)) for k in some]
    return np.array(some), jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("game", ["lbf", "wolfpack", "fortattack"])
def test_a_step_of_a_game(game, rows):
    """The rules alone; what types do has its own slow versions."""
    rules = make(game, rules="reference").game
    env = make(game, rules="reference")
    keys = jax.random.split(jax.random.key(0), rows)
    states = jax.jit(jax.vmap(lambda key: env.reset(key)[0].game))(keys)
    number = len(rules.actions)
    actions = jax.random.randint(jax.random.key(1), (rows, env.slots), 0, number)

    def step(key, state, actions):
        following, outcome = rules.step(env._step_rng(key), state, actions)
        return following, outcome.rewards, rules.observe(following)

    compiled = jax.jit(jax.vmap(step))(keys, states, actions)
    some, eager = by_rows(step, (keys, states, actions), rows)
    same(jax.tree.map(lambda leaf: leaf[some], compiled), eager)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", ["gpl-q", "ciao-c", "ciao-s", "ql-am", "gnn-am", "dgn", "maddpg"])
def test_the_forward_pass_of_a_learner(name, rows):
    env = make("lbf", types=["H6"])
    spec = registry.learners[name]
    learner = spec.make(spec.default_settings("lbf"), TrainConfig())
    policy: Any = learner.policy_template(env.interface)
    keys = jax.random.split(jax.random.key(0), rows)
    _, observation = jax.jit(jax.vmap(env.reset))(keys)

    def forward(key, observation):
        memory = policy.init_memory(env.slots)
        return policy.act_with_prediction(key, observation, memory)[1].q_values

    compiled = jax.jit(jax.vmap(forward))(keys, observation)
    some, eager = by_rows(forward, (keys, observation), rows)
    same(compiled[some], eager)


SIZES = {
    "type_hidden_size": 8, "type_lstm_size": 8, "type_vector_size": 8, "message_hidden_size": 8,
    "embedding_size": 8, "readout_hidden_size": 8,
}  # fmt: skip
KEY = jax.random.key(0)


def learner_and_state(name, **training):
    env = make("lbf", types=["H6"], size=5, objects=1)
    spec = registry.learners[name]
    small = {"replay_capacity": 16, "batch_size": 4} if name in ("dgn", "maddpg") else {}
    learner: Any = spec.make(
        spec.default_settings("lbf", **SIZES, **small), TrainConfig(**training)
    )
    return env, learner, learner.init(KEY, env)


def gradients_agree(loss, network, *args):
    differentiate = eqx.filter_grad(loss, has_aux=True)
    compiled, _ = eqx.filter_jit(differentiate)(network, *args)
    with jax.disable_jit():
        eager, _ = differentiate(network, *args)
    same(eqx.filter(compiled, eqx.is_array), eqx.filter(eager, eqx.is_array), 1e-4)


@pytest.mark.parametrize(
    "name", ["gpl-q", "gpl-spi", "ciao-c", "ciao-s", "ql", "ql-am", "gnn", "gnn-am"]
)
def test_the_gradient_and_targets_of_a_rollout(name):
    env, learner, state = learner_and_state(name, num_envs=6, rollout_length=2)
    rollout, _ = eqx.filter_jit(learner.collect_rollout)(env, state, KEY)
    compiled, _ = eqx.filter_jit(learner.td_targets)(state, rollout, KEY)
    with jax.disable_jit():
        eager, _ = learner.td_targets(state, rollout, KEY)
    same(compiled, eager)
    gradients_agree(learner.loss, state.network, rollout, compiled)


@pytest.mark.parametrize("name", ["dgn", "maddpg"])
def test_the_gradient_of_a_batch(name):
    env, learner, state = learner_and_state(name, num_envs=6, rollout_length=2)
    _, stored, _ = eqx.filter_jit(learner.collect_rollout)(env, state, KEY)
    batch = sample_transitions(state.replay.add(stored), KEY, 4)
    gradients_agree(learner.batch_loss, state.network, state.target, batch, KEY)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("game", ["lbf", "wolfpack", "fortattack"])
def test_the_metrics_of_episodes(game, rows):
    env = make(game, types=[next(iter(registry.games[game].types("paper")))])
    keys = jax.random.split(jax.random.key(0), rows)
    states, _ = jax.jit(jax.vmap(env.reset))(keys)
    _, step = jax.jit(jax.vmap(env.step))(keys, states, jnp.zeros(rows, jnp.int32))
    done = jax.random.bernoulli(jax.random.key(1), shape=(2, rows))
    rewards = jax.random.normal(jax.random.key(2), (2, *step.rewards.shape))
    steps = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), step)
    steps = eqx.tree_at(lambda all: (all.terminated, all.rewards), steps, (done, rewards))

    def two_updates(steps):
        running, metrics = episode_metrics(env, EpisodeReturns.zeros(rows), steps)
        running, others = episode_metrics(env, running, steps)
        return running, accumulate(metrics, others)

    compiled = jax.jit(two_updates)(steps)
    with jax.disable_jit():
        same(compiled, two_updates(steps))


@pytest.mark.parametrize("rows", ROWS)
def test_the_terms_of_a_loss(rows):
    logits = jax.random.normal(jax.random.key(0), (rows, 5, 6))
    actions = jax.random.randint(jax.random.key(1), (rows, 5), 0, 6)
    acted = jax.random.bernoulli(jax.random.key(2), shape=(rows, 5))

    def terms(logits, actions, acted):
        values = [bootstrap_value(soft, logits[0], jnp.float32(0.5)) for soft in (False, True)]
        return *agent_model_loss(logits, actions, acted), *values

    compiled = jax.jit(jax.vmap(terms))(logits, actions, acted)
    some, eager = by_rows(terms, (logits, actions, acted), rows)
    same(jax.tree.map(lambda leaf: leaf[some], compiled), eager)
