"""DGN and MADDPG: what they learn from, and that they learn."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matrix_game import BEST, matrix_game

from dropin.core import registry
from dropin.env import make
from dropin.learners.base import LearnerInput
from dropin.learners.config import LinearSchedule, TrainConfig
from dropin.learners.dgn import DGNNetwork, attention_change
from dropin.learners.maddpg import MADDPGNetwork, gumbel_softmax
from dropin.learners.replay_based import ReplayLearner, Transition
from dropin.training.chunk import RunState, train_chunk

TINY = {
    "type_hidden_size": 12,
    "type_lstm_size": 11,
    "type_vector_size": 10,
    "first_hidden_size": 14,
    "second_hidden_size": 9,
}
KINDS = {"dgn": DGNNetwork, "maddpg": MADDPGNetwork}
ENV, SLOTS, ACTIONS = make("lbf", team_limit=4), 4, 6


def learner_of(name, seed=0, **changes):
    config = registry.learners[name].default_settings("lbf", **TINY, **changes)
    return KINDS[name](ENV.interface, config, key=jax.random.key(seed))


def sight_of(learner, seed, present=(True, True, False, True)):
    observation = eqx.filter_jit(ENV.reset)(jax.random.key(seed))[1]
    observation = replace(observation, present=jnp.array(present), arrived=jnp.array(present))
    memory = eqx.filter_jit(learner.on_arrival)(
        learner.init_memory(SLOTS), observation, jax.random.key(seed)
    )
    return LearnerInput(
        replace(observation, arrived=jnp.zeros(SLOTS, bool)), positions=memory.positions
    )


def transition(learner, **changes):
    """The third of four is absent throughout."""
    before = sight_of(learner, 1)
    step = Transition(
        inputs=before,
        actions=jnp.array([3, 1, 5, 0]),
        rewards=jnp.array([1.0, 0.5, 9.0, -1.0]),
        done=jnp.array([False, True, False, False]),
        episode_done=jnp.array(False),
        next_inputs=replace(sight_of(learner, 2), positions=before.positions),
    )
    return replace(step, **changes)


@eqx.filter_jit
def loss_terms(learner, target, step):
    return learner.loss_terms(target, step, jax.random.key(7))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("junk", [7.0, np.nan])
def test_what_absent_slots_hold_is_of_no_account(name, junk):
    learner, target = learner_of(name), learner_of(name, 1)
    step = transition(learner)

    def spoilt(inputs):
        return eqx.tree_at(
            lambda s: s.observation.agents, inputs, inputs.observation.agents.at[2].set(junk)
        )

    other = replace(
        step,
        inputs=spoilt(step.inputs),
        next_inputs=spoilt(step.next_inputs),
        actions=step.actions.at[2].set(1),
        rewards=step.rewards.at[2].set(junk),
    )
    one, two = loss_terms(learner, target, step), loss_terms(learner, target, other)
    assert float(one.value_count) == 3
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        assert np.isfinite(a)


def test_the_critic_sees_the_same_whatever_the_absent_hold():
    learner = learner_of("maddpg")
    inputs, action = sight_of(learner, 1), jax.nn.one_hot(jnp.array([3, 1, 5, 0]), ACTIONS)
    value = eqx.filter_jit(learner.critic)(inputs, action)
    for junk in (7.0, np.nan, np.inf):
        spoilt = eqx.tree_at(
            lambda s: s.observation.agents, inputs, inputs.observation.agents.at[2].set(junk)
        )
        done = action.at[2].set(junk)
        np.testing.assert_array_equal(eqx.filter_jit(learner.critic)(spoilt, done), value)
    done = action.at[1].set(0.0)
    assert float(eqx.filter_jit(learner.critic)(inputs, done)) != float(value)


def swapped(inputs, slot):
    """The same with the agents of two slots in each other's place, as an agent would see it."""
    order = jnp.array([slot if k == 0 else 0 if k == slot else k for k in range(SLOTS)])
    observation = inputs.observation
    return LearnerInput(
        replace(
            observation,
            agents=observation.agents[order],
            present=observation.present[order],
            arrived=observation.arrived[order],
        ),
        positions=None if inputs.positions is None else inputs.positions[order],
    )


@pytest.mark.parametrize("slot", [1, 3])
def test_everybody_acts_as_the_learner_would_in_its_place(slot):
    """What is found for all at once is what one agent finds that sees itself in slot 0."""
    dgn, maddpg = learner_of("dgn"), learner_of("maddpg")
    inputs: Any = sight_of(dgn, 1)
    values, _ = eqx.filter_jit(dgn.values_of_all)(inputs)
    alone, _ = eqx.filter_jit(dgn)(
        dgn.init_memory(SLOTS), swapped(inputs, slot).observation, jax.random.key(0)
    )
    np.testing.assert_allclose(values[slot], alone.q_values, atol=1e-5)

    inputs = sight_of(maddpg, 1)
    logits = eqx.filter_jit(maddpg.logits_of_all)(inputs)
    other: Any = swapped(inputs, slot)
    # The learner's place is the first one; whoever had it has the other's.
    positions = other.positions.at[0].set(0).at[slot].set(inputs.positions[slot])
    memory = replace(maddpg.init_memory(SLOTS), positions=positions)
    alone, _ = eqx.filter_jit(maddpg)(memory, other.observation, jax.random.key(0))
    np.testing.assert_allclose(logits[slot], alone.q_values, atol=1e-5)


def test_the_errors_of_dgn_by_hand():
    learner, target = learner_of("dgn", attention_regularization=0.5), learner_of("dgn", 1)
    # With new weights attention is nearly even everywhere.
    learner = eqx.tree_at(
        lambda each: each.value.attention.query,
        learner,
        replace_fn=lambda network: jax.tree.map(lambda leaf: 80 * leaf, network),
    )
    step = transition(learner)
    found = loss_terms(learner, target, step)
    values_of = eqx.filter_jit(lambda which, inputs: which.values_of_all(inputs))
    (values, now), (_, later) = (
        values_of(learner, step.inputs),
        values_of(learner, step.next_inputs),
    )
    following, _ = values_of(target, step.next_inputs)
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
    assert float(found.auxiliary) == pytest.approx(0.5 * change, rel=1e-3)
    assert (float(found.value_count), float(found.auxiliary_count)) == (3, 3)


def test_attention_that_stays_costs_nothing():
    learner = learner_of("dgn")
    step = transition(learner)
    same = replace(step, next_inputs=step.inputs)
    assert float(loss_terms(learner, learner, same).auxiliary) == pytest.approx(0, abs=1e-7)
    assert float(loss_terms(learner, learner, step).auxiliary) > 0
    # Maps over other agents are not compared.
    other = eqx.tree_at(
        lambda s: s.next_inputs.observation.present, step, jnp.array([True, True, False, False])
    )
    for changed in (other, replace(step, episode_done=jnp.array(True))):
        found = loss_terms(learner, learner, changed)
        assert (float(found.auxiliary), float(found.auxiliary_count)) == (0, 0)
    # A weight that is zero is fine.
    sure = jnp.array([[[1.0, 0.0]]])
    assert float(attention_change(sure, sure, jnp.ones(2, bool))[0]) == 0


def test_the_errors_of_maddpg_by_hand():
    learner, target = learner_of("maddpg", logit_penalty=0.5), learner_of("maddpg", 1)
    step = transition(learner)
    found = loss_terms(learner, target, step)
    policy = eqx.filter_jit(lambda which, inputs: which.logits_of_all(inputs))
    logits, later = policy(learner, step.inputs), policy(target, step.next_inputs)
    noise = jax.random.gumbel(jax.random.key(7), (2, SLOTS, ACTIONS))
    following = np.eye(ACTIONS)[np.argmax(later + noise[0], axis=1)]
    done = np.eye(ACTIONS)[np.asarray(step.actions)]
    error, extra = 0.0, 0.0

    def critic(which, inputs, slot, joint_action):
        """With the agent in the first place, and the joint action in the order of the slots."""
        positions = np.asarray(inputs.positions).copy()
        own = positions[slot]
        positions[positions == 0], positions[slot] = own, 0
        view = replace(inputs, positions=jnp.asarray(positions))
        return float(which.critic(view, jnp.asarray(joint_action, jnp.float32)))

    for slot in (0, 1, 3):
        goal = float(step.rewards[slot])
        if slot != 1:
            goal += 0.99 * critic(target, step.next_inputs, slot, following)
        error += (critic(learner, step.inputs, slot, done) - goal) ** 2
        smooth = np.exp((logits[slot] + noise[1, slot]) / 0.1)
        instead = done.copy()
        instead[slot] = smooth / smooth.sum()
        extra += 0.5 * np.mean(np.asarray(logits[slot]) ** 2)
        extra -= critic(learner, step.inputs, slot, instead)
    assert float(found.value) == pytest.approx(error, rel=1e-4)
    assert float(found.auxiliary) == pytest.approx(extra, rel=1e-3)
    assert (float(found.value_count), float(found.auxiliary_count)) == (3, 3)


def test_actor_and_critic_do_not_teach_each_other():
    learner, target = learner_of("maddpg", logit_penalty=0.0), learner_of("maddpg", 1)
    step = transition(learner)

    def gradient(which):
        one = eqx.filter_grad(lambda each: getattr(loss_terms(each, target, step), which))(learner)
        return tuple(
            max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(part))
            for part in (one.value, one.critic)
        )

    actor, critic = gradient("value")
    assert actor == 0 < critic
    actor, critic = gradient("auxiliary")
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


def copy(tree):
    """The buffers of a state are donated, so every use needs its own."""
    return jax.tree.map(lambda leaf: leaf.copy() if eqx.is_array(leaf) else leaf, tree)


@pytest.mark.parametrize(
    ("name", "seeds", "least"),
    [("dgn", 1, 1), pytest.param("maddpg", 6, 4, marks=pytest.mark.slow)],
)
def test_two_learn_a_matrix_game(name, seeds, least):
    """The actors of MADDPG may settle on a joint action that no one alone can improve."""
    env = matrix_game()
    settings = registry.learners[name].default_settings(
        "matrix", **TINY, batch_size=32, replay_capacity=400, discount=0.9
    )
    training = TrainConfig(
        num_envs=8,
        rollout_length=1,
        learning_rate=0.01,
        target_update_rate=0.1,
        epsilon=LinearSchedule(1.0, 0.05, 4000),
    )
    learner = ReplayLearner(KINDS[name], settings, training)
    chosen, returns = [], []
    for seed in range(seeds):
        state = RunState(learner.init(jax.random.key(seed), env), jnp.int32(0))
        state, _, _ = train_chunk((env, learner, jnp.int32(1000)), state)
        chosen.append(best_actions(name, state.train_state))
        metrics: Any
        _, metrics, _ = train_chunk((env, learner, jnp.int32(100)), state)
        returns.append(metrics["return"].value)
    assert chosen.count(list(BEST)) >= least
    # One of twenty actions is random, and the best joint action is worth 5.
    assert max(returns) > 4.3


def best_actions(name, trained):
    observation, memory = jax.tree.map(lambda leaf: leaf[0], (trained.observation, trained.memory))
    inputs = LearnerInput(observation, positions=memory.positions)
    if name == "dgn":
        values = trained.network.values_of_all(inputs)[0]
    else:
        values = trained.network.logits_of_all(inputs)
    return jnp.argmax(values, axis=1).tolist()


def test_an_actor_that_is_not_finite_is_noticed():
    """Only the auxiliary loss depends on the actor at first: targets use the target network."""
    env = matrix_game()
    settings = registry.learners["maddpg"].default_settings(
        "matrix", **TINY, batch_size=4, replay_capacity=20
    )
    learner = ReplayLearner(MADDPGNetwork, settings, TrainConfig(num_envs=2, rollout_length=2))
    state = RunState(learner.init(jax.random.key(0), env), jnp.int32(0))
    bias = state.train_state.network.value.values.layers[-1].bias
    spoilt = eqx.tree_at(
        lambda s: s.train_state.network.value.values.layers[-1].bias,
        state,
        jnp.full_like(bias, np.nan),
    )

    def after(updates, before):
        return train_chunk((env, learner, jnp.int32(updates)), copy(before))[1:]

    metrics: Any
    metrics, _ = after(1, spoilt)
    assert np.isfinite(metrics["value_loss"].total)
    assert not np.isfinite(metrics["auxiliary_loss"].total)
    assert [int(after(3, each)[1].metric) for each in (state, spoilt)] == [3, 0]
