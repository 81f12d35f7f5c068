from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradients import check_separate, nonzero, of_both_losses

from dropin.env import make
from dropin.learners.gpl import GPLConfig, GPLNetwork
from dropin.learners.value_based import agent_model_loss, bootstrap_value, select_action

SMALL = GPLConfig(
    type_hidden_size=6,
    type_lstm_size=5,
    type_vector_size=4,
    utility_hidden_size=5,
    rank=2,
    message_hidden_size=4,
    embedding_size=5,
)
ENV, KEY = make("lbf", team_limit=3), jax.random.key(0)
LEARNER = GPLNetwork(ENV.interface, SMALL, key=jax.random.key(0))


@pytest.fixture(scope="module")
def observation():
    return eqx.filter_jit(ENV.reset)(jax.random.key(1))[1]


def test_each_loss_reaches_its_own_part_alone(observation):
    actions, acted = jnp.array([1, 2, 3]), jnp.ones(3, bool)
    check_separate(*of_both_losses(LEARNER, LEARNER.init_memory(3), observation, actions, acted))


def test_action_values_give_the_agent_part_no_gradient(observation):
    def total(learner):
        return jnp.sum(learner(learner.init_memory(3), observation, KEY)[0].q_values)

    assert not any(nonzero(eqx.filter_jit(eqx.filter_grad(total))(LEARNER).agent))


def test_memory_is_zero_for_newcomers_and_kept_for_stayers_in_the_real_environment():
    """Against a learner whose memory is a list of what it saw of each agent since its arrival."""
    env = make("lbf", rules="reference", team_limit=5)
    learner = GPLNetwork(env.interface, SMALL, key=jax.random.key(2))
    think, step = eqx.filter_jit(learner), eqx.filter_jit(env.step)
    state, observation = eqx.filter_jit(env.reset)(jax.random.key(3))
    memory: Any = learner.init_memory(5)
    history: list[list] = [[] for _ in range(5)]
    arrivals = ends = 0
    for number in range(70):
        _, memory = think(memory, observation, KEY)
        for slot in range(5):
            if observation.arrived[slot]:
                history[slot] = []
            history[slot].append((observation.agents, observation.shared))
        for slot in np.flatnonzero(observation.present):
            alone: Any = learner.value.type_network.init_memory(5)
            for agents, shared in history[slot]:
                _, alone = TYPES(learner, alone, agents, shared)
            assert np.allclose(memory.value.hidden[slot], alone.hidden[slot], atol=1e-6)
        state, time_step = step(jax.random.key(number), state, jnp.int32(number % 6))
        observation = time_step.observation
        ends += bool(time_step.done)
        arrivals += int(observation.arrived.sum())
    assert ends >= 1
    assert arrivals > 6


def test_actions_are_greedy_but_for_a_share():
    values = jnp.array([0.0, 2.0, 1.0])
    keys = jax.random.split(jax.random.key(0), 30_000)

    def shares(is_boltzmann, epsilon, temperature):
        one = partial(
            select_action, is_boltzmann, values, jnp.float32(epsilon), jnp.float32(temperature)
        )
        return np.bincount(jax.jit(jax.vmap(one))(keys)) / keys.size

    assert shares(False, 0.3, 1) == pytest.approx([0.1, 0.8, 0.1], abs=0.01)
    weights = np.exp(np.array([0, 2, 1]) / 0.5)
    assert shares(True, 0, 0.5) == pytest.approx(weights / weights.sum(), abs=0.01)


@eqx.filter_jit
def TYPES(learner, memory, agents, shared):  # noqa: N802
    return learner.value.type_network(memory, agents, shared, jnp.zeros(agents.shape[0], bool))


def test_the_value_of_a_state():
    values = jnp.array([1.0, 3.0, 2.0])
    assert float(bootstrap_value(False, values, jnp.float32(1))) == 3
    weights = np.exp(np.array([1, 3, 2]) / 0.5)
    expected = (weights / weights.sum() * [1, 3, 2]).sum()
    assert float(bootstrap_value(True, values, jnp.float32(0.5))) == pytest.approx(
        expected, rel=1e-5
    )
    assert float(bootstrap_value(True, values, jnp.float32(1e-3))) == pytest.approx(3)


def test_the_prediction_error_is_of_teammates_that_acted(observation):
    prediction: Any
    prediction, _ = LEARNER(LEARNER.init_memory(3), observation, KEY)
    probs = np.asarray(jax.nn.softmax(prediction.teammate_logits))
    actions = jnp.array([5, 0, 4])
    missed, _, count = agent_model_loss(
        prediction.teammate_logits, actions, jnp.array([True, False, True])
    )
    assert float(count) == 1
    assert float(missed) == pytest.approx(-np.log(probs[2, 4]), rel=1e-5)
    likeliest = jnp.argmax(prediction.teammate_logits, axis=1)
    _, right, count = agent_model_loss(prediction.teammate_logits, likeliest, jnp.ones(3, bool))
    assert float(right) == float(count) == 2
