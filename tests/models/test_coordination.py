from itertools import combinations, product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from dropin.models import coordination
from dropin.models.coordination import CoordinationGraph, partners, turned

ACTIONS, TYPES, UNITS, RANK = 3, 5, 7, 2
joint_value = eqx.filter_jit(coordination.joint_value)
marginal_values = eqx.filter_jit(coordination.marginal_values)
utilities_of = eqx.filter_jit(CoordinationGraph.__call__)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def graph(pair_input, seed=0):
    made = CoordinationGraph(TYPES, UNITS, ACTIONS, RANK, pair_input, key=jax.random.key(seed))
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float64), made)


def draw(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape, jnp.float64)


def slow_mlp(network, *inputs):
    x = np.concatenate([np.asarray(part) for part in inputs])
    for number, layer in enumerate(network.layers):
        x = np.maximum(x, 0) if number else x
        x = x @ np.asarray(layer.weight) + np.asarray(layer.bias)
    return x


def slow_utilities(network, types):
    """Eq. 6 and 7 for the agents given, each term by itself."""
    agents = range(len(types))
    individual = [slow_mlp(network.individual, types[j], types[0]) for j in agents]

    def factor(j, k):
        inputs = (types[j], types[k], types[0])
        if network.pair_input == "agent":
            inputs = (types[j], types[0])
        return slow_mlp(network.pair, *inputs).reshape(ACTIONS, RANK)

    pairs = {(j, k): factor(j, k) @ factor(k, j).T for j in agents for k in agents if j != k}
    return individual, pairs


def slow_joint(individual, pairs, actions):
    """Eq. 5."""
    agents = range(len(individual))
    total = sum(individual[j][actions[j]] for j in agents)
    return total + sum(pairs[j, k][actions[j], actions[k]] for j, k in combinations(agents, 2))


PAIR_INPUTS = pytest.mark.parametrize("pair_input", ["pair", "agent"])


@PAIR_INPUTS
@pytest.mark.parametrize("slots", [1, 2, 3, 4, 5])
def test_the_joint_value_is_the_sum_over_agents_and_pairs(pair_input, slots):
    network, types = graph(pair_input), draw(slots, slots, TYPES)
    individual, pairs = slow_utilities(network, types)
    everybody = jnp.ones(slots, bool)
    utilities = utilities_of(network, types)
    for actions in product(range(ACTIONS), repeat=slots):
        fast = joint_value(utilities, jnp.array(actions), everybody)
        assert float(fast) == pytest.approx(slow_joint(individual, pairs, actions), abs=1e-9)


@PAIR_INPUTS
@pytest.mark.parametrize("slots", [1, 2, 3, 4, 5])
def test_the_marginal_value_is_the_expectation_of_the_joint_value(pair_input, slots):
    """By brute force over all joint actions of the teammates."""
    network, types = graph(pair_input), draw(10 + slots, slots, TYPES)
    chances = jax.nn.softmax(draw(20 + slots, slots, ACTIONS))
    individual, pairs = slow_utilities(network, types)
    expected = np.zeros(ACTIONS)
    for actions in product(range(ACTIONS), repeat=slots):
        weight = np.prod([chances[j, actions[j]] for j in range(1, slots)])
        expected[actions[0]] += weight * slow_joint(individual, pairs, actions)
    fast = marginal_values(utilities_of(network, types), chances, jnp.ones(slots, bool))
    assert np.asarray(fast) == pytest.approx(expected, abs=1e-9)


@PAIR_INPUTS
def test_permuting_teammates_changes_nothing(pair_input):
    network, types, chances = graph(pair_input), draw(1, 5, TYPES), draw(2, 5, ACTIONS)
    chances, present = jax.nn.softmax(chances), jnp.array([True, True, False, True, True])
    actions = jnp.array([0, 2, 1, 0, 2])
    order = jnp.array([0, 3, 1, 4, 2])
    assert joint_value(utilities_of(network, types), actions, present) == pytest.approx(
        float(joint_value(utilities_of(network, types[order]), actions[order], present[order])),
        abs=1e-9,
    )
    assert np.asarray(
        marginal_values(utilities_of(network, types), chances, present)
    ) == pytest.approx(
        np.asarray(
            marginal_values(utilities_of(network, types[order]), chances[order], present[order])
        ),
        abs=1e-9,
    )


@PAIR_INPUTS
def test_an_absent_slot_changes_nothing_whatever_is_in_it(pair_input):
    network, types = graph(pair_input), draw(3, 4, TYPES)
    chances, actions = jax.nn.softmax(draw(4, 4, ACTIONS)), jnp.array([1, 2, 0, 1])
    present = jnp.array([True, True, False, True])
    here = jnp.array([0, 1, 3])
    garbage = types.at[2].set(1e6)
    without = utilities_of(network, types[here])
    for held in (types, garbage):
        assert joint_value(utilities_of(network, held), actions, present) == pytest.approx(
            float(joint_value(without, actions[here], present[here])), abs=1e-9
        )
        assert np.asarray(
            marginal_values(utilities_of(network, held), chances, present)
        ) == pytest.approx(
            np.asarray(marginal_values(without, chances[here], present[here])), abs=1e-9
        )


@PAIR_INPUTS
def test_a_pair_utility_is_the_transpose_of_the_one_seen_from_the_other_side(pair_input):
    network, types = graph(pair_input), draw(5, 4, TYPES)
    factors = utilities_of(network, types).factors
    _, pairs = slow_utilities(network, types)
    for j, k in product(range(4), repeat=2):
        if j != k:
            assert np.allclose(factors.utility(j, k), factors.utility(k, j).T, atol=1e-12)
            assert np.allclose(factors.utility(j, k), pairs[j, k], atol=1e-9)


def test_the_learners_own_prediction_is_not_used():
    network, types = graph("pair"), draw(6, 3, TYPES)
    chances = jax.nn.softmax(draw(7, 3, ACTIONS))
    other = chances.at[0].set(jnp.array([1.0, 0.0, 0.0]))
    values = [
        marginal_values(utilities_of(network, types), each, jnp.ones(3, bool))
        for each in (chances, other)
    ]
    assert np.array_equal(*values)


def test_partners_go_round_in_a_circle():
    rows = jnp.arange(4.0)[:, None]
    assert partners(rows)[..., 0].tolist() == [[1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]]
    pairs = jnp.arange(12.0).reshape(3, 4)
    assert np.array_equal(turned(turned(pairs)), pairs)


def test_gradients_agree_with_finite_differences():
    network, types = graph("pair"), draw(8, 3, TYPES)
    chances, present = jax.nn.softmax(draw(9, 3, ACTIONS)), jnp.array([True, True, True])
    values, static = eqx.partition(network, eqx.is_array)

    def loss(values):
        utilities = eqx.combine(values, static)(types)
        joint = joint_value(utilities, jnp.array([0, 1, 2]), present)
        return joint**2 + jnp.sum(jnp.sin(marginal_values(utilities, chances, present)))

    check_grads(loss, (values,), order=1, modes=["rev"], atol=1e-5, rtol=1e-5)
