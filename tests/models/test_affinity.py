"""Affinity graphs against a slow computation, term by term, in double precision."""

from itertools import combinations, permutations, product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_models import slow_mlp

from dropin.models import coordination
from dropin.models.affinity import (
    AffinityGraph,
    Sign,
    SignedTerms,
    StarFactors,
    apply_sign,
    value_of_joint_action,
)
from dropin.models.coordination import AgentFactors, CoordinationGraph, PairFactors, PairInput
from dropin.models.relational import GraphKind

ACTIONS, TYPES, HIDDEN, RANK, SLOTS = 3, 5, 7, 2, 4
SIGNS = {
    "free": lambda x: x,
    "positive": np.abs,
    "negative": lambda x: -np.abs(x),
    "zero": np.zeros_like,
}
GRAPHS: tuple[GraphKind, ...] = ("complete", "star")
PAIR_INPUTS: tuple[PairInput, ...] = ("pair", "agent")
joint_action_value = eqx.filter_jit(coordination.joint_action_value)
marginal_action_values = eqx.filter_jit(coordination.marginal_action_values)
value_of_taken = eqx.filter_jit(value_of_joint_action)
utilities_of = eqx.filter_jit(AffinityGraph.__call__)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def make(
    graph: GraphKind,
    individual: Sign = "free",
    pair: Sign = "free",
    pair_input: PairInput = "pair",
):
    key = jax.random.key(0)
    plain = CoordinationGraph(TYPES, HIDDEN, ACTIONS, RANK, pair_input, key=key)
    plain = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), plain)
    return AffinityGraph(plain, graph, individual, pair)


def draw(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape, jnp.float64)


def slow_terms(network, types):
    """The individual utilities, and the table of every pair that has an edge."""
    types = np.asarray(types)
    agents = range(len(types))
    own_sign, pair_sign = SIGNS[network.individual_sign], SIGNS[network.pair_sign]
    individual = [own_sign(slow_mlp(network.individual, types[j], types[0])) for j in agents]

    def factor(j, k):
        inputs = (types[j], types[k], types[0])
        if network.pair_input == "agent":
            inputs = (types[j], types[0])
        return slow_mlp(network.pair, *inputs).reshape(ACTIONS, RANK)

    tables = {
        (j, k): pair_sign(factor(j, k) @ factor(k, j).T)
        for j, k in permutations(agents, 2)
        if network.graph == "complete" or 0 in (j, k)
    }
    return individual, tables


def slow_joint(individual, tables, actions, members):
    value = sum(individual[j][actions[j]] for j in members)
    for j, k in combinations(members, 2):
        if (j, k) in tables:
            value = value + tables[j, k][actions[j], actions[k]]
    return value


@pytest.mark.parametrize("pair_input", PAIR_INPUTS)
@pytest.mark.parametrize("pair", SIGNS)
@pytest.mark.parametrize("individual", SIGNS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_values_are_sums_over_agents_and_edges(graph, individual, pair, pair_input):
    network, types = make(graph, individual, pair, pair_input), draw(1, SLOTS, TYPES)
    utilities = utilities_of(network, types)
    slow, tables = slow_terms(network, types), utilities.factors.tables()
    np.testing.assert_allclose(utilities.individual, slow[0], atol=1e-12)
    for j, k in permutations(range(SLOTS), 2):
        expected = slow[1].get((j, k), np.zeros((ACTIONS, ACTIONS)))
        np.testing.assert_allclose(utilities.factors.pair_utility(j, k), expected, atol=1e-12)
        np.testing.assert_allclose(tables[j, k], expected, atol=1e-12)
        assert not np.any(tables[j, j])
    probs = np.asarray(jax.nn.softmax(draw(2, SLOTS, ACTIONS)))
    for present in ([True] * 4, [True, False, True, True], [True, False, False, False]):
        members = np.flatnonzero(present).tolist()
        actions = [2, 0, 1, 2]
        value = joint_action_value(utilities, jnp.array(actions), jnp.array(present))
        np.testing.assert_allclose(value, slow_joint(*slow, actions, members), atol=1e-12)
        value = value_of_taken(utilities, jnp.array(actions), jnp.array(present))
        np.testing.assert_allclose(value, slow_joint(*slow, actions, members), atol=1e-12)
        marginal = np.zeros(ACTIONS)
        for joint in product(range(ACTIONS), repeat=len(members)):
            taken = dict(zip(members, joint, strict=True))
            chance = np.prod([probs[j, taken[j]] for j in members[1:]])
            marginal[joint[0]] += chance * slow_joint(*slow, taken, members)
        values = marginal_action_values(utilities, jnp.asarray(probs), jnp.array(present))
        np.testing.assert_allclose(values, marginal, atol=1e-12)


def test_signs():
    values = jnp.array([-2.0, 0.0, 3.0])
    assert apply_sign(values, "free").tolist() == [-2, 0, 3]
    assert apply_sign(values, "positive").tolist() == [2, 0, 3]
    assert apply_sign(values, "negative").tolist() == [-2, 0, -3]
    assert apply_sign(values, "zero").tolist() == [0, 0, 0]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("pair_input", PAIR_INPUTS)
def test_tables_are_made_only_if_the_sign_needs_them(graph, pair_input):
    types = draw(1, SLOTS, TYPES)
    free = make(graph, "positive", "free", pair_input)(types).factors
    factors = {"pair": PairFactors, "agent": AgentFactors}[pair_input]
    assert type(free) is (StarFactors if graph == "star" else factors)
    signed = make(graph, "positive", "positive", pair_input)(types).factors
    assert isinstance(signed, SignedTerms)
    assert type(signed.factors) is type(free)


@pytest.mark.parametrize("pair_input", PAIR_INPUTS)
def test_free_and_complete_is_the_coordination_graph(pair_input):
    network, types = make("complete", pair_input=pair_input), draw(1, SLOTS, TYPES)
    plain = CoordinationGraph.__call__(network, types)
    assert eqx.tree_equal(network(types), plain)


@pytest.mark.parametrize("sign", SIGNS)
def test_a_star_of_two_is_complete(sign):
    types, probs = draw(1, 2, TYPES), jax.nn.softmax(draw(2, 2, ACTIONS))
    star, complete = (utilities_of(make(graph, sign, sign), types) for graph in GRAPHS)
    present = jnp.array([True, True])
    np.testing.assert_allclose(
        marginal_action_values(star, probs, present),
        marginal_action_values(complete, probs, present),
        atol=1e-12,
    )


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_order_of_the_teammates_does_not_matter(graph):
    network, types = make(graph, "positive", "positive"), draw(1, SLOTS, TYPES)
    probs, present = jax.nn.softmax(draw(2, SLOTS, ACTIONS)), jnp.array([True, True, False, True])
    order = jnp.array([0, 3, 1, 2])
    values = marginal_action_values(utilities_of(network, types), probs, present)
    moved = marginal_action_values(
        utilities_of(network, types[order]), probs[order], present[order]
    )
    np.testing.assert_allclose(moved, values, atol=1e-12)


def test_zero_utilities_have_no_gradient():
    types, probs = draw(1, SLOTS, TYPES), jax.nn.softmax(draw(2, SLOTS, ACTIONS))

    def total(network):
        return jnp.sum(marginal_action_values(network(types), probs, jnp.ones(SLOTS, bool)))

    gradient = eqx.filter_grad(total)(make("star", "zero", "positive"))
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(gradient.individual))
    assert any(np.any(leaf) for leaf in jax.tree.leaves(gradient.pair))
