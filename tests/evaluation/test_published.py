"""The paper's numbers."""

from dropin.evaluation import published


def test_the_papers_numbers():
    curve = published.training_curve("lbf", "ql")
    assert curve is not None
    assert (curve.steps[:2], len(curve.points)) == ((0, 160_000), 40)
    assert curve.best == curve.points[curve.best_index]
    assert str(curve.best) == "3.77 ± 0.32"
    assert str(published.larger_team_return("lbf", "gpl-spi")) == "2.40 ± 0.16"
    assert str(published.partner_return("wolfpack", "dgn")) == "9.36 ± 2.46"
    accuracy = published.shooting_accuracy("gpl-q")
    assert accuracy is not None
    steps, shares = accuracy
    assert len(steps) == len(shares)


def test_there_are_no_numbers_of_others():
    assert published.training_curve("lbf", "mine") is None
    assert published.larger_team_return("chess", "gpl-q") is None
    assert published.partner_return("lbf", "gpl-q") is None
    assert published.shooting_accuracy("mine") is None
