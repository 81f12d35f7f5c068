"""Scores of made-up records, against hand-worked numbers and slow loops."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_records import around, record, runs, sums

from dropin.core.errors import InputError
from dropin.experiments.benchmark.records import WINDOW
from dropin.experiments.benchmark.scores import (
    Reference,
    Situation,
    TaskKey,
    accuracy_by_age,
    aggregate,
    by_situation,
    find_references,
    improvement,
    recovery,
    reward_by_team_size,
    task_returns,
    task_scores,
    type_returns,
    worst_type,
)

TASK = TaskKey("lbf/strangers", 1)
OTHER = TaskKey("wolfpack/strangers", 2)
NUMBERS = st.floats(-50, 50)


@given(NUMBERS, st.floats(0.1, 50), st.floats(-3, 3))
def test_a_score_is_linear_from_chance_to_the_best_response(chance, above, score):
    reference = Reference(chance, chance + above)
    found = reference.normalised([chance, chance + above, chance + score * above])
    np.testing.assert_allclose(found, [0, 1, score], atol=1e-9)


def test_without_a_reference_there_is_no_score():
    assert Reference(1.0, 2.0).missing == ()
    assert Reference().missing == ("chance", "the best response")
    assert Reference(1.0).missing == ("the best response",)
    assert Reference(2.0, 2.0).missing == ("a best response above chance",)
    with pytest.raises(InputError, match="There is no score without the best response"):
        Reference(1.0).normalised([1.0])


def test_references_are_means_of_last_agents_by_situation():
    best = [*runs([2.0, 4.0]), record(99.0, seed=0, checkpoint="best")]
    found = find_references([record(0.5), record(1.5, team_limit=5)], best)
    assert found == {
        Situation(TASK, 3): Reference(0.5, 3.0),
        Situation(TASK, 5): Reference(1.5, None),
    }


def test_a_run_is_counted_once_however_many_limits_it_is_tested_at():
    records = [*runs([2.0, 3.0, 4.0]), *runs([4.0, 6.0], team_limit=5)]
    assert task_returns(records) == {TASK: {0: 3.0, 1: 4.5}}
    references = {
        Situation(TASK, 3): Reference(1.0, 3.0),
        Situation(TASK, 5): Reference(2.0, 4.0),
    }
    # Seed 0: (2 - 1) / 2 and (4 - 2) / 2; seed 1: 1 and 2. Seed 2 was not tested at limit 5.
    assert task_scores(records, references) == {TASK: {0: 0.75, 1: 1.5}}
    del references[Situation(TASK, 5)]
    assert task_scores(records, references) == {}
    assert task_scores(records, references, "best") == {}


def test_versions_are_never_mixed():
    records = [record(1.0), record(9.0, version=2)]
    assert task_returns(records) == {TASK: {0: 1.0}, TaskKey("lbf/strangers", 2): {0: 9.0}}
    with pytest.raises(InputError, match=r"two records of seed 0 in lbf/strangers \(version 1\)"):
        by_situation([record(1.0), record(2.0)])


SCORES = {
    TASK: dict(enumerate([0.2, 0.9, 1.4, 0.7, 0.5, 0.8])),
    OTHER: dict(enumerate([0.1, 0.3, 0.2, 0.6, 0.4])),
}


def slow_middle(tasks):
    values = sorted(value for task in tasks for value in task)
    cut = len(values) // 4
    kept = values[cut : len(values) - cut]
    return sum(kept) / len(kept)


STATISTICS = {
    "mean": lambda tasks: sum(sum(task) / len(task) for task in tasks) / len(tasks),
    "interquartile_mean": slow_middle,
    "optimality_gap": lambda tasks: (
        sum(sum(max(1 - x, 0) for x in task) / len(task) for task in tasks) / len(tasks)
    ),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_aggregates_are_those_of_a_slow_bootstrap(name):
    tasks = [list(runs.values()) for runs in SCORES.values()]
    whole = aggregate(SCORES)
    assert whole is not None
    found = getattr(whole, name)
    assert found.mean == pytest.approx(STATISTICS[name](tasks))
    assert found.n == 5
    generator, drawn = random.Random(1), []
    for _ in range(3000):
        drawn.append(STATISTICS[name]([[generator.choice(task) for _ in task] for task in tasks]))
    drawn.sort()
    low, high = drawn[75], drawn[-75]
    assert found.low == pytest.approx(low, abs=0.06 * (high - low))
    assert found.high == pytest.approx(high, abs=0.06 * (high - low))


def test_few_runs_get_no_interval_and_no_scores_no_aggregate():
    found = aggregate({TASK: {0: 1.0, 1: 3.0}, OTHER: {0: 0.0}})
    assert found is not None
    assert (found.tasks, found.mean.mean, found.mean.n) == ((TASK, OTHER), 1.0, 1)
    assert not found.mean.has_interval
    assert aggregate({}) is None
    assert aggregate({TASK: {}}) is None


def test_improvement_is_over_the_tasks_that_both_have():
    ours = {TASK: {0: 1.0, 1: 5.0}, OTHER: {0: 9.0}}
    theirs = {TASK: {0: 2.0, 3: 5.0}}
    found = improvement(ours, theirs)
    assert found is not None
    # 1 is below both, 5 above 2 and equal to 5.
    assert found.mean == pytest.approx(1.5 / 4)
    assert improvement(ours, {}) is None


def test_rewards_by_team_size_are_means_over_steps_then_over_runs():
    one = record(1.0, reward_by_team_size=sums([0, 0, 3, 8], [0, 0, 6, 2]))
    two = record(1.0, seed=1, reward_by_team_size=sums([0, 0, 7, 0], [0, 0, 7, 0]))
    found = reward_by_team_size([one, two])
    assert {size: (each.mean, each.n) for size, each in found.items()} == {2: (0.75, 2), 3: (4, 1)}


def test_the_worst_type_has_the_lowest_mean_over_runs():
    records = [
        record(1.0, returns_by_type={"H1": np.array([1.0, 3.0]), "H6": np.array([0.0, 1.0])}),
        record(1.0, seed=1, returns_by_type={"H1": np.array([0.0]), "H6": np.array([3.0])}),
    ]
    assert {name: found.mean for name, found in type_returns(records).items()} == {
        "H1": 1.0, "H6": 1.75,
    }  # fmt: skip
    name, found = worst_type(records) or ("", None)
    assert (name, found and found.n) == ("H1", 2)
    assert worst_type([record(1.0, returns_by_type={})]) is None


def test_recovery_compares_the_steps_after_with_those_before():
    records = [
        record(1.0, reward_around_exit=around(0.5, 0.25)),
        record(1.0, seed=1, reward_around_exit=around(0.2, 0.3)),
    ]
    found = recovery(records, "exit")
    assert found is not None
    assert found.before.mean == pytest.approx(0.35)
    assert found.after.mean == pytest.approx(0.275)
    assert found.difference.mean == pytest.approx((-0.25 + 0.1) / 2)
    assert found.ratio is not None
    assert found.ratio.mean == pytest.approx((0.5 + 1.5) / 2)
    assert found.difference.has_interval
    assert (min(found.curve), max(found.curve)) == (-WINDOW, WINDOW - 1)
    assert found.curve[-1].mean == pytest.approx(0.35)
    assert found.curve[0].mean == pytest.approx(0.275)
    assert recovery(records, "change") is None


def test_steps_count_equally_on_each_side_and_ratios_need_rewards():
    count = np.zeros(2 * WINDOW, int)
    total = np.zeros(2 * WINDOW)
    count[[0, WINDOW - 1, WINDOW]] = 1, 3, 2
    total[[0, WINDOW - 1, WINDOW]] = -5.0, 1.0, 1.0
    found = recovery([record(1.0, reward_around_entry=sums(total, count))], "entry")
    assert found is not None
    assert (found.before.mean, found.after.mean) == (-1.0, 0.5)
    assert found.ratio is None
    assert sorted(found.curve) == [-WINDOW, -1, 0]


def test_accuracy_is_by_age_and_none_without_predictions():
    records = [
        record(1.0, correct_by_age=sums([0, 1, 4], [0, 4, 4])),
        record(1.0, seed=1, correct_by_age=sums([0, 3, 0], [0, 4, 0])),
    ]
    found = accuracy_by_age(records)
    assert {age: (each.mean, each.n) for age, each in found.items()} == {1: (0.5, 2), 2: (1.0, 1)}
    assert accuracy_by_age([record(1.0, predicts=False)]) == {}
