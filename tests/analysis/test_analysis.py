"""Analyses of an agent whose utilities are known in closed form, against loops over its steps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

from dropin.adhoc import Interface, make
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
from dropin.errors import InputError
from dropin.learners.base import Memory, Outlook
from dropin.learners.gpl import GPL, GPLConfig
from dropin.models.coordination import AgentFactors, Utilities
from dropin.training.config import run_config
from dropin.training.directory import RunDirectory

HOW = {"steps": 60, "envs": 8, "seed": 3}
SHOOT = 7


class HandMade(eqx.Module):
    """Q^j(a) = (first feature of j) + a, and Q^jk(a, b) = (second of j + a) (second of k + b)."""

    meets: Interface = eqx.field(static=True)
    config: GPLConfig = eqx.field(static=True)

    def start(self, slots):
        return Memory(None)

    def greet(self, memory, seen, key):
        return memory

    def __call__(self, memory, seen, key):
        action = jnp.arange(float(len(self.meets.actions)))
        individual = seen.agents[:, :1] + action[None]
        factors = AgentFactors((seen.agents[:, 1:2] + action[None])[:, :, None])
        # What it does depends on everything that it sees.
        values = jnp.sin(3 * action + jnp.sum(seen.agents) + jnp.sum(seen.shared))
        return Outlook(values, None, Utilities(individual, factors)), memory


def hand_made(env, name="gpl-q"):
    return Agent(HandMade(env.interface, GPLConfig()), jnp.float32(1), name)


def everything(env, thought):
    return thought


@pytest.fixture(scope="module", params=["paper", "reference"])
def fort(request):
    env = make("fortattack", rules=request.param, types=["G2", "A1"])
    return env, measure(hand_made(env), env, everything, **HOW)


def moments(thoughts):
    """The steps one by one."""
    times, envs = thoughts.step.terminated.shape
    for time in range(times):
        for number in range(envs):
            yield jax.tree.map(lambda leaf, t=time, n=number: leaf[t, n], thoughts)


def in_range(game, state, one, other):
    """Whether the centre of one agent is in the triangle of another's laser."""
    angle = float(state.heading[one])
    dx, dy = float(state.x[other] - state.x[one]), float(state.y[other] - state.y[one])
    ahead = dx * np.cos(angle) + dy * np.sin(angle) - float(game.radius)
    aside = abs(dy * np.cos(angle) - dx * np.sin(angle))
    half = float(game.laser_angle) / 2
    return aside <= np.tan(half) * ahead and ahead <= np.cos(half) * float(game.laser)


def test_pair_utilities_are_the_means_over_what_the_other_does(fort):
    env, thoughts = fort
    expected = {(who, near): [] for who in ("guard", "attacker") for near in (True, False)}
    actions = np.arange(8)
    for each in moments(thoughts):
        second = each.seen.agents[:, 1]
        for j in range(3):
            for k in range(3, 6):
                if each.state.present[j] and each.state.present[k]:
                    guard = np.mean((second[j] + SHOOT) * (second[k] + actions))
                    attacker = np.mean((second[j] + actions) * (second[k] + SHOOT))
                    near = in_range(env.game, each.state, j, k)
                    expected["guard", near].append(guard)
                    near = in_range(env.game, each.state, k, j)
                    expected["attacker", near].append(attacker)
    found = pair_utilities(hand_made(env), env, **HOW).of
    for (who, near), values in expected.items():
        ours = found[f"{who}, {'in' if near else 'out of'} range"]
        assert len(ours) == len(values) > 0
        np.testing.assert_allclose(np.sort(ours), np.sort(values), rtol=1e-4)


def test_values_of_shooting_are_apart_by_who_is_in_range(fort):
    env, thoughts = fort
    gap, worth = {True: [], False: []}, {True: [], False: []}
    for each in moments(thoughts):
        near = [
            [bool(each.state.present[j] and each.state.present[k])
             and in_range(env.game, each.state, j, k) for k in range(3, 6)]
            for j in range(3)
        ]  # fmt: skip
        values = each.outlook.values
        gap[any(near[0])].append(values[SHOOT] - values.max())
        worth[any(map(any, near))].append(values.max())
    found = shooting_values(hand_made(env, "ql"), env, **HOW)
    for ours, expected in zip(found, (gap, worth), strict=True):
        for near, name in ((True, "in range"), (False, "out of range")):
            assert len(expected[near]) > 0
            np.testing.assert_allclose(ours.of[name].sum(), sum(expected[near]), rtol=1e-4)
            assert len(ours.of[name]) == len(expected[near])
            assert ours.means[name].mean == pytest.approx(np.mean(expected[near]), rel=1e-4)


@pytest.fixture(scope="module")
def pack():
    env = make("wolfpack", types=["H6"])
    return env, measure(hand_made(env), env, everything, **HOW | {"steps": 200})


def test_utilities_of_teammates_and_how_far_they_are_from_the_prey(pack):
    env, thoughts = pack
    expected = []
    for each in moments(thoughts):
        hunters, prey = each.state.hunters, each.state.prey
        from_learner = [abs(hunters[0] - one).sum() for one in prey]
        target = prey[int(np.argmin(from_learner))]
        for j in (1, 2):
            if hunters[j, 0] >= 0:
                utility = np.mean(each.seen.agents[j, 0] + np.arange(5))
                expected.append((utility, abs(hunters[j] - target).sum()))
    found = teammate_utilities(hand_made(env), env, **HOW | {"steps": 200})
    np.testing.assert_allclose(sorted(zip(*found, strict=True)), sorted(expected), rtol=1e-5)


def test_what_the_pair_that_captured_has_more_than_others(pack):
    env, thoughts = pack
    expected = []
    for each in moments(thoughts):
        captured, second = each.step.happened.captured, each.seen.agents[:, 1]
        for j in range(3):
            for k in range(j + 1, 3):
                if any(captured[0, p] and captured[j, p] and captured[k, p] for p in range(2)):
                    pair = np.outer(second[j] + np.arange(5), second[k] + np.arange(5))
                    chosen = pair[each.step.actions[j], each.step.actions[k]]
                    expected.append(chosen - (pair.sum() - chosen) / 24)
    found = capture_utilities(hand_made(env), env, **HOW | {"steps": 200})
    assert len(found) == len(expected) > 0
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-4, atol=1e-4)


def test_correlation_is_pearsons():
    one, two = np.array([1.0, 2, 4, 5]), np.array([2.0, 1, 5, 9])
    a, b = one - one.mean(), two - two.mean()
    found = correlation(one, two)
    assert found.r == pytest.approx((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()))
    assert found.low < found.r < found.high
    assert found.n == 4
    assert correlation([1, 1, 1], [1, 2, 3]) is None
    assert correlation([1, 2], [1, 2]) is None
    with pytest.raises(InputError, match="different lengths: 2 and 3"):
        correlation([1, 2], [1, 2, 3])


class Kept(eqx.Module):
    learner: GPL


def test_an_analysis_over_training(tmp_path):
    config = run_config("lbf", "gpl-q", **tiny.SETTINGS)
    files = RunDirectory(tmp_path / "run")
    files.create(config)
    meets = make("lbf", types=["H6"]).interface
    for step in (0, 20, 40):
        learner = eqx.filter_jit(GPL)(meets, config.settings, key=jax.random.key(step))
        agent = Agent(learner, jnp.float32(1), "gpl-q")
        files.save(Kept(learner), agent, step, keep="all")

    def weights(agent):
        return np.asarray(agent.learner.value.types.first.weight)

    found = over_training(tmp_path / "run", weights)
    assert list(found) == [0, 20, 40]
    np.testing.assert_array_equal(found[40], weights(agent))
    assert (found[0] != found[40]).any()
    assert list(over_training(tmp_path / "run", weights, [20])) == [20]
    with pytest.raises(InputError, match="has no checkpoint of step 30"):
        over_training(tmp_path / "run", weights, [30])


def test_questions_that_make_no_sense_are_refused():
    lbf, fort = make("lbf", types=["H6"]), make("fortattack", types=["G2", "A1"])
    with pytest.raises(InputError, match="no shooting in 'lbf'"):
        shooting_values(hand_made(lbf), lbf)
    with pytest.raises(InputError, match="ql has no pair utilities"):
        pair_utilities(hand_made(fort, "ql"), fort)
    with pytest.raises(InputError, match="no packs in 'lbf'"):
        capture_utilities(hand_made(lbf), lbf)
    with pytest.raises(InputError, match="at least one step"):
        measure(hand_made(lbf), lbf, everything, steps=0)
