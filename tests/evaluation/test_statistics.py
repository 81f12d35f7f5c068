"""Statistics against plain loops and the textbook."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dropin.core.errors import InputError
from dropin.evaluation.statistics import (
    estimate,
    interquartile_mean,
    is_significantly_above,
    performance_profile,
    probability_of_improvement,
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


def test_there_must_be_values():
    with pytest.raises(InputError, match="no values"):
        estimate([])
