"""Learning curves as data."""

import pytest

from dropin.core.errors import InputError
from dropin.evaluation.curves import Curve, select_rows


def rows(*values, **more):
    """Evaluations at steps 0, 10, 20 and so on."""
    return [
        {"step": str(10 * index), "mean_return": value, "ci_low": "-1", "ci_high": "9", **more}
        for index, value in enumerate(values)
    ]


def test_the_mean_and_interval_over_runs():
    curve = Curve("x", [rows("1", "5", "2"), rows("3", "7", "2")])
    assert (curve.steps, curve.means, curve.best_index) == ([0, 10, 20], [2.0, 6.0, 2.0], 1)
    assert curve.individual == [[1.0, 5.0, 2.0], [3.0, 7.0, 2.0]]
    # With one degree of freedom the interval is 12.706 standard errors to each side.
    assert curve.ci_low[:2] == pytest.approx([2 - 12.706, 6 - 12.706], abs=1e-3)
    assert curve.ci_high[2] == 2.0


def test_the_interval_of_a_single_run_is_over_its_episodes():
    curve = Curve("x", [rows("1", "5")])
    assert (curve.ci_low, curve.ci_high) == ([-1.0, -1.0], [9.0, 9.0])
    # There is none for another column.
    other = Curve("x", [rows("1", "5", accuracy="0.5")], "accuracy")
    assert other.means == [0.5, 0.5]
    assert other.ci_low != curve.ci_low


def test_a_curve_ends_where_the_shortest_run_does():
    assert Curve("x", [rows("1", "5", "2"), rows("3")]).steps == [0]


def test_empty_cells_are_left_out_or_count_as_something():
    assert Curve("x", [rows("1", "", "2")]).steps == [0, 20]
    assert Curve("x", [rows("1", "", "2")], missing_value=0.0).means == [1.0, 0.0, 2.0]
    with pytest.raises(InputError, match="x: there is no step at which all runs have a value"):
        Curve("x", [rows("", ""), rows("1", "2")])


def test_rows_are_selected_by_all_conditions():
    table = [
        {"team_limit": limit, "mode": mode, "teammates": teammates}
        for limit in ("3", "5")
        for mode in ("greedy", "sampled")
        for teammates in ("strangers", "partners")
    ]
    assert select_rows(table) == table
    assert len(select_rows(table, team_limit=3)) == 4
    assert select_rows(table, team_limit=5, mode="greedy", teammates="partners") == [table[5]]
