"""QL, QL-AM, GNN and GNN-AM."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradients import check_separate, of_both_losses
from hypothesis import given, settings
from hypothesis import strategies as st

from dropin.core import registry
from dropin.core.errors import InputError
from dropin.core.observation import Observation
from dropin.env import make
from dropin.learners.base import LearnerInput
from dropin.learners.gnn import GNNNetwork
from dropin.learners.positions import assign_positions, flat_input_size, flatten_input
from dropin.learners.ql import QLNetwork

NAMES = ("ql", "ql-am", "gnn", "gnn-am")
TINY = {
    "type_hidden_size": 12,
    "type_lstm_size": 11,
    "type_vector_size": 10,
    "first_hidden_size": 14,
    "second_hidden_size": 9,
    "message_hidden_size": 8,
    "embedding_size": 9,
    "readout_hidden_size": 8,
}
ENV, KEY = make("lbf", team_limit=4), jax.random.key(0)


def learner_of(name, env=ENV, **changes):
    kind = {"ql": QLNetwork, "gnn": GNNNetwork}[name.removesuffix("-am")]
    config = registry.learners[name].default_settings("lbf", **TINY, **changes)
    return kind(env.interface, config, key=jax.random.key(0))


@eqx.filter_jit
def met(learner, observation, key=KEY):
    return learner.on_arrival(learner.init_memory(observation.present.shape[0]), observation, key)


@eqx.filter_jit
def values_of(learner, memory, observation):
    prediction, after = learner(memory, observation, KEY)
    return prediction.q_values, prediction.teammate_logits, after


@pytest.fixture(scope="module")
def observation():
    """The third of four is absent."""
    first = eqx.filter_jit(ENV.reset)(jax.random.key(1))[1]
    present = jnp.array([True, True, False, True])
    return replace(first, present=present, arrived=present)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("junk", [7.0, np.nan, np.inf])
def test_what_absent_slots_hold_is_of_no_account(name, junk, observation):
    learner = learner_of(name)
    memory = met(learner, observation)
    values, *_ = values_of(learner, memory, observation)
    other = replace(observation, agents=observation.agents.at[2].set(junk))
    again, *_ = values_of(learner, memory, other)
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(values, again)


@pytest.mark.parametrize("name", ["gnn", "gnn-am"])
def test_the_order_of_the_teammates_is_of_no_account(name, observation):
    learner = learner_of(name)
    order = np.array([0, 3, 1, 2])
    rows = {field: getattr(observation, field)[order] for field in ("agents", "present", "arrived")}
    values, *_ = values_of(learner, learner.init_memory(4), observation)
    moved, *_ = values_of(learner, learner.init_memory(4), replace(observation, **rows))
    np.testing.assert_allclose(moved, values, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_learner_alone_has_values(name, observation):
    learner = learner_of(name)
    alone = jnp.array([True, False, False, False])
    values, *_ = values_of(
        learner, learner.init_memory(4), replace(observation, present=alone, arrived=alone)
    )
    assert np.isfinite(values).all()


@pytest.mark.parametrize("name", ["ql-am", "gnn-am"])
def test_values_teach_the_agent_model_nothing_and_predictions_teach_nothing_else(name, observation):
    learner = learner_of(name)
    actions = jnp.array([1, 2, 3, 4])
    check_separate(
        *of_both_losses(
            learner, met(learner, observation), observation, actions, observation.present
        )
    )


@pytest.mark.parametrize("name", ["ql-am", "gnn-am"])
def test_predictions_matter(name, observation):
    learner = learner_of(name)
    memory = met(learner, observation)
    values, logits, _ = values_of(learner, memory, observation)
    bias = learner.agent.model.readout.layers[-1].bias
    other = eqx.tree_at(
        lambda each: each.agent.model.readout.layers[-1].bias, learner, bias.at[2].add(9.0)
    )
    changed, others, _ = values_of(other, memory, observation)
    assert not np.allclose(logits, others)
    assert not np.allclose(values, changed)


def test_without_an_agent_model_nothing_is_predicted(observation):
    for name in ("ql", "gnn"):
        learner = learner_of(name)
        assert learner.agent is None
        _, logits, memory = values_of(learner, met(learner, observation), observation)
        assert logits is None
        assert memory.agent is None


def test_the_value_of_what_was_done_is_that_of_the_learners_own_action(observation):
    learner = learner_of("gnn")
    prediction, _ = eqx.filter_jit(learner)(learner.init_memory(4), observation, KEY)
    for action in range(6):
        actions = jnp.array([action, 5, 5, 5])
        taken = learner.value.value_of_taken(prediction, actions, observation.present)
        assert float(taken) == float(prediction.q_values[action])


def test_the_flat_input_by_hand():
    """Two guards of three positions, three attackers of which one is absent; with predictions."""
    env = make("fortattack", team_limit=3)
    interface = env.interface
    features, actions, max_agents_per_side = len(interface.agent_features), 8, 4
    rng = np.random.default_rng(0)
    rows, logits = rng.normal(size=(6, features)), rng.normal(size=(6, actions))
    present = np.array([True, True, False, True, False, True])
    observation = Observation(
        jnp.float32(rows), jnp.zeros(0), jnp.array(present), jnp.array(present), env.sides
    )
    inputs = LearnerInput(observation, jnp.float32(logits), jnp.array([0, 2, 2, 7, 7, 4]))
    flat = np.asarray(flatten_input(inputs, interface, max_agents_per_side))
    assert flat.shape == (flat_input_size(interface, max_agents_per_side, True),)
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = np.full((8, features), -1.0)
    told = np.full((8, actions), -1.0)
    for slot, place in {0: 0, 1: 2, 3: 7, 5: 4}.items():
        expected[place] = rows[slot]
        if slot:
            told[place] = probs[slot]
    whole = np.concatenate([expected.ravel(), told[1:].ravel()])
    np.testing.assert_allclose(flat, whole, atol=1e-6)
    plain = flatten_input(
        LearnerInput(observation, None, inputs.positions), interface, max_agents_per_side
    )
    np.testing.assert_allclose(plain, expected.ravel(), atol=1e-6)


def test_absent_foragers_have_level_zero_in_the_flat_input():
    assert (
        dict(zip(ENV.interface.agent_features, ENV.interface.absent_values, strict=True))["level"]
        == 0
    )


def watch(positions, present, arrived, sides, max_agents_per_side, key):
    observation = Observation(jnp.zeros((len(sides), 1)), jnp.zeros(0), present, arrived, sides)
    return assign_positions(positions, observation, max_agents_per_side, key)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**16), two=st.booleans())
def test_places_are_kept_while_present_and_never_shared(seed, two):
    """Over some steps of any coming and going."""
    rng, max_agents_per_side = np.random.default_rng(seed), 5
    sides = (0,) * 4 + ((1,) * 5 if two else ())
    slots = len(sides)
    present = np.ones(slots, bool)
    positions = jax.jit(watch, static_argnums=(3, 4))(
        jnp.zeros(slots, jnp.int32),
        jnp.array(present),
        jnp.array(present),
        sides,
        max_agents_per_side,
        jax.random.key(seed),
    )
    for number in range(6):
        before, stays = np.asarray(positions), rng.random(slots) < 0.6
        now = stays | (rng.random(slots) < 0.5)
        stays[0] = now[0] = True
        arrived = now & ~(present & stays)
        positions = jax.jit(watch, static_argnums=(3, 4))(
            positions,
            jnp.array(now),
            jnp.array(arrived),
            sides,
            max_agents_per_side,
            jax.random.key(number),
        )
        found = np.asarray(positions)
        assert found[0] == 0
        assert (found[now & ~arrived] == before[now & ~arrived]).all()
        assert len(set(found[now])) == now.sum()
        assert (found[now] // max_agents_per_side == np.array(sides)[now]).all()
        present = now


def test_newcomers_get_any_free_place_with_equal_chances():
    """Of the learner's side 2 is taken, so that 1, 3 and 4 are free; two enter at once."""
    sides = (0, 0, 0, 0)
    present = jnp.ones(4, bool)
    arrived = jnp.array([False, False, True, True])
    positions = jnp.array([0, 2, 1, 1])
    keys = jax.random.split(jax.random.key(0), 20_000)
    found = np.asarray(
        jax.jit(jax.vmap(lambda key: watch(positions, present, arrived, sides, 5, key)))(keys)
    )
    assert (found[:, 1] == 2).all()
    assert (found[:, 2] != found[:, 3]).all()
    for slot in (2, 3):
        shares = np.bincount(found[:, slot], minlength=5) / len(keys)
        assert shares == pytest.approx([0, 1 / 3, 0, 1 / 3, 1 / 3], abs=0.015)


def test_who_was_there_before_the_learner_gets_a_place_too(observation):
    """As a teammate that enters amid an episode meets others who did not just arrive."""
    learner = learner_of("ql")
    here = replace(observation, arrived=jnp.array([True, False, False, False]))
    memory = met(learner, here)
    found = np.asarray(memory.positions)[np.asarray(here.present)]
    assert found[0] == 0
    assert len(set(found)) == len(found)
    assert (found[1:] > 0).all()
    later = learner.on_arrival(memory, replace(here, arrived=jnp.zeros(4, bool)), jax.random.key(9))
    np.testing.assert_array_equal(later.positions, memory.positions)


def test_more_agents_than_places_get_a_clear_sentence(observation):
    learner = learner_of("ql", max_agents_per_side=3)
    with pytest.raises(InputError, match=r"input for 3 agents a side, but here can be 4"):
        met(learner, observation)


def test_ql_remembers_until_the_episode_ends(observation):
    """One memory for all: who arrives does not clear it, a new episode does."""
    learner = learner_of("ql")
    memory = met(learner, observation)
    start, _, memory = values_of(learner, memory, observation)
    later = replace(observation, arrived=jnp.array([False, False, False, True]))
    second, _, _ = values_of(learner, memory, later)
    anew, _, _ = values_of(learner, memory, observation)
    assert not np.allclose(second, start)
    np.testing.assert_allclose(anew, start, atol=1e-6)
