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

from dropin.adhoc import Observation, make
from dropin.errors import InputError
from dropin.learners import find
from dropin.learners.base import Sight
from dropin.learners.gnn import GNN
from dropin.learners.ql import QL
from dropin.learners.seats import flat_size, flatten, take_seats

NAMES = ("ql", "ql-am", "gnn", "gnn-am")
TINY = {
    "type_units": 12, "type_memory": 11, "type_size": 10, "first_units": 14, "second_units": 9,
    "message_units": 8, "embedding": 9, "readout_units": 8,
}  # fmt: skip
ENV, KEY = make("lbf", team_limit=4), jax.random.key(0)


def learner_of(name, env=ENV, **changes):
    kind = {"ql": QL, "gnn": GNN}[name.removesuffix("-am")]
    config = find(name).config("lbf", **TINY, **changes)
    return kind(env.interface, config, key=jax.random.key(0))


@eqx.filter_jit
def met(learner, seen, key=KEY):
    return learner.greet(learner.start(seen.present.shape[0]), seen, key)


@eqx.filter_jit
def values_of(learner, memory, seen):
    outlook, after = learner(memory, seen, KEY)
    return outlook.values, outlook.logits, after


@pytest.fixture(scope="module")
def seen():
    """The third of four is absent."""
    first = eqx.filter_jit(ENV.reset)(jax.random.key(1))[1]
    present = jnp.array([True, True, False, True])
    return replace(first, present=present, arrived=present)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("junk", [7.0, np.nan, np.inf])
def test_what_absent_slots_hold_is_of_no_account(name, junk, seen):
    learner = learner_of(name)
    memory = met(learner, seen)
    values, *_ = values_of(learner, memory, seen)
    other = replace(seen, agents=seen.agents.at[2].set(junk))
    again, *_ = values_of(learner, memory, other)
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(values, again)


@pytest.mark.parametrize("name", ["gnn", "gnn-am"])
def test_the_order_of_the_teammates_is_of_no_account(name, seen):
    learner = learner_of(name)
    order = np.array([0, 3, 1, 2])
    rows = {field: getattr(seen, field)[order] for field in ("agents", "present", "arrived")}
    values, *_ = values_of(learner, learner.start(4), seen)
    moved, *_ = values_of(learner, learner.start(4), replace(seen, **rows))
    np.testing.assert_allclose(moved, values, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_learner_alone_has_values(name, seen):
    learner = learner_of(name)
    alone = jnp.array([True, False, False, False])
    values, *_ = values_of(learner, learner.start(4), replace(seen, present=alone, arrived=alone))
    assert np.isfinite(values).all()


@pytest.mark.parametrize("name", ["ql-am", "gnn-am"])
def test_values_teach_the_agent_model_nothing_and_predictions_teach_nothing_else(name, seen):
    learner = learner_of(name)
    actions = jnp.array([1, 2, 3, 4])
    check_separate(*of_both_losses(learner, met(learner, seen), seen, actions, seen.present))


@pytest.mark.parametrize("name", ["ql-am", "gnn-am"])
def test_predictions_matter(name, seen):
    learner = learner_of(name)
    memory = met(learner, seen)
    values, logits, _ = values_of(learner, memory, seen)
    bias = learner.agent.model.readout.layers[-1].bias
    other = eqx.tree_at(
        lambda each: each.agent.model.readout.layers[-1].bias, learner, bias.at[2].add(9.0)
    )
    changed, others, _ = values_of(other, memory, seen)
    assert not np.allclose(logits, others)
    assert not np.allclose(values, changed)


def test_without_an_agent_model_nothing_is_predicted(seen):
    for name in ("ql", "gnn"):
        learner = learner_of(name)
        assert learner.agent is None
        _, logits, memory = values_of(learner, met(learner, seen), seen)
        assert logits is None
        assert memory.agent is None


def test_the_value_of_what_was_done_is_that_of_the_learners_own_action(seen):
    learner = learner_of("gnn")
    outlook, _ = eqx.filter_jit(learner)(learner.start(4), seen, KEY)
    for action in range(6):
        actions = jnp.array([action, 5, 5, 5])
        taken = learner.value.taken(outlook, actions, seen.present)
        assert float(taken) == float(outlook.values[action])


def test_the_flat_input_by_hand():
    """Two guards of three places, three attackers of which one is absent; with predictions."""
    env = make("fortattack", team_limit=3)
    meets = env.interface
    features, actions, places = len(meets.agents), 8, 4
    rng = np.random.default_rng(0)
    rows, logits = rng.normal(size=(6, features)), rng.normal(size=(6, actions))
    present = np.array([True, True, False, True, False, True])
    seen = Observation(
        jnp.float32(rows), jnp.zeros(0), jnp.array(present), jnp.array(present), env.sides
    )
    sight = Sight(seen, jnp.float32(logits), jnp.array([0, 2, 2, 7, 7, 4]))
    flat = np.asarray(flatten(sight, meets, places))
    assert flat.shape == (flat_size(meets, places, True),)
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = np.full((8, features), -1.0)
    told = np.full((8, actions), -1.0)
    for slot, place in {0: 0, 1: 2, 3: 7, 5: 4}.items():
        expected[place] = rows[slot]
        if slot:
            told[place] = chances[slot]
    whole = np.concatenate([expected.ravel(), told[1:].ravel()])
    np.testing.assert_allclose(flat, whole, atol=1e-6)
    plain = flatten(Sight(seen, None, sight.seats), meets, places)
    np.testing.assert_allclose(plain, expected.ravel(), atol=1e-6)


def test_absent_foragers_have_level_zero_in_the_flat_input():
    assert dict(zip(ENV.interface.agents, ENV.interface.absent, strict=True))["level"] == 0


def watch(seats, present, arrived, sides, places, key):
    seen = Observation(jnp.zeros((len(sides), 1)), jnp.zeros(0), present, arrived, sides)
    return take_seats(seats, seen, places, key)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**16), two=st.booleans())
def test_places_are_kept_while_present_and_never_shared(seed, two):
    """Over some steps of any coming and going."""
    rng, places = np.random.default_rng(seed), 5
    sides = (0,) * 4 + ((1,) * 5 if two else ())
    slots = len(sides)
    present = np.ones(slots, bool)
    seats = jax.jit(watch, static_argnums=(3, 4))(
        jnp.zeros(slots, jnp.int32), jnp.array(present), jnp.array(present), sides, places,
        jax.random.key(seed),
    )  # fmt: skip
    for number in range(6):
        before, stays = np.asarray(seats), rng.random(slots) < 0.6
        now = stays | (rng.random(slots) < 0.5)
        stays[0] = now[0] = True
        arrived = now & ~(present & stays)
        seats = jax.jit(watch, static_argnums=(3, 4))(
            seats, jnp.array(now), jnp.array(arrived), sides, places, jax.random.key(number)
        )
        found = np.asarray(seats)
        assert found[0] == 0
        assert (found[now & ~arrived] == before[now & ~arrived]).all()
        assert len(set(found[now])) == now.sum()
        assert (found[now] // places == np.array(sides)[now]).all()
        present = now


def test_newcomers_get_any_free_place_with_equal_chances():
    """Of the learner's side 2 is taken, so that 1, 3 and 4 are free; two enter at once."""
    sides = (0, 0, 0, 0)
    present = jnp.ones(4, bool)
    arrived = jnp.array([False, False, True, True])
    seats = jnp.array([0, 2, 1, 1])
    keys = jax.random.split(jax.random.key(0), 20_000)
    found = np.asarray(
        jax.jit(jax.vmap(lambda key: watch(seats, present, arrived, sides, 5, key)))(keys)
    )
    assert (found[:, 1] == 2).all()
    assert (found[:, 2] != found[:, 3]).all()
    for slot in (2, 3):
        shares = np.bincount(found[:, slot], minlength=5) / len(keys)
        assert shares == pytest.approx([0, 1 / 3, 0, 1 / 3, 1 / 3], abs=0.015)


def test_who_was_there_before_the_learner_gets_a_place_too(seen):
    """As a teammate that enters amid an episode meets others who did not just arrive."""
    learner = learner_of("ql")
    here = replace(seen, arrived=jnp.array([True, False, False, False]))
    memory = met(learner, here)
    found = np.asarray(memory.seats)[np.asarray(here.present)]
    assert found[0] == 0
    assert len(set(found)) == len(found)
    assert (found[1:] > 0).all()
    later = learner.greet(memory, replace(here, arrived=jnp.zeros(4, bool)), jax.random.key(9))
    np.testing.assert_array_equal(later.seats, memory.seats)


def test_more_agents_than_places_get_a_clear_sentence(seen):
    learner = learner_of("ql", places=3)
    with pytest.raises(InputError, match=r"places for 3 agents a side, but here can be 4"):
        met(learner, seen)


def test_ql_remembers_until_the_episode_ends(seen):
    """One memory for all: who arrives does not clear it, a new episode does."""
    learner = learner_of("ql")
    memory = met(learner, seen)
    start, _, memory = values_of(learner, memory, seen)
    later = replace(seen, arrived=jnp.array([False, False, False, True]))
    second, _, _ = values_of(learner, memory, later)
    anew, _, _ = values_of(learner, memory, seen)
    assert not np.allclose(second, start)
    np.testing.assert_allclose(anew, start, atol=1e-6)
