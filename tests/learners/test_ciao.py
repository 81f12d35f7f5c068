"""CIAO: its regularizer and mask against slow sums, and its likeness to GPL-Q."""

from dataclasses import asdict, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from gradients import check_separate, of_both_losses

from dropin.core import registry
from dropin.core.errors import InputError
from dropin.core.metrics import to_row
from dropin.core.observation import Observation, TimeStep
from dropin.env import make
from dropin.learners.base import Prediction
from dropin.learners.ciao import VARIANTS, CIAOConfig, CIAOLearner, CIAONetwork
from dropin.learners.config import TrainConfig
from dropin.learners.gpl import GPLConfig, GPLNetwork
from dropin.learners.value_based import ValueLearner
from dropin.models.coordination import Utilities
from dropin.training.chunk import RunState, train_chunk

SETTINGS: dict[str, Any] = dict(tiny.SETTINGS)
SMALL = CIAOConfig(**SETTINGS)
PLAIN: dict[str, Any] = {"individual_sign": "free", "pair_sign": "free", "regularization": 0.0}
TRAINING = TrainConfig(num_envs=3, rollout_length=2)
ENV = make("lbf", rules="reference", team_limit=3)
TIME, ENVS, SLOTS, ACTIONS = 3, 4, 3, 6


def learner(**changes):
    return CIAOLearner(CIAONetwork, replace(SMALL, **changes), TRAINING)


def made_up(seed=0):
    """Return predictions and steps with random content; the learner always acts."""
    rng = np.random.default_rng(seed)
    shape = (TIME, ENVS, SLOTS)
    acted, arrived = rng.random(shape) < 0.7, rng.random(shape) < 0.2
    acted[..., 0], arrived[..., 0] = True, False
    seen = Observation(
        *(jnp.zeros((TIME, ENVS, *each)) for each in ((SLOTS, 1), (1,))),
        present=jnp.asarray(acted), arrived=jnp.asarray(arrived), sides=(0,) * SLOTS,
    )  # fmt: skip
    numbers, flags = jnp.zeros(shape), jnp.zeros((TIME, ENVS), bool)
    steps = TimeStep(
        observation=seen, final_observation=seen, rewards=numbers, shaping=numbers,
        terminated=flags, truncated=flags, actions=jnp.asarray(rng.integers(0, ACTIONS, shape)),
        acted=jnp.asarray(acted), removed=jnp.zeros(shape, bool),
        type_changed=jnp.zeros(shape, bool), events=None,
    )  # fmt: skip
    individual = jnp.asarray(rng.normal(size=(*shape, ACTIONS)), jnp.float32)
    factors: object = None
    prediction = Prediction(jnp.zeros((TIME, ENVS, ACTIONS)), None, Utilities(individual, factors))  # pyright: ignore[reportArgumentType]
    return prediction, steps, jnp.asarray(rng.random((TIME, ENVS)), jnp.float32)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("graph", ["complete", "star"])
def test_the_loss_is_that_of_a_slow_sum(graph, mask):
    prediction, steps, errors = made_up()
    individual, taken = np.asarray(prediction.utilities.individual), np.asarray(steps.actions)
    squared, differences, dropped = [], [], 0
    for index in np.ndindex(TIME, ENVS):
        if mask and steps.final_observation.arrived[index].any():
            dropped += 1
            continue
        squared.append(float(errors[index]))
        there = np.flatnonzero(steps.acted[index])
        own = [individual[index][j, taken[index][j]] for j in there]
        if graph == "star":
            differences.append((own[0] - sum(own[1:])) ** 2)
        else:
            differences += [(each - own[0]) ** 2 for each in own]
    assert 0 < dropped < TIME * ENVS if mask else not dropped
    found, metrics = learner(graph=graph, mask_growth=mask, regularization=0.3).value_loss(
        prediction, steps, errors
    )
    np.testing.assert_allclose(found, np.mean(squared) + 0.3 * np.mean(differences), rtol=1e-5)
    assert to_row(metrics)["value_loss"] == pytest.approx(np.mean(squared), rel=1e-5)
    assert to_row(metrics)["regularizer"] == pytest.approx(np.mean(differences), rel=1e-5)


@pytest.mark.parametrize(("graph", "moved"), [("complete", "others"), ("star", "learner")])
def test_the_regularizer_pulls_teammates_or_the_learner(graph, moved):
    prediction, steps, errors = made_up()
    made = learner(graph=graph)

    def loss(individual):
        utilities = Utilities(individual, prediction.utilities.factors)
        return made.value_loss(replace(prediction, utilities=utilities), steps, errors)[0]

    gradient = np.asarray(jax.grad(loss)(prediction.utilities.individual))
    own, others = np.any(gradient[:, :, 0]), np.any(gradient[:, :, 1:])
    assert (own, others) == ((False, True) if moved == "others" else (True, False))


def train(made, env, updates=6):
    state = RunState(made.init(jax.random.key(0), env), jnp.int32(0))
    return train_chunk((env, made, jnp.int32(updates)), state)[0].train_state.network


def arrays(network):
    return jax.tree.leaves(eqx.filter(network, eqx.is_array))


def test_without_signs_and_regularizer_it_is_gpl_q_to_the_bit():
    own = {name: value for name, value in asdict(SMALL).items() if name in asdict(GPLConfig())}
    gpl = train(ValueLearner(GPLNetwork, GPLConfig(**own), TRAINING), ENV)
    ciao = train(learner(**PLAIN), ENV)
    for one, other in zip(arrays(gpl), arrays(ciao), strict=True):
        assert np.array_equal(one, other)


def test_in_a_team_of_two_the_star_is_the_complete_graph():
    env = make("lbf", rules="reference", team_limit=2)
    changes = {"regularization": 0.0}  # The two have other regularizers.
    star, complete = (train(learner(graph=graph, **changes), env) for graph in ("star", "complete"))
    for one, other in zip(arrays(star), arrays(complete), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("graph", ["complete", "star"])
def test_each_loss_reaches_its_own_part_alone(graph):
    network = CIAONetwork(ENV.interface, replace(SMALL, graph=graph), key=jax.random.key(1))
    _, observation = eqx.filter_jit(ENV.reset)(jax.random.key(1))
    actions, acted = jnp.array([1, 2, 3]), jnp.ones(3, bool)
    memory = network.init_memory(3)
    check_separate(*of_both_losses(network, memory, observation, actions, acted))


def test_the_agent_model_of_a_star_passes_messages_along_its_edges():
    """What one teammate does changes no prediction about another."""
    networks = {
        graph: CIAONetwork(ENV.interface, replace(SMALL, graph=graph), key=jax.random.key(1))
        for graph in ("complete", "star")
    }
    _, observation = eqx.filter_jit(ENV.reset)(jax.random.key(1))
    other = replace(observation, agents=observation.agents.at[1].add(1.0))
    for graph, network in networks.items():
        assert network.agent is not None
        memory = network.init_memory(3).agent
        before, after = (network.agent(memory, each)[0] for each in (observation, other))
        assert np.array_equal(before[2], after[2]) == (graph == "star")
        assert not np.array_equal(before[0], after[0])


def test_the_two_learners_and_the_variants_are_settings():
    for name, graph in (("ciao-c", "complete"), ("ciao-s", "star")):
        spec = registry.learners[name]
        assert spec.default_settings("lbf").graph == graph
        assert spec.default_settings("fortattack").rank == 6
        for changes in VARIANTS.values():
            settings = spec.default_settings("lbf", **changes)
            assert [getattr(settings, each) for each in changes] == list(changes.values())
    with pytest.raises(InputError, match="graph of ciao-s is 'star'"):
        tiny.run("nowhere", "ciao-s", graph="complete")


@pytest.mark.parametrize("name", ["ciao-c", "ciao-s"])
def test_it_trains(name, tmp_path):
    agent = tiny.run(tmp_path / "run", name, mask_growth=True)
    assert agent.learner == name
    header = (tmp_path / "run" / "metrics.csv").read_text().splitlines()[0]
    assert "regularizer" in header
