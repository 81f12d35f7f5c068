import equinox as eqx
import jax
import numpy as np
import pytest

from dropin.core.errors import InputError
from dropin.env import make
from dropin.evaluation.evaluate import Evaluation, evaluate, legacy_means, run_episodes
from dropin.evaluation.statistics import estimate
from dropin.policies import RandomPolicy, make_policy

ENV = make("lbf", rules="reference", team_limit=3, types=["H6"])


def test_returns_are_those_of_episodes_played_one_by_one():
    """The same keys, one environment after another, without any bookkeeping in arrays."""
    who, envs, episodes = RandomPolicy(), 3, 2
    played = run_episodes(ENV, who, num_envs=envs, episodes=episodes, seed=4)
    placing, playing = jax.random.split(jax.random.key(4))
    starts = jax.random.split(placing, envs)
    reset, step = eqx.filter_jit(ENV.reset), eqx.filter_jit(ENV.step)
    for e in range(envs):
        state, seen = reset(starts[e])
        returns, ends, score, number = [], [], 0.0, 0
        while len(returns) < episodes:
            keys = jax.random.split(jax.random.fold_in(playing, number), (2, envs))[:, e]
            action, _ = who.act(keys[0], ENV, state, seen, ())
            state, time_step = step(keys[1], state, action)
            number, score = number + 1, score + float(time_step.reward)
            if time_step.done:
                returns, ends, score = [*returns, score], [*ends, number], 0.0
        assert played.returns[e].tolist() == returns
        assert played.ends[e].tolist() == ends


def test_unshaped_returns_are_told_where_there_is_shaping():
    """The same episodes with and without shaping."""
    shaped, plain = (
        run_episodes(
            make("wolfpack", rules="reference", types=["H2"], shaping_weight=shaping, horizon=30),
            RandomPolicy(),
            num_envs=16,
            episodes=2,
        )
        for shaping in (0.01, 0.0)
    )
    assert plain.unshaped is None
    assert not np.array_equal(shaped.returns, plain.returns)
    assert shaped.unshaped == pytest.approx(plain.returns, abs=1e-4)
    assert shaped.estimate(unshaped=True).mean == pytest.approx(plain.mean, abs=1e-4)


def test_the_legacy_rule_stops_at_the_first_environment_with_five_episodes():
    """15 environments take 50 steps an episode, the last one 10, and gets 7 for each."""
    returns, ends = np.ones((16, 5)), np.cumsum(np.full((16, 5), 50), axis=1)
    returns[-1], ends[-1] = 7.0, np.cumsum(np.full(5, 10))
    # After 50 steps the last one has had its five and the others one each.
    assert legacy_means(returns, ends).tolist() == [(15 * 1 + 5 * 7) / 20]
    twice = legacy_means(np.tile(returns, (2, 1)), np.tile(ends, (2, 1)))
    assert twice.tolist() == [2.5, 2.5]
    evaluation = Evaluation(returns, ends, estimator="legacy")
    assert evaluation.mean == 2.5
    assert Evaluation(returns, ends).mean == (15 * 1 + 7) / 16


def test_intervals_are_those_of_the_textbook():
    """Four values: mean 3, s = 1.8257, t(3) = 3.1824, so 3 +- 3.1824 * 1.8257 / 2."""
    found = estimate([1, 2, 4, 5])
    assert (found.mean, found.n) == (3, 4)
    assert found.high - 3 == pytest.approx(3.18245 * 1.82574 / 2, rel=1e-4)
    assert 3 - found.low == pytest.approx(3.18245 * 1.82574 / 2, rel=1e-4)
    values = np.random.default_rng(0).normal(2, 1, 400)
    student, boot = estimate(values), estimate(values, "bootstrap")
    assert boot.low == pytest.approx(student.low, abs=0.02)
    assert boot.high == pytest.approx(student.high, abs=0.02)


def test_intervals_cover_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(1)
    hits = [
        found.low <= 1 <= found.high
        for found in (estimate(rng.exponential(1, 40)) for _ in range(400))
    ]
    assert 0.9 < np.mean(hits) < 0.98


def test_one_value_has_no_interval():
    assert str(estimate([2.0])) == "2.00"
    assert np.isnan(estimate([2.0]).low)
    assert str(estimate([2.0, 2.0])) == "2.00 (2.00 to 2.00)"


def test_the_same_seed_gives_the_same_episodes_at_another_limit_too():
    wide = make("lbf", rules="reference", team_limit=3, slots=5, types=["H6"])
    one, two = (run_episodes(wide, make_policy(wide, "H6"), num_envs=8, seed=1) for _ in range(2))
    np.testing.assert_array_equal(one.returns, two.returns)
    more = run_episodes(wide.with_team_limit(5), make_policy(wide, "H6"), num_envs=8, seed=1)
    assert not np.array_equal(one.returns, more.returns)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"who": "random"}, "In which game"),
        ({"who": "randm", "game": ENV}, "did you mean 'random'"),
        ({"who": "runs/none", "game": "lbf"}, "no file runs/none"),
        ({"who": "random", "game": ENV, "estimator": "best"}, "Unknown estimator 'best'"),
        ({"who": "random", "game": ENV, "episodes": 0}, "episodes 0 is too small"),
        ({"who": "random", "game": "chess"}, "Unknown game 'chess'"),
        ({"who": "random", "game": ENV, "team_limit": 5}, "with its own team_limit"),
    ],
)
def test_wrong_input_is_refused(given, says):
    with pytest.raises(InputError, match=says):
        evaluate(**given)


def test_legacy_needs_its_numbers():
    with pytest.raises(InputError, match="legacy estimator takes 5 episodes"):
        run_episodes(ENV, RandomPolicy(), num_envs=8, estimator="legacy")
