"""Statistics against plain loops and the textbook."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dropin.core.errors import InputError
from dropin.evaluation.statistics import (
    across_tasks,
    estimate,
    improvement_across_tasks,
    interquartile_mean,
    is_significantly_above,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    profile_across_tasks,
    welch_p_value,
)

FEW = st.lists(st.integers(-5, 5), min_size=2, max_size=6)


def test_the_middle_mean_leaves_out_a_quarter_at_either_end():
    values = [100.0, 3, 1, 2, -50, 4, 5, 6]
    found = interquartile_mean(values)
    assert found.mean == pytest.approx((2 + 3 + 4 + 5) / 4)
    assert found.low <= found.mean <= found.high
    assert found.n == 8
    assert interquartile_mean([1.0, 2.0, 6.0]).mean == pytest.approx(3)
    assert interquartile_mean([4.0] * 5).high == 4


@given(FEW, FEW)
def test_the_chance_of_improvement_counts_pairs(ours, theirs):
    pairs = [(a > b) + 0.5 * (a == b) for a in ours for b in theirs]
    found = probability_of_improvement(ours, theirs)
    assert found.mean == pytest.approx(np.mean(pairs))
    assert found.n == min(len(ours), len(theirs))


def test_the_chance_of_improvement_has_an_interval():
    clear = probability_of_improvement([10.0, 11, 12, 13, 14], [1.0, 2, 3, 4, 5])
    assert (clear.mean, clear.low, clear.high) == (1, 1, 1)
    unclear = probability_of_improvement([1.0, 5, 9, 2, 6], [2.0, 4, 8, 3, 7])
    assert 0 <= unclear.low < unclear.mean < unclear.high <= 1


def test_a_bootstrap_of_few_values_has_no_interval():
    few = [1.0, 2.0, 3.0, 4.0]
    for found in (
        estimate(few, "bootstrap"),
        interquartile_mean(few),
        probability_of_improvement(few, [*few, 5.0]),
        *performance_profile(few, [2.5]),
    ):
        assert np.isnan(found.low)
        assert (found.interval, str(found)) == ("-", f"{found.mean:.2f}")
    assert estimate(few).has_interval


def test_welchs_test_is_that_of_the_textbook():
    one, two = np.array([27.5, 21.0, 19.0, 23.6, 17.0]), np.array([27.1, 22.0, 20.8, 23.4])
    a, b = one.var(ddof=1) / 5, two.var(ddof=1) / 4
    t = (one.mean() - two.mean()) / np.sqrt(a + b)
    freedom = (a + b) ** 2 / (a**2 / 4 + b**2 / 3)
    # Student's distribution by summing its density.
    x = np.linspace(abs(t), 2000, 4_000_001)
    density = (1 + x**2 / freedom) ** (-(freedom + 1) / 2)
    everything = np.linspace(0, 2000, 4_000_001)
    whole = (1 + everything**2 / freedom) ** (-(freedom + 1) / 2)
    p = np.trapezoid(density, x) / np.trapezoid(whole, everything)
    assert welch_p_value(one, two) == pytest.approx(p, rel=1e-3)
    assert np.isnan(welch_p_value([1.0], [1.0, 2.0]))
    assert welch_p_value([1.0, 1.0], [2.0, 2.0]) == 0
    assert welch_p_value([1.0, 1.0], [1.0, 1.0]) == 1


def test_an_asterisk_needs_every_baseline():
    ours = [10.0, 10.5, 9.5]
    weak, close = [1.0, 1.5, 0.5], [9.9, 10.4, 9.4]
    assert is_significantly_above(ours, {"weak": weak})
    assert not is_significantly_above(ours, {"weak": weak, "close": close})
    assert not is_significantly_above(weak, {"ours": ours})
    assert not is_significantly_above([10.0], {"weak": weak})
    assert not is_significantly_above(ours, {})


def test_a_profile_is_the_share_above_each_level():
    found = performance_profile([1.0, 2.0, 3.0, 4.0, 2.0], [0.0, 2.0, 3.5, 9.0])
    assert [each.mean for each in found] == [1, 0.4, 0.2, 0]
    assert found[1].low < 0.4 < found[1].high
    # Of five runs that are all above a level it is not certain that every run is.
    assert (found[0].low, found[0].high) == (pytest.approx(0.025 ** (1 / 5)), 1)


def test_the_interval_of_a_profile_is_the_exact_one():
    def tail(low, high, n, share):
        return sum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(low, high))

    (found,) = performance_profile(range(8), [4.5])
    # As few as three of eight are above for a share of `high` in 2.5 % of cases, and as many.
    assert tail(0, 4, 8, found.high) == pytest.approx(0.025)
    assert tail(3, 9, 8, found.low) == pytest.approx(0.025)


def slow_bootstrap(samples, statistic, number=4000):
    """The ends of a percentile interval, drawn one value at a time."""
    generator = random.Random(7)
    found = []
    for _ in range(number):
        drawn = [[generator.choice(sample) for _ in sample] for sample in samples]
        found.append(statistic(*drawn))
    found.sort()
    return found[int(0.025 * number)], found[int(0.975 * number)]


def middle(values):
    """The interquartile mean by hand."""
    cut = len(values) // 4
    kept = sorted(values)[cut : len(values) - cut]
    return sum(kept) / len(kept)


MADE_UP = ([1.0, 2.5, 2.0, 8.0, 3.0, 4.5, 2.2, 3.3], [0.1, 0.9, 0.4, 1.3, 0.8])


@pytest.mark.parametrize(
    ("name", "one_task"),
    [
        ("mean", lambda values: sum(values) / len(values)),
        ("interquartile mean", middle),
        ("optimality gap", lambda values: sum(max(1 - x, 0) for x in values) / len(values)),
    ],
)
def test_tasks_count_equally_and_runs_are_drawn_within_each(name, one_task):
    def averaged(*tasks):
        return sum(one_task(task) for task in tasks) / len(tasks)

    found = across_tasks(MADE_UP, name)
    assert found.mean == pytest.approx(averaged(*MADE_UP))
    assert found.n == 5
    low, high = slow_bootstrap(MADE_UP, averaged)
    width = high - low
    assert found.low == pytest.approx(low, abs=0.05 * width)
    assert found.high == pytest.approx(high, abs=0.05 * width)


def test_the_pooled_middle_leaves_out_the_worst_runs_of_all_tasks():
    def pooled(*tasks):
        return middle([value for task in tasks for value in task])

    name = "pooled interquartile mean"
    found = across_tasks(MADE_UP, name)
    assert found.mean == pytest.approx(pooled(*MADE_UP))
    assert found.mean != pytest.approx(across_tasks(MADE_UP, "interquartile mean").mean)
    low, high = slow_bootstrap(MADE_UP, pooled)
    assert found.low == pytest.approx(low, abs=0.05 * (high - low))
    assert found.high == pytest.approx(high, abs=0.05 * (high - low))
    # Of four tasks with two runs each, the quarters are two runs.
    assert across_tasks([[0.0, 9], [1, 2], [3, 4], [5, 9]], name).mean == pytest.approx(3.5)


def test_improvement_across_tasks_is_the_mean_over_tasks():
    ours = (MADE_UP[0], [5.0, 6.0, 2.0, 7.0, 3.0])
    theirs = ([3.0, 1.5, 2.0, 4.0, 0.5, 2.6, 3.1], [4.0, 5.5, 6.5, 2.5, 1.0])

    def chance(a, b, c, d):
        pairs = [
            [(x > y) + 0.5 * (x == y) for x in one for y in two] for one, two in ((a, c), (b, d))
        ]
        return sum(sum(each) / len(each) for each in pairs) / 2

    found = improvement_across_tasks(ours, theirs)
    assert found.mean == pytest.approx(chance(*ours, *theirs))
    assert found.n == 5
    low, high = slow_bootstrap((*ours, *theirs), chance, 1500)
    assert (found.low, found.high) == (pytest.approx(low, abs=0.04), pytest.approx(high, abs=0.04))
    assert not improvement_across_tasks([[1.0, 2.0]], [[0.0] * 9]).has_interval
    with pytest.raises(InputError, match="2 tasks of ours, but 1 of theirs"):
        improvement_across_tasks(ours, theirs[:1])


def test_a_profile_across_tasks_is_that_of_a_slow_bootstrap():
    def share(*tasks):
        return sum(sum(x > 1 for x in task) / len(task) for task in tasks) / len(tasks)

    above_all, found, below_all = profile_across_tasks(MADE_UP, [0.0, 1.0, 9.0])
    assert (above_all.mean, above_all.low, below_all.mean, below_all.high) == (1, 1, 0, 0)
    assert found.mean == pytest.approx((7 / 8 + 1 / 5) / 2)
    assert found.n == 5
    low, high = slow_bootstrap(MADE_UP, share)
    assert (found.low, found.high) == (pytest.approx(low, abs=0.04), pytest.approx(high, abs=0.04))
    assert not profile_across_tasks([*MADE_UP, [1.0] * 4], [0.5])[0].has_interval


def test_one_task_is_the_plain_statistic():
    values = MADE_UP[0]
    assert across_tasks([values]).mean == pytest.approx(estimate(values).mean)
    middle_mean = across_tasks([values], "interquartile mean").mean
    assert middle_mean == pytest.approx(interquartile_mean(values).mean)
    assert across_tasks([values], "optimality gap").mean == optimality_gap(values).mean
    assert across_tasks([[2.0] * 5, [4.0] * 5]).interval == "3.00 to 3.00"
    # A task of four runs is too small for an interval, whatever the others have.
    assert not across_tasks([values, [1.0, 2, 3, 4]]).has_interval
    with pytest.raises(InputError, match="Unknown statistic 'median'"):
        across_tasks([values], "median")
    with pytest.raises(InputError, match="no tasks"):
        across_tasks([])


def test_the_gap_counts_shortfalls_only():
    found = optimality_gap([0.5, 2.0, 1.0, 0.0, 0.75], target=1.0)
    assert found.mean == pytest.approx((0.5 + 1.0 + 0.25) / 5)
    assert 0 <= found.low < found.mean < found.high
    assert optimality_gap([3.0, 5.0], target=4.0).mean == 0.5


def test_the_interval_of_improvement_is_that_of_a_slow_bootstrap():
    def chance(ours, theirs):
        return np.mean([(a > b) + 0.5 * (a == b) for a in ours for b in theirs])

    samples = (MADE_UP[0], [3.0, 1.5, 2.0, 4.0, 0.5, 2.6, 3.1])
    found = probability_of_improvement(*samples)
    assert found.mean == pytest.approx(chance(*samples))
    low, high = slow_bootstrap(samples, chance, 1500)
    assert (found.low, found.high) == (pytest.approx(low, abs=0.04), pytest.approx(high, abs=0.04))


def test_intervals_hold_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(3)
    runs = generator.normal(5.0, 2.0, size=(4000, 8))
    found = [estimate(row) for row in runs]
    covered = np.mean([each.low <= 5.0 <= each.high for each in found])
    assert covered == pytest.approx(0.95, abs=0.012)


def test_there_must_be_values():
    with pytest.raises(InputError, match="no values"):
        estimate([])
