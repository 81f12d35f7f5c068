"""DGN and MADDPG: what they learn from, and that they learn."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matrix_game import BEST, matrix_game

from dropin.adhoc import make
from dropin.learners import find
from dropin.learners.base import Sight
from dropin.learners.dgn import DGN, attention_change
from dropin.learners.joint import Transition
from dropin.learners.maddpg import MADDPG, gumbel_softmax
from dropin.training import joint
from dropin.training.chunk import TrainConfig
from dropin.training.schedule import Linear

TINY = {
    "type_units": 12, "type_memory": 11, "type_size": 10, "first_units": 14, "second_units": 9,
}  # fmt: skip
KINDS = {"dgn": DGN, "maddpg": MADDPG}
ENV, SLOTS, ACTIONS = make("lbf", team_limit=4), 4, 6


def learner_of(name, seed=0, **changes):
    config = find(name).config("lbf", **TINY, **changes)
    return KINDS[name](ENV.interface, config, key=jax.random.key(seed))


def sight_of(learner, seed, present=(True, True, False, True)):
    seen = eqx.filter_jit(ENV.reset)(jax.random.key(seed))[1]
    seen = replace(seen, present=jnp.array(present), arrived=jnp.array(present))
    memory = eqx.filter_jit(learner.greet)(learner.start(SLOTS), seen, jax.random.key(seed))
    return Sight(replace(seen, arrived=jnp.zeros(SLOTS, bool)), seats=memory.seats)


def transition(learner, **changes):
    """The third of four is absent throughout."""
    before = sight_of(learner, 1)
    step = Transition(
        before=before,
        actions=jnp.array([3, 1, 5, 0]),
        rewards=jnp.array([1.0, 0.5, 9.0, -1.0]),
        ended=jnp.array([False, True, False, False]),
        over=jnp.array(False),
        after=replace(sight_of(learner, 2), seats=before.seats),
    )
    return replace(step, **changes)


@eqx.filter_jit
def errors(learner, target, step):
    return learner.errors(target, step, jax.random.key(7))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("junk", [7.0, np.nan])
def test_what_absent_slots_hold_is_of_no_account(name, junk):
    learner, target = learner_of(name), learner_of(name, 1)
    step = transition(learner)

    def spoilt(sight):
        return eqx.tree_at(lambda s: s.seen.agents, sight, sight.seen.agents.at[2].set(junk))

    other = replace(
        step,
        before=spoilt(step.before),
        after=spoilt(step.after),
        actions=step.actions.at[2].set(1),
        rewards=step.rewards.at[2].set(junk),
    )
    one, two = errors(learner, target, step), errors(learner, target, other)
    assert float(one.judged) == 3
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        assert np.isfinite(a)


def test_the_critic_sees_the_same_whatever_the_absent_hold():
    learner = learner_of("maddpg")
    sight, action = sight_of(learner, 1), jax.nn.one_hot(jnp.array([3, 1, 5, 0]), ACTIONS)
    value = eqx.filter_jit(learner.critic)(sight, action)
    for junk in (7.0, np.nan, np.inf):
        spoilt = eqx.tree_at(lambda s: s.seen.agents, sight, sight.seen.agents.at[2].set(junk))
        done = action.at[2].set(junk)
        np.testing.assert_array_equal(eqx.filter_jit(learner.critic)(spoilt, done), value)
    done = action.at[1].set(0.0)
    assert float(eqx.filter_jit(learner.critic)(sight, done)) != float(value)


def swapped(sight, slot):
    """The same with the agents of two slots in each other's place, as an agent would see it."""
    order = jnp.array([slot if k == 0 else 0 if k == slot else k for k in range(SLOTS)])
    seen = sight.seen
    return Sight(
        replace(
            seen,
            agents=seen.agents[order],
            present=seen.present[order],
            arrived=seen.arrived[order],
        ),
        seats=None if sight.seats is None else sight.seats[order],
    )


@pytest.mark.parametrize("slot", [1, 3])
def test_everybody_acts_as_the_learner_would_in_its_place(slot):
    """What is found for all at once is what one agent finds that sees itself in slot 0."""
    dgn, maddpg = learner_of("dgn"), learner_of("maddpg")
    sight = sight_of(dgn, 1)
    values, _ = eqx.filter_jit(dgn.judge_all)(sight)
    alone, _ = eqx.filter_jit(dgn)(dgn.start(SLOTS), swapped(sight, slot).seen, jax.random.key(0))
    np.testing.assert_allclose(values[slot], alone.values, atol=1e-5)

    sight = sight_of(maddpg, 1)
    logits = eqx.filter_jit(maddpg.logits_of_all)(sight)
    other = swapped(sight, slot)
    # The learner's place is the first one; whoever had it has the other's.
    seats = other.seats.at[0].set(0).at[slot].set(sight.seats[slot])
    memory = replace(maddpg.start(SLOTS), seats=seats)
    alone, _ = eqx.filter_jit(maddpg)(memory, other.seen, jax.random.key(0))
    np.testing.assert_allclose(logits[slot], alone.values, atol=1e-5)


def test_the_errors_of_dgn_by_hand():
    learner, target = learner_of("dgn", steadiness=0.5), learner_of("dgn", 1)
    # With new weights attention is nearly even everywhere.
    learner = eqx.tree_at(
        lambda each: each.value.attention.query,
        learner,
        replace_fn=lambda network: jax.tree.map(lambda leaf: 80 * leaf, network),
    )
    step = transition(learner)
    found = errors(learner, target, step)
    judge = eqx.filter_jit(lambda which, sight: which.judge_all(sight))
    (values, now), (_, later) = judge(learner, step.before), judge(learner, step.after)
    following, _ = judge(target, step.after)
    error, change = 0.0, 0.0
    for slot in (0, 1, 3):
        goal = float(step.rewards[slot])
        if slot != 1:
            goal += 0.99 * float(max(following[slot]))
        error += (float(values[slot, step.actions[slot]]) - goal) ** 2
        for head in range(8):
            for other in (0, 1, 3):
                p, q = float(now[head, slot, other]), float(later[head, slot, other])
                change += p * (np.log(p) - np.log(q)) / 8
    assert change > 0.01
    assert float(found.value) == pytest.approx(error, rel=1e-4)
    assert float(found.extra) == pytest.approx(0.5 * change, rel=1e-3)
    assert (float(found.judged), float(found.concerned)) == (3, 3)


def test_attention_that_stays_costs_nothing():
    learner = learner_of("dgn")
    step = transition(learner)
    same = replace(step, after=step.before)
    assert float(errors(learner, learner, same).extra) == pytest.approx(0, abs=1e-7)
    assert float(errors(learner, learner, step).extra) > 0
    # Maps over other agents are not compared.
    other = eqx.tree_at(lambda s: s.after.seen.present, step, jnp.array([True, True, False, False]))
    for changed in (other, replace(step, over=jnp.array(True))):
        found = errors(learner, learner, changed)
        assert (float(found.extra), float(found.concerned)) == (0, 0)
    # A weight that is zero is fine.
    sure = jnp.array([[[1.0, 0.0]]])
    assert float(attention_change(sure, sure, jnp.ones(2, bool))[0]) == 0


def test_the_errors_of_maddpg_by_hand():
    learner, target = learner_of("maddpg", logit_price=0.5), learner_of("maddpg", 1)
    step = transition(learner)
    found = errors(learner, target, step)
    policy = eqx.filter_jit(lambda which, sight: which.logits_of_all(sight))
    logits, later = policy(learner, step.before), policy(target, step.after)
    noise = jax.random.gumbel(jax.random.key(7), (2, SLOTS, ACTIONS))
    following = np.eye(ACTIONS)[np.argmax(later + noise[0], axis=1)]
    done = np.eye(ACTIONS)[np.asarray(step.actions)]
    error, extra = 0.0, 0.0

    def critic(which, sight, slot, joint_action):
        """With the agent in the first place, and the joint action in the order of the slots."""
        seats = np.asarray(sight.seats).copy()
        own = seats[slot]
        seats[seats == 0], seats[slot] = own, 0
        view = replace(sight, seats=jnp.asarray(seats))
        return float(which.critic(view, jnp.asarray(joint_action, jnp.float32)))

    for slot in (0, 1, 3):
        goal = float(step.rewards[slot])
        if slot != 1:
            goal += 0.99 * critic(target, step.after, slot, following)
        error += (critic(learner, step.before, slot, done) - goal) ** 2
        smooth = np.exp((logits[slot] + noise[1, slot]) / 0.1)
        instead = done.copy()
        instead[slot] = smooth / smooth.sum()
        extra += 0.5 * np.mean(np.asarray(logits[slot]) ** 2)
        extra -= critic(learner, step.before, slot, instead)
    assert float(found.value) == pytest.approx(error, rel=1e-4)
    assert float(found.extra) == pytest.approx(extra, rel=1e-3)
    assert (float(found.judged), float(found.concerned)) == (3, 3)


def test_actor_and_critic_do_not_teach_each_other():
    learner, target = learner_of("maddpg", logit_price=0.0), learner_of("maddpg", 1)
    step = transition(learner)

    def gradient(which):
        one = eqx.filter_grad(lambda each: getattr(errors(each, target, step), which))(learner)
        return tuple(
            max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(part))
            for part in (one.value, one.critic)
        )

    actor, critic = gradient("value")
    assert actor == 0 < critic
    actor, critic = gradient("extra")
    assert critic == 0 < actor


def test_the_gradient_of_a_smooth_draw():
    """Against finite differences in double precision."""
    rng = np.random.default_rng(0)
    logits, noise = rng.normal(size=5), rng.gumbel(size=5)
    weights, temperature, step = rng.normal(size=5), 0.7, 1e-6

    def value(at):
        shares = np.exp((at + noise) / temperature)
        return weights @ (shares / shares.sum())

    def ours(at):
        drawn = gumbel_softmax(at, jnp.asarray(noise, jnp.float32), temperature)
        return jnp.sum(jnp.asarray(weights, jnp.float32) * drawn)

    found = jax.grad(ours)(jnp.asarray(logits, jnp.float32))
    each = np.eye(5) * step
    expected = [(value(logits + d) - value(logits - d)) / (2 * step) for d in each]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_a_smooth_draw_at_a_low_temperature_is_an_action_of_the_policy():
    logits = jnp.log(jnp.full((20_000, 3), jnp.array([[0.5, 0.3, 0.2]])))
    noise = jax.random.gumbel(jax.random.key(0), (20_000, 3))
    drawn = np.asarray(gumbel_softmax(logits, noise, 1e-3))
    np.testing.assert_allclose(drawn.mean(0), [0.5, 0.3, 0.2], atol=0.015)
    assert (drawn.max(1) > 0.99).mean() > 0.98


@pytest.mark.parametrize("name", KINDS)
def test_two_learn_a_matrix_game(name):
    env = matrix_game()
    settings = find(name).config("matrix", **TINY, batch=32, replay=400, discount=0.9)
    learner = KINDS[name](env.interface, settings, key=jax.random.key(0))
    config = TrainConfig(
        envs=8, period=1, learning_rate=0.01, target_rate=0.1, epsilon=Linear(1.0, 0.05, 4000)
    )
    state = joint.start(env, learner, config, jax.random.key(1))
    state, _, _ = joint.advance((env, config, jnp.int32(1000)), state)
    seen = jax.tree.map(lambda leaf: leaf[0], state.seen)
    memory = jax.tree.map(lambda leaf: leaf[0], state.memory)
    sight = Sight(seen, seats=memory.seats)
    learned = state.learner
    values = learned.judge_all(sight)[0] if name == "dgn" else learned.logits_of_all(sight)
    assert jnp.argmax(values, axis=1).tolist() == list(BEST)
    state, totals, _ = joint.advance((env, config, jnp.int32(100)), state)
    # One of twenty actions is random, and the best joint action is worth 5.
    assert float(totals.returns) / float(totals.episodes) > 4.3


def test_an_actor_that_is_not_a_number_is_noticed():
    """The actor is in the extra loss alone at first: the critic's target uses the slow copy."""
    env = matrix_game()
    learner = MADDPG(
        env.interface, find("maddpg").config(**TINY, batch=4, replay=20), key=jax.random.key(0)
    )
    config = TrainConfig(envs=2, period=2)
    state = joint.start(env, learner, config, jax.random.key(1))
    bias = state.learner.value.values.layers[-1].bias
    spoilt = eqx.tree_at(
        lambda s: s.learner.value.values.layers[-1].bias, state, jnp.full_like(bias, np.nan)
    )

    def after(updates, before):
        copy = jax.tree.map(lambda leaf: leaf.copy() if eqx.is_array(leaf) else leaf, before)
        return joint.advance((env, config, jnp.int32(updates)), copy)[1:]

    told, _ = after(1, spoilt)
    assert np.isfinite(told.value_loss)
    assert not np.isfinite(told.extra_loss)
    assert [int(after(3, each)[1].loss) for each in (state, spoilt)] == [3, 0]
