from itertools import combinations, permutations, product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from slow_models import slow_mlp

from dropin.models import coordination
from dropin.models.coordination import CoordinationGraph
from dropin.models.pairs import other_rows, swap_pairs

ACTIONS, TYPES, HIDDEN, RANK = 3, 5, 7, 2
joint_action_value = eqx.filter_jit(coordination.joint_action_value)
marginal_action_values = eqx.filter_jit(coordination.marginal_action_values)
optimistic_values = eqx.filter_jit(coordination.optimistic_values)
utilities_of = eqx.filter_jit(CoordinationGraph.__call__)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def graph(pair_input, seed=0):
    made = CoordinationGraph(
        type_size=TYPES,
        hidden_size=HIDDEN,
        num_actions=ACTIONS,
        rank=RANK,
        pair_input=pair_input,
        key=jax.random.key(seed),
    )
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float64), made)


def draw(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape, jnp.float64)


def slow_utilities(network, types):
    """Eq. 6 and 7 for the agents given, each term by itself."""
    types = np.asarray(types)
    agents = range(len(types))
    individual = [slow_mlp(network.individual, types[j], types[0]) for j in agents]

    def factor(j, k):
        inputs = (types[j], types[k], types[0])
        if network.pair_input == "agent":
            inputs = (types[j], types[0])
        return slow_mlp(network.pair, *inputs).reshape(ACTIONS, RANK)

    pairs = {(j, k): factor(j, k) @ factor(k, j).T for j, k in permutations(agents, 2)}
    return individual, pairs


def slow_joint(individual, pairs, actions):
    """Eq. 5."""
    agents = range(len(individual))
    total = sum(individual[j][actions[j]] for j in agents)
    return total + sum(pairs[j, k][actions[j], actions[k]] for j, k in combinations(agents, 2))


PAIR_INPUTS = pytest.mark.parametrize("pair_input", ["pair", "agent"])


def test_pairs_take_the_partner_as_an_input_by_default():
    made = CoordinationGraph(TYPES, HIDDEN, ACTIONS, RANK, key=jax.random.key(0))
    assert made.pair_input == "pair"
    sizes = [layer.weight.shape for layer in made.pair.layers]
    assert sizes == [(3 * TYPES, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, ACTIONS * RANK)]


@PAIR_INPUTS
@pytest.mark.parametrize("slots", [1, 2, 3, 4, 5])
def test_the_joint_value_is_the_sum_over_agents_and_pairs(pair_input, slots):
    network, types = graph(pair_input), draw(slots, slots, TYPES)
    individual, pairs = slow_utilities(network, types)
    everybody = jnp.ones(slots, bool)
    utilities = utilities_of(network, types)
    for actions in product(range(ACTIONS), repeat=slots):
        fast = joint_action_value(utilities, jnp.array(actions), everybody)
        assert float(fast) == pytest.approx(slow_joint(individual, pairs, actions), abs=1e-9)


@PAIR_INPUTS
@pytest.mark.parametrize("slots", [1, 2, 3, 4, 5])
def test_the_marginal_value_is_the_expectation_of_the_joint_value(pair_input, slots):
    """By brute force over all joint actions of the teammates."""
    network, types = graph(pair_input), draw(10 + slots, slots, TYPES)
    probs = jax.nn.softmax(draw(20 + slots, slots, ACTIONS))
    individual, pairs = slow_utilities(network, types)
    expected = np.zeros(ACTIONS)
    for actions in product(range(ACTIONS), repeat=slots):
        weight = np.prod([probs[j, actions[j]] for j in range(1, slots)])
        expected[actions[0]] += weight * slow_joint(individual, pairs, actions)
    fast = marginal_action_values(utilities_of(network, types), probs, jnp.ones(slots, bool))
    assert np.asarray(fast) == pytest.approx(expected, abs=1e-9)


@PAIR_INPUTS
@pytest.mark.parametrize("present", [[1, 1], [1, 1, 1, 1], [1, 0, 1, 1], [1, 0, 0, 1], [1, 0, 0]])
def test_the_optimistic_value_is_that_of_the_best_response(pair_input, present):
    """By brute force over all joint actions of the teammates that are present."""
    present = np.array(present, bool)
    network, types = graph(pair_input), draw(30, len(present), TYPES)
    individual, pairs = slow_utilities(network, types[present])
    best = np.full(ACTIONS, -np.inf)
    for actions in product(range(ACTIONS), repeat=int(present.sum())):
        best[actions[0]] = max(best[actions[0]], slow_joint(individual, pairs, actions))
    fast = optimistic_values(utilities_of(network, types), jnp.array(present))
    assert np.asarray(fast) == pytest.approx(best, abs=1e-9)


@PAIR_INPUTS
def test_permuting_teammates_changes_nothing(pair_input):
    network, types, probs = graph(pair_input), draw(1, 5, TYPES), draw(2, 5, ACTIONS)
    probs, present = jax.nn.softmax(probs), jnp.array([True, True, False, True, True])
    actions = jnp.array([0, 2, 1, 0, 2])
    order = jnp.array([0, 3, 1, 4, 2])
    before, after = utilities_of(network, types), utilities_of(network, types[order])
    assert float(joint_action_value(before, actions, present)) == pytest.approx(
        float(joint_action_value(after, actions[order], present[order])), abs=1e-9
    )
    assert np.asarray(marginal_action_values(before, probs, present)) == pytest.approx(
        np.asarray(marginal_action_values(after, probs[order], present[order])), abs=1e-9
    )


@PAIR_INPUTS
def test_an_absent_slot_changes_nothing_whatever_is_in_it(pair_input):
    network, types = graph(pair_input), draw(3, 4, TYPES)
    probs, actions = jax.nn.softmax(draw(4, 4, ACTIONS)), jnp.array([1, 2, 0, 1])
    present = jnp.array([True, True, False, True])
    here = jnp.array([0, 1, 3])
    garbage = types.at[2].set(1e6)
    without = utilities_of(network, types[here])
    for held in (types, garbage):
        utilities = utilities_of(network, held)
        assert float(joint_action_value(utilities, actions, present)) == pytest.approx(
            float(joint_action_value(without, actions[here], present[here])), abs=1e-9
        )
        assert np.asarray(marginal_action_values(utilities, probs, present)) == pytest.approx(
            np.asarray(marginal_action_values(without, probs[here], present[here])), abs=1e-9
        )


@PAIR_INPUTS
def test_no_gradient_reaches_an_absent_slot(pair_input):
    network, types = graph(pair_input), draw(3, 4, TYPES).at[2].set(1e6)
    probs, actions = jax.nn.softmax(draw(4, 4, ACTIONS)), jnp.array([1, 2, 0, 1])
    present = np.array([True, True, False, True])

    @jax.jit
    @jax.grad
    def gradient(types):
        utilities = network(types)
        joint = joint_action_value(utilities, actions, jnp.array(present))
        return joint + jnp.sum(marginal_action_values(utilities, probs, jnp.array(present)))

    rows = np.asarray(gradient(types))
    assert (rows[~present] == 0).all()
    assert np.isfinite(rows).all()
    assert rows[present].any(axis=1).all()


@PAIR_INPUTS
def test_a_pair_utility_is_the_transpose_of_the_one_seen_from_the_other_side(pair_input):
    network, types = graph(pair_input), draw(5, 4, TYPES)
    factors = utilities_of(network, types).factors
    _, pairs = slow_utilities(network, types)
    for j, k in permutations(range(4), 2):
        assert np.allclose(factors.pair_utility(j, k), factors.pair_utility(k, j).T, atol=1e-12)
        assert np.allclose(factors.pair_utility(j, k), pairs[j, k], atol=1e-9)


@PAIR_INPUTS
def test_sums_over_pairs_are_those_of_pair_utilities_weighted_by_probabilities(pair_input):
    factors = utilities_of(graph(pair_input), draw(6, 5, TYPES)).factors
    probs = np.asarray(jax.nn.softmax(draw(7, 5, ACTIONS)))
    expected = factors.expected(jnp.asarray(probs))
    for members in ([1, 1, 1, 1, 1], [0, 1, 1, 0, 1], [1, 0, 0, 1, 0], [0, 0, 1, 0, 0]):
        chosen = np.flatnonzero(members)
        total = sum(
            probs[j] @ np.asarray(factors.pair_utility(j, k)) @ probs[k]
            for j, k in combinations(chosen.tolist(), 2)
        )
        found = factors.sum_over_pairs(expected, jnp.array(members, bool))
        assert float(found) == pytest.approx(float(total), abs=1e-9)
        own = np.zeros(ACTIONS)
        for k in chosen[chosen > 0].tolist():
            own += np.asarray(factors.pair_utility(0, k)) @ probs[k]
        found = factors.sum_over_learner_pairs(expected, jnp.array(members, bool))
        assert np.asarray(found) == pytest.approx(own, abs=1e-9)


@PAIR_INPUTS
def test_the_learners_own_prediction_is_not_used(pair_input):
    network, types = graph(pair_input), draw(6, 3, TYPES)
    probs = jax.nn.softmax(draw(7, 3, ACTIONS))
    other = probs.at[0].set(jnp.array([1.0, 0.0, 0.0]))
    utilities, everybody = utilities_of(network, types), jnp.ones(3, bool)
    assert np.array_equal(
        marginal_action_values(utilities, probs, everybody),
        marginal_action_values(utilities, other, everybody),
    )


def test_other_rows_go_round_in_a_circle():
    rows = jnp.arange(4.0)[:, None]
    assert other_rows(rows)[..., 0].tolist() == [[1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]]


@pytest.mark.parametrize("slots", [2, 3, 4, 5])
def test_swapping_pairs_exchanges_the_agent_and_the_other(slots):
    agents = jnp.arange(float(slots))
    others = other_rows(agents)
    pairs = jnp.stack([jnp.broadcast_to(agents[None], others.shape), others], axis=-1)
    assert np.array_equal(swap_pairs(pairs), pairs[..., ::-1])


@PAIR_INPUTS
def test_gradients_agree_with_finite_differences(pair_input):
    network, types = graph(pair_input), draw(8, 3, TYPES)
    probs, present = jax.nn.softmax(draw(9, 3, ACTIONS)), jnp.array([True, True, True])
    values, static = eqx.partition(network, eqx.is_array)

    def loss(values):
        utilities = eqx.combine(values, static)(types)
        joint = joint_action_value(utilities, jnp.array([0, 1, 2]), present)
        return joint**2 + jnp.sum(jnp.sin(marginal_action_values(utilities, probs, present)))

    check_grads(loss, (values,), order=1, modes=["rev"], atol=1e-5, rtol=1e-5)
