"""What experiments share: finished runs, and results of analyses that are computed once."""

from made_up import TRAINING, fill, make_experiment

from dropin.evaluation.statistics import estimate
from dropin.experiments import Options
from dropin.experiments.analyses import AnalysisCache
from dropin.experiments.planning import StoredRun
from dropin.experiments.results import (
    estimate_as_dict,
    format_half_width,
    format_interval,
    learner_colour,
)
from dropin.plots.charts import COLOURS
from dropin.training.config import run_config

SMALL = Options(steps=640, seeds=2, games=("lbf",))


def test_an_analysis_is_computed_once(tmp_path, monkeypatch):
    run = StoredRun(tmp_path, run_config("lbf", "ql"))
    monkeypatch.setattr(StoredRun, "agent", lambda self, step: f"agent of {step}")
    cache, computed = AnalysisCache(tmp_path / "analyses"), []

    def compute(agent):
        computed.append(agent)
        return {"found": 1.5}

    for _ in range(2):
        assert cache.get("what", run, 7, compute, steps=3) == {"found": 1.5}
    assert computed == ["agent of 7"]
    cache.get("what", run, 8, compute, steps=3)
    cache.get("what", run, 7, compute, steps=4)
    cache.get("else", run, 7, compute, steps=3)
    assert len(computed) == 4
    for path in (tmp_path / "analyses").iterdir():
        path.write_text("{")
    assert cache.get("what", run, 7, compute, steps=3) == {"found": 1.5}
    assert len(computed) == 5


def test_the_best_checkpoint_is_that_of_the_mean_over_runs(tmp_path):
    runs = fill(tmp_path, "table2", SMALL, TRAINING).completed_runs()
    assert (runs.games, runs.grids) == (["lbf"], [""])
    (group,) = runs.by_learner("lbf").values()
    best = runs.best_checkpoint(group)
    assert (best.step, best.training_returns) == (320, [8.0, 6.0])
    assert runs.returns_at(group, best.step, 5) == [2.0, 6.0]
    assert runs.curve(group, team_limit=5).individual == [[1.0, 2.0, 3.0], [4.0, 6.0, 5.0]]
    assert runs.by_learner("lbf", "another grid") == runs.by_learner("wolfpack") == {}


def test_only_finished_runs_count(tmp_path):
    fill(tmp_path, "table2", SMALL, TRAINING)
    runs = make_experiment(tmp_path, "figure2", Options(steps=640, seeds=3)).completed_runs()
    assert [len(group) for group in runs.by_learner("lbf").values()] == [2]
    assert runs.games == ["lbf"]
    assert len(runs.missing) == 3 * 8 * 3 - 2


def test_formats():
    assert format_interval([2.0, 6.0]) == "4.00 (-21.41 to 29.41; n = 2)"
    assert format_interval([2.0]) == "2.00 (n = 1)"
    assert format_half_width([2.0, 6.0]) == "4.00 ± 25.41"
    assert format_half_width([2.0]) == "2.00"
    assert estimate_as_dict(None) is None
    assert estimate_as_dict(estimate([2.0])) == {"mean": 2.0, "low": None, "high": None, "n": 1}


def test_learners_have_a_colour_each():
    assert [learner_colour(name) for name in ("gpl-q", "gpl-spi")] == list(COLOURS[:2])
    assert learner_colour("mine") not in COLOURS
