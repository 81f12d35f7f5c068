"""Figure 3b and appendices H and I from results of analyses that are known."""

import pytest
from made_up import make_experiment, sheet_rows, write_run

from dropin.experiments import Options
from dropin.experiments.analyses import AnalysisCache

OPTIONS = Options(steps=640, seeds=1, states=20)


def summary(mean):
    return {"mean": mean, "low": mean - 1, "high": mean + 1, "n": 9}


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """Return a finished experiment whose analysis has given results at three checkpoints."""

    def make(name, results):
        def get(self, analysis, run, step, compute, **settings):
            # 20 states are three steps of eight environments.
            assert settings == {"steps": 3, "num_envs": 8}
            return results[(0, 320, 640).index(step)]

        monkeypatch.setattr(AnalysisCache, "get", get)
        for job in make_experiment(tmp_path, name, OPTIONS).jobs:
            returns = {limit: [1.0, 2.0, 4.0] for limit in job.needs.team_limits}
            write_run(job.run.path, job.config, returns, agents=True)
        return make_experiment(tmp_path, name, OPTIONS)

    return make


def test_pair_utilities_are_correlated_with_the_returns(experiment):
    empty = {"attacker, in range": None, "attacker, out of range": None}
    results = [
        {"guard, in range": summary(mean), "guard, out of range": summary(-mean), **empty}
        for mean in (0.5, 1.0, 2.0)
    ]
    result = experiment("figure3b", results).result()
    guard, other, *rest = sheet_rows(result)
    assert (guard["first"], guard["last"], guard["paper"]) == ("0.500", "2.000", "0.85")
    # The means are half the returns.
    assert guard["correlation with the return"].startswith("1.00 (")
    assert other["correlation with the return"].startswith("-1.00 (")
    assert [row["last"] for row in rest] == ["–", "–"]
    (panel,) = result.charts[0].panels
    assert panel.lines[0].y == [0.5, 1.0, 2.0]
    assert panel.lines[0].x == [0.0, 320 / 1e6, 640 / 1e6]
    assert (panel.lines[0].low, panel.lines[2].x) == ([-0.5, 0.0, 1.0], [])
    assert result.numbers["gpl-q, seed 0"]["returns"] == [1.0, 2.0, 4.0]


def test_teammates_in_wolfpack(experiment):
    results = [
        {"correlation": summary(0.1), "surplus": None},
        {"correlation": summary(0.2), "surplus": summary(0.5)},
        {"correlation": {**summary(0.3), "low": None, "high": None}, "surplus": summary(0.6)},
    ]
    result = experiment("wolfpack-utilities", results).result()
    assert result.sheets[0].rows == [
        ("gpl-q, seed 0", "0.300", "–", "0.600", "-0.400 to 1.600"),
    ]
    correlations, surpluses = result.charts[0].panels
    assert correlations.lines[0].low[-1] == 0.3
    assert surpluses.lines[0].y == [0.5, 0.6]


def test_action_values_of_shooting(experiment):
    pair = {"in range": summary(-0.5), "out of range": summary(-2.0)}
    result = experiment("shooting-values", [[pair, pair]] * 3).result()
    rows = sheet_rows(result)
    assert [row["run"] for row in rows[::2]] == [
        f"{learner}, seed 0" for learner in ("ql", "ql-am", "gnn", "gnn-am")
    ]
    assert rows[0]["attacker in range, at the end"] == "-0.500 (-1.500 to 0.500)"
    assert [row["what"] for row in rows[:2]] == ["Q(s, shoot) - max Q(s, a)", "V(s)"]
    # The gaps of all learners are in the first row, the values of states in the second.
    (chart,) = result.charts
    assert (chart.columns, len(chart.panels)) == (4, 8)
    assert all(panel.title.endswith("V(s)") for panel in chart.panels[4:])
