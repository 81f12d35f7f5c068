"""What is shown of a learner is what it computes: against its own outputs and slow sums."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arena_rooms import room, untrained

from dropin.analysis.mind import look_inside, pair_tables
from dropin.learners.base import LearnerNetwork
from dropin.learners.gpl import GPLValueNetwork
from dropin.models.coordination import AgentFactors, PairFactors, Utilities

LEARNERS = ("gpl-q", "gpl-spi", "ql", "ql-am", "gnn", "gnn-am", "dgn", "maddpg")


def after_some_steps(learner) -> tuple[Any, Any, Any, Any]:
    """Return a policy, a key, an observation with an absent agent, and a memory."""
    config = room("lbf")
    env, policy = config.make_env(), untrained(config, learner).policy
    state, observation = eqx.filter_jit(env.reset)(jax.random.key(1))
    step, act = eqx.filter_jit(env.step), eqx.filter_jit(policy.act)
    memory = policy.init_memory(env.slots)
    key = jax.random.key(2)
    for _ in range(30):
        key, _ = jax.random.split(key)
        if not bool(observation.present.all()) and not bool(observation.arrived.any()):
            break
        action, memory = act(key, observation, memory)
        state, taken = step(key, state, action)
        observation = taken.observation
    assert not bool(observation.present.all())
    return policy, key, observation, memory


@pytest.mark.parametrize("learner", LEARNERS)
def test_looking_inside_does_not_change_what_is_done(learner):
    policy, key, observation, memory = after_some_steps(learner)
    mind = None
    for mode in policy.modes:
        wanted, wanted_memory = eqx.filter_jit(policy.act)(key, observation, memory, mode)
        look = eqx.filter_jit(look_inside)
        action, mind, after = look(policy, key, observation, memory, mode)
        assert int(action) == int(wanted) == int(mind.chosen)
        assert eqx.tree_equal(after, wanted_memory)
        _, prediction, _ = eqx.filter_jit(policy.act_with_prediction)(key, observation, memory)
        np.testing.assert_array_equal(mind.q_values, prediction.q_values)
    assert mind is not None
    has_model = learner in ("gpl-q", "gpl-spi", "ql-am", "gnn-am")
    assert (mind.teammate_probs is not None) == has_model
    assert (mind.individual is not None) == (mind.edges is not None) == learner.startswith("gpl")
    assert (mind.type_vectors is None) == (learner in ("ql", "ql-am", "maddpg"))
    assert (pair_tables(policy, key, observation, memory) is None) == (mind.edges is None)


def test_the_numbers_are_those_of_the_equations():
    """Eq. 6, 7 and 9 by NumPy, from the weights and the type vectors."""
    policy, key, observation, memory = after_some_steps("gpl-q")
    mind: Any = look_inside(policy, key, observation, memory)[1]
    tables = np.asarray(pair_tables(policy, key, observation, memory), np.float64)
    network = policy.network
    assert isinstance(network, LearnerNetwork)
    assert isinstance(network.value, GPLValueNetwork)
    graph, types = network.value.graph, np.asarray(mind.type_vectors, np.float64)
    slots, actions, rank = len(types), 6, graph.rank
    present = np.asarray(observation.present)

    individual = np.array([mlp(graph.individual, types[j], types[0]) for j in range(slots)])
    np.testing.assert_allclose(mind.individual, individual, rtol=1e-4, atol=1e-6)  # Eq. 6

    factor = {
        (j, k): mlp(graph.pair, types[j], types[k], types[0]).reshape(actions, rank)
        for j in range(slots)
        for k in range(slots)
        if j != k
    }
    pair = {(j, k): factor[j, k] @ factor[k, j].T for j, k in factor}  # Eq. 7
    for (j, k), table in pair.items():
        np.testing.assert_allclose(tables[j, k], table, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(mind.edges[j, k], np.abs(table).mean(), rtol=1e-3)
    assert not tables[range(slots), range(slots)].any()
    assert not np.diag(mind.edges).any()

    probs = np.asarray(mind.teammate_probs, np.float64)
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-5)
    others = [j for j in range(1, slots) if present[j]]
    for action in range(actions):  # Eq. 9
        value = individual[0, action]
        value += sum(probs[j] @ individual[j] + pair[0, j][action] @ probs[j] for j in others)
        value += sum(probs[j] @ pair[j, k] @ probs[k] for j in others for k in others if j < k)
        np.testing.assert_allclose(mind.q_values[action], value, rtol=1e-3, atol=1e-6)


def mlp(network, *parts):
    """Apply a network with ReLU between its layers to concatenated inputs."""
    x = np.concatenate(parts)
    for number, layer in enumerate(network.layers):
        x = x @ np.asarray(layer.weight, np.float64) + np.asarray(layer.bias, np.float64)
        x = np.maximum(x, 0) if number < len(network.layers) - 1 else x
    return x


@pytest.mark.parametrize("slots", [1, 2, 5])
@pytest.mark.parametrize("kind", [PairFactors, AgentFactors])
def test_all_tables_are_those_of_the_pairs(kind, slots):
    shape = (slots - 1, slots, 3, 2) if kind is PairFactors else (slots, 3, 2)
    factors = kind(jax.random.normal(jax.random.key(0), shape))
    tables = Utilities(jnp.zeros((slots, 3)), factors).pair_tables()
    assert tables.shape == (slots, slots, 3, 3)
    for j in range(slots):
        for k in range(slots):
            wanted = np.zeros((3, 3)) if j == k else factors.pair_utility(j, k)
            np.testing.assert_allclose(tables[j, k], wanted, rtol=1e-5, atol=1e-7)


def test_a_policy_that_is_no_network_shows_its_choice_only():
    class Stubborn(eqx.Module):
        interface = None
        modes = ("greedy",)

        def init_memory(self, slots):
            return jnp.zeros(slots)

        def act(self, key, observation, memory, mode="greedy"):
            return jnp.int32(3), memory + 1

    _, key, observation, _ = after_some_steps("ql")
    action, mind, memory = look_inside(Stubborn(), key, observation, jnp.zeros(4))  # pyright: ignore[reportArgumentType]
    assert (int(action), int(mind.chosen), mind.q_values) == (3, 3, None)
    assert memory.tolist() == [1, 1, 1, 1]
    assert pair_tables(Stubborn(), key, observation, memory) is None  # pyright: ignore[reportArgumentType]
