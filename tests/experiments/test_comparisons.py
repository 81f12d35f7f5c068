"""Sentences about agreement with the paper say what the numbers say."""

import pytest

from dropin.evaluation.published import PublishedMean
from dropin.experiments.comparisons import (
    Comparison,
    agreement_sentence,
    improvement,
    join,
    order_sentence,
    strongest_baseline,
)
from dropin.experiments.runs import Options

FULL = Options()


def compare(name, ours, mean=None, half_width=1.0):
    return Comparison(name, ours, None if mean is None else PublishedMean(mean, half_width))


def test_words_are_joined():
    assert [join([]), join(["a"]), join(["a", "b"]), join(["a", "b", "c"])] == [
        "", "a", "a and b", "a, b and c",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "side"),
    [
        ([10.0, 10.1, 9.9], 0),
        # The interval of three runs reaches 0.25 to either side of their mean.
        ([11.2, 11.3, 11.1], 0),
        ([11.3, 11.4, 11.2], 1),
        ([8.7, 8.6, 8.8], -1),
        ([8.8, 8.7, 8.9], 0),
        ([15.0, 5.0, 25.0], 0),
    ],
)
def test_the_side_is_that_of_the_intervals(ours, side):
    assert compare("x", ours, mean=10.0).side == side


def test_the_sentence_of_agreement_names_exceptions():
    found = [
        compare("a", [10.0, 10.1, 9.9], 10.0),
        compare("b", [20.0, 20.1, 19.9], 10.0),
        compare("c", [1.0, 1.1, 0.9], 10.0),
        compare("d", [5.0, 5.1, 4.9], 3.0),
        compare("e", [99.0, 98.0], 10.0),
        compare("mine", [1.0, 2.0, 3.0]),
    ]
    assert agreement_sentence(found, FULL) == (
        "Our 95 % interval overlaps the paper's for 1 of 4 learners; it is above it for b (20.00"
        " against 10.00) and d (5.00 against 3.00); it is below it for c (1.00 against 10.00)."
        " With fewer than 3 runs, 1 more cannot be judged."
    )
    assert agreement_sentence(found[:1], FULL) == (
        "Our 95 % interval overlaps the paper's for 1 of 1 learners."
    )


def test_few_runs_are_not_judged():
    few = [compare("a", [1.0, 2.0], 3.0), compare("b", [4.0], 3.5), compare("c", [3.0], 3.0)]
    assert agreement_sentence(few, FULL) == (
        "No learner has 3 runs yet, so agreement with the paper is not judged; our means minus the"
        " paper's are -1.50 (a) to +0.50 (b)."
    )
    assert agreement_sentence(few[:1], FULL).endswith("are -1.50 (a).")
    assert agreement_sentence([compare("mine", [1.0])], FULL) == (
        "The paper has no numbers to compare with."
    )
    small = Options(scale=0.1)
    assert "not compared" in agreement_sentence(few, small)


def test_the_sentence_of_the_order():
    found = [
        compare("a", [1.0, 3.0], 5.0),
        compare("b", [4.0], 2.0),
        compare("mine", [9.0, 9.5]),
    ]
    assert order_sentence(found[:2], FULL) == (
        "The largest mean is that of b (4.00, n = 1), in the paper that of a (5.00)."
    )
    assert order_sentence(found, FULL) == (
        "The largest mean is that of mine (9.25, n = 2), in the paper that of a (5.00)."
    )
    assert order_sentence(found[:1], FULL) == "Only a has runs (2.00, n = 2; in the paper 5.00)."
    assert order_sentence(found[2:], FULL) == "Only mine has runs (9.25, n = 2)."
    small = Options(scale=0.1)
    assert order_sentence(found[:2], small) == "The largest mean is that of b (4.00, n = 1)."
    # Of the six pairs of four learners one is the other way round.
    four = [compare(name, [level], order) for name, level, order in zip("abcd", (1, 2, 3, 4),
            (1, 2, 4, 3), strict=True)]  # fmt: skip
    assert "over 4 learners the order has a Kendall correlation of 0.67" in order_sentence(
        four, FULL
    )
    equal = [compare(name, [1.0], 2.0) for name in "abcd"]
    assert "nan" not in order_sentence(equal, FULL)


def test_improvement_is_over_the_strongest_single_agent_baseline():
    returns = {"gpl-q": [5.0, 6.0], "ql": [1.0, 2.0], "gnn": [5.0, 5.5], "dgn": [9.0]}
    assert strongest_baseline(returns) == "gnn"
    found = improvement("gpl-q", returns)
    assert found is not None
    # Pairs: 5 against 5 is half, against 5.5 is 0; 6 is above both.
    assert found.mean == pytest.approx(2.5 / 4)
    assert improvement("ql", returns) is None
    assert improvement("dgn", returns) is None
    assert improvement("gpl-q", {"gpl-q": [1.0]}) is None
    assert strongest_baseline({"dgn": [1.0]}) == ""
