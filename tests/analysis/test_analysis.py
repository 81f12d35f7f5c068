"""Analyses of an agent whose utilities are known in closed form, against loops over its steps."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from jaxtyping import Array, Float

from dropin.agents import Agent
from dropin.analysis import (
    capture_utilities,
    correlation,
    measure,
    over_training,
    pair_utilities,
    shooting_values,
    teammate_utilities,
)
from dropin.core import registry
from dropin.core.errors import InputError
from dropin.core.observation import Interface
from dropin.env import make
from dropin.learners.base import LearnerNetwork, Prediction, ValueNetwork
from dropin.learners.gpl import GPLConfig, GPLNetwork
from dropin.learners.network_policy import NetworkPolicy
from dropin.models.coordination import AgentFactors, Utilities
from dropin.models.type_inference import FeedforwardTypeNetwork
from dropin.training.chunk import RunState
from dropin.training.config import run_config
from dropin.training.run_directory import RunDirectory

OPTIONS: dict[str, Any] = {"steps": 60, "num_envs": 8, "seed": 3}
LONGER: dict[str, Any] = OPTIONS | {"steps": 200}
SHOOT = 7


class HandMadeValues(ValueNetwork):
    """Q^j(a) = (first feature of j) + a, and Q^jk(a, b) = (second of j + a) (second of k + b).

    The type vector of an agent is its features.
    """

    num_actions: int = eqx.field(static=True)
    has_utilities: bool = eqx.field(static=True)

    def infer_types(self, memory, inputs):
        return inputs.observation.agents, memory

    def predict_values(self, types: Float[Array, "slot type"], inputs, key) -> Prediction:
        action = jnp.arange(float(self.num_actions))
        individual = types[:, :1] + action[None]
        factors = AgentFactors((types[:, 1:2] + action[None])[:, :, None])
        # What the agent does depends on everything that it sees.
        q_values = jnp.sin(3 * action + jnp.sum(types) + jnp.sum(inputs.observation.shared))
        return Prediction(
            q_values, utilities=Utilities(individual, factors) if self.has_utilities else None
        )


def hand_made(env, learner="gpl-q"):
    """Return an agent with known values; only that of GPL has utilities."""
    unused = FeedforwardTypeNetwork(1, 1, 1, 1, key=jax.random.key(0))
    values = HandMadeValues(unused, len(env.game.actions), learner == "gpl-q")
    network = LearnerNetwork(values, None, GPLConfig(), env.interface)
    return Agent(NetworkPolicy(network, jnp.float32(1)), learner, GPLConfig())


def everything(env, step):
    return step


@pytest.fixture(scope="module", params=["paper", "reference"])
def fort(request):
    env = make("fortattack", rules=request.param, types=["G2", "A1"])
    return env, measure(hand_made(env), env, everything, **OPTIONS)


@pytest.fixture
def same_steps(fort, monkeypatch):
    """Let analyses of FortAttack measure the recorded steps.

    Compiled once more, the same episodes differ in the last bits, which collisions amplify.
    """
    env, steps = fort

    def measure_recorded(agent, env_given, measurement, **options):
        del agent
        assert env_given is env
        assert options == OPTIONS
        each = jax.vmap(jax.vmap(lambda step: measurement(env, step)))
        return jax.tree.map(np.asarray, eqx.filter_jit(each)(steps))

    monkeypatch.setattr("dropin.analysis.fortattack.measure", measure_recorded)
    return fort


def single_steps(steps):
    """Yield the steps of all environments one by one."""
    for index in np.ndindex(steps.step.terminated.shape):
        yield jax.tree.map(lambda leaf, index=index: leaf[index], steps)


def in_range(game, state, one, other):
    """Return whether the centre of one agent is in the triangle of another's laser."""
    angle = float(state.heading[one])
    dx, dy = float(state.x[other] - state.x[one]), float(state.y[other] - state.y[one])
    ahead = dx * np.cos(angle) + dy * np.sin(angle) - float(game.agent_radius)
    aside = abs(dy * np.cos(angle) - dx * np.sin(angle))
    half = float(game.laser_angle) / 2
    return aside <= np.tan(half) * ahead and ahead <= np.cos(half) * float(game.laser_length)


def test_pair_utilities_are_the_means_over_what_the_other_does(same_steps):
    env, steps = same_steps
    expected = {(who, near): [] for who in ("guard", "attacker") for near in (True, False)}
    actions = np.arange(8)
    for each in single_steps(steps):
        second = each.observation.agents[:, 1]
        for j in range(3):
            for k in range(3, 6):
                if each.state.present[j] and each.state.present[k]:
                    guard = np.mean((second[j] + SHOOT) * (second[k] + actions))
                    attacker = np.mean((second[j] + actions) * (second[k] + SHOOT))
                    near = in_range(env.game, each.state, j, k)
                    expected["guard", near].append(guard)
                    near = in_range(env.game, each.state, k, j)
                    expected["attacker", near].append(attacker)
    found = pair_utilities(hand_made(env), env, **OPTIONS).by_situation
    for (who, near), values in expected.items():
        ours = found[f"{who}, {'in' if near else 'out of'} range"]
        assert len(ours) == len(values) > 0
        np.testing.assert_allclose(np.sort(ours), np.sort(values), rtol=1e-4)


def test_values_of_shooting_are_grouped_by_who_is_in_range(same_steps):
    env, steps = same_steps
    gap, value = {True: [], False: []}, {True: [], False: []}
    for each in single_steps(steps):
        near = [
            [bool(each.state.present[j] and each.state.present[k])
             and in_range(env.game, each.state, j, k) for k in range(3, 6)]
            for j in range(3)
        ]  # fmt: skip
        values = each.prediction.q_values
        gap[any(near[0])].append(values[SHOOT] - values.max())
        value[any(map(any, near))].append(values.max())
    found = shooting_values(hand_made(env, "ql"), env, **OPTIONS)
    for ours, expected in zip(found, (gap, value), strict=True):
        for near, name in ((True, "in range"), (False, "out of range")):
            assert len(expected[near]) > 0
            np.testing.assert_allclose(
                ours.by_situation[name].sum(), sum(expected[near]), rtol=1e-4
            )
            assert len(ours.by_situation[name]) == len(expected[near])
            mean = ours.means[name]
            assert mean is not None
            assert mean.mean == pytest.approx(np.mean(expected[near]), rel=1e-4)


@pytest.fixture(scope="module")
def pack():
    env = make("wolfpack", types=["H6"])
    return env, measure(hand_made(env), env, everything, **LONGER)


def test_utilities_of_teammates_and_how_far_they_are_from_the_prey(pack):
    env, steps = pack
    expected = []
    for each in single_steps(steps):
        hunters, prey = each.state.hunters, each.state.prey
        from_learner = [abs(hunters[0] - one).sum() for one in prey]
        target = prey[int(np.argmin(from_learner))]
        for j in (1, 2):
            if hunters[j, 0] >= 0:
                utility = np.mean(each.observation.agents[j, 0] + np.arange(5))
                expected.append((utility, abs(hunters[j] - target).sum()))
    found = teammate_utilities(hand_made(env), env, **LONGER)
    np.testing.assert_allclose(sorted(zip(*found, strict=True)), sorted(expected), rtol=1e-5)


def test_the_surplus_of_the_actions_of_a_pair_that_captured(pack):
    env, steps = pack
    expected = []
    for each in single_steps(steps):
        captured, second = each.step.events.captured, each.observation.agents[:, 1]
        for j in range(3):
            for k in range(j + 1, 3):
                if any(captured[0, p] and captured[j, p] and captured[k, p] for p in range(2)):
                    pair = np.outer(second[j] + np.arange(5), second[k] + np.arange(5))
                    chosen = pair[each.step.actions[j], each.step.actions[k]]
                    expected.append(chosen - (pair.sum() - chosen) / 24)
    found = capture_utilities(hand_made(env), env, **LONGER)
    assert len(found) == len(expected) > 0
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-4, atol=1e-4)


def test_correlation_is_pearsons():
    one, two = np.array([1.0, 2, 4, 5]), np.array([2.0, 1, 5, 9])
    a, b = one - one.mean(), two - two.mean()
    found = correlation(one, two)
    assert found is not None
    assert found.r == pytest.approx((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()))
    assert found.low < found.r < found.high
    assert found.n == 4
    assert correlation([1, 1, 1], [1, 2, 3]) is None
    assert correlation([1, 2], [1, 2]) is None
    with pytest.raises(InputError, match="different lengths: 2 and 3"):
        correlation([1, 2], [1, 2, 3])


def test_a_situation_that_never_occurs_has_no_mean(fort):
    env, _ = fort
    env = eqx.tree_at(lambda env: env.game.laser_length, env, jnp.float32(1e-6))
    found = pair_utilities(hand_made(env), env, **OPTIONS)
    assert found.means["guard, in range"] is None
    assert found.means["guard, out of range"] is not None


def test_steps_follow_one_another_and_the_agent_acts_on_what_it_sees(pack):
    """Over the ends of episodes: the next observation is that of the step before."""
    _, steps = pack
    np.testing.assert_array_equal(steps.observation.agents[1:], steps.step.observation.agents[:-1])
    np.testing.assert_array_equal(
        steps.step.actions[..., 0], steps.prediction.q_values.argmax(axis=-1)
    )
    assert len(np.unique(steps.step.actions[..., 0])) > 1


def test_an_analysis_over_training(tmp_path):
    config = run_config("lbf", "gpl-q", **tiny.SETTINGS)
    files = RunDirectory(tmp_path / "run")
    files.create(config)
    interface = make("lbf", types=["H6"]).interface
    weights = {}
    for step in (0, 20, 40):
        network = eqx.filter_jit(GPLNetwork)(interface, config.settings, key=jax.random.key(step))
        agent = Agent(NetworkPolicy(network, jnp.float32(1)), "gpl-q", config.settings)
        files.save(RunState(network, jnp.int32(step)), agent, step, keep="all")
        weights[step] = np.asarray(network.value.graph.pair.layers[0].weight)

    def analyse(agent):
        return np.asarray(agent.policy.network.value.graph.pair.layers[0].weight)

    found = over_training(tmp_path / "run", analyse)
    assert list(found) == [0, 20, 40]
    np.testing.assert_equal(found, weights)
    assert list(over_training(tmp_path / "run", analyse, [20])) == [20]
    with pytest.raises(InputError, match="has no checkpoint of step 30"):
        over_training(tmp_path / "run", analyse, [30])


class NoNetwork(eqx.Module):
    """A policy that makes no predictions: always the first action."""

    interface: Interface = eqx.field(static=True)
    modes = ("greedy",)

    def init_memory(self, slots):
        return ()

    def act(self, key, observation, memory, mode="greedy"):
        return jnp.int32(0), memory


def test_analyses_that_make_no_sense_are_refused():
    lbf, fort = make("lbf", types=["H6"]), make("fortattack", types=["G2", "A1"])
    with pytest.raises(InputError, match="for FortAttack, not for 'lbf'"):
        shooting_values(hand_made(lbf), lbf)
    with pytest.raises(InputError, match="ql has no utilities"):
        pair_utilities(hand_made(fort, "ql"), fort)
    with pytest.raises(InputError, match="for Wolfpack, not for 'lbf'"):
        capture_utilities(hand_made(lbf), lbf)
    with pytest.raises(InputError, match="trained in 'lbf' and cannot play 'fortattack'"):
        pair_utilities(hand_made(lbf), fort)
    with pytest.raises(InputError, match="at least one step"):
        measure(hand_made(lbf), lbf, everything, steps=0)
    with pytest.raises(InputError, match="has no distribution"):
        measure(hand_made(lbf), lbf, everything, mode="sampled")
    other = Agent(NoNetwork(fort.interface), "walker", None)
    for analyse in (pair_utilities, shooting_values):
        with pytest.raises(InputError, match="The agent of walker cannot be analysed"):
            analyse(other, fort)


def test_whether_there_are_utilities_is_decided_by_the_prediction():
    """Not by the name of the learner."""
    env = make("wolfpack", types=["H1"])
    agent = hand_made(env)
    agent = Agent(agent.policy, "my-learner", agent.settings)
    assert "my-learner" not in registry.learners
    utility, _ = teammate_utilities(agent, env, steps=2, num_envs=1)
    assert utility.size == 4
