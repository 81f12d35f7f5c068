"""Table 2 and appendix G from runs whose numbers are known."""

import pytest
from made_up import TRAINING, fill, make_experiment, sheet_rows

from dropin.core import registry
from dropin.experiments import Options

SMALL = Options(steps=640, seeds=2, games=("lbf",))


def test_the_checkpoint_of_table_2_is_the_best_of_the_mean_in_training(tmp_path):
    experiment = fill(tmp_path, "table2", SMALL, TRAINING)
    result = experiment.result()
    (detail,) = sheet_rows(result, 1)
    assert detail["checkpoint"] == "320"
    # Mean 4 of 2 and 6; with one degree of freedom the interval is 12.706 times 2 wide.
    assert detail["limit 5"] == "4.00 (-21.41 to 29.41; n = 2)"
    assert detail["training, limit 3"].startswith("7.00 (")
    assert detail["paper"] == "1.41 ± 0.14"
    assert result.numbers["lbf ql"]["runs"] == [2.0, 6.0]
    ours, paper = sheet_rows(result)
    assert (ours["ql"], ours["gpl-q"], paper["gpl-spi"]) == ("4.00 ± 25.41", "–", "2.40 ± 0.16")
    assert len(experiment.completed_runs().missing) == 14


def test_the_estimator_is_the_authors_under_the_authors_rules(tmp_path):
    options = Options(steps=640, seeds=2, games=("lbf",), rules="reference")
    result = fill(tmp_path, "table2", options, TRAINING).result()
    assert result.numbers["lbf ql"]["test"]["mean"] == 104.0
    fixed = Options(steps=640, seeds=2, games=("lbf",), rules="reference", estimator="fixed")
    result = make_experiment(tmp_path, "table2", fixed).result()
    assert result.numbers["lbf ql"]["test"]["mean"] == 4.0


def test_an_asterisk_means_above_every_single_agent_baseline(tmp_path):
    levels = {"gpl-q": 10.0, "gpl-spi": 3.5, "ql": 1.0, "ql-am": 2.0, "gnn": 3.0, "gnn-am": 4.0}
    returns = {
        ("", name, seed): {3: [0.0, level], 5: [0.0, level + 0.01 * seed]}
        for name, level in levels.items()
        for seed in range(3)
    }
    options = Options(steps=640, seeds=3, games=("lbf",))
    result = fill(tmp_path, "table2", options, returns).result()
    ours = sheet_rows(result)[0]
    assert ours["gpl-q"].endswith("*")
    assert not any(ours[name].endswith("*") for name in levels if name != "gpl-q")
    detail = {row["learner"]: row for row in sheet_rows(result, 1)}
    assert detail["gpl-q"]["chance of improvement"] == "1.00 over gnn-am"
    assert detail["gpl-spi"]["chance of improvement"] == "0.00 over gnn-am"
    # Of three runs no quarter can be left out, and a bootstrap of them says nothing.
    assert detail["gpl-q"]["interquartile mean"] == "–"
    # With fewer runs than two, or without one of the four, nothing is significant.
    one_seed = Options(steps=640, seeds=1, games=("lbf",))
    two_learners = Options(steps=640, seeds=3, games=("lbf",), learners=("gpl-q", "ql"))
    for options in (one_seed, two_learners):
        rows = make_experiment(tmp_path, "table2", options).result().sheets[0].rows
        assert not any("*" in cell for row in rows for cell in row)


def test_a_learner_of_ones_own_has_a_column(tmp_path, own_learner):
    options = Options(steps=640, seeds=1, games=("lbf",), learners=("ql", own_learner))
    returns = {("", name, 0): {3: [0.0, 1.0], 5: [0.0, 2.0]} for name in ("ql", own_learner)}
    result = fill(tmp_path, "table2", options, returns).result()
    ours, paper = sheet_rows(result)
    assert (ours[own_learner], paper[own_learner]) == ("2.00", "–")
    detail = {row["learner"]: row for row in sheet_rows(result, 1)}
    assert detail[own_learner]["chance of improvement"] == "0.50 over ql"
    result = make_experiment(tmp_path, "figure2", options).result()
    assert [line.label for line in result.charts[0].panels[0].lines] == ["ql", own_learner]


def test_a_limit_that_only_some_runs_were_tested_at_is_left_out(tmp_path):
    options = Options(steps=640, seeds=1, games=("lbf",), learners=("gpl-q", "ql"))
    returns = {
        ("", name, 0): {limit: [0.0, 1.0] for limit in limits}
        for name, limits in {"gpl-q": (2, 3, 5), "ql": (2, 3, 5, 9)}.items()
    }
    result = fill(tmp_path, "team-of-two", options, returns).result()
    assert result.sheets[0].columns == ("game", "learner", "limit 2", "limit 3", "limit 5")


@pytest.mark.parametrize(
    ("name", "games", "limits"),
    [("team-of-two", ("lbf",), (2, 3, 5)), ("fixed-types", None, (3, 5))],
)
def test_other_teams_have_a_column_for_every_limit(tmp_path, name, games, limits):
    options = Options(steps=640, seeds=1, games=games, learners=("gpl-q", "ql"))
    grids = ("",) if name == "team-of-two" else ("among G4", "among G6")
    returns = {
        (grid, learner, 0): {limit: [0.0, float(limit)] for limit in limits}
        for grid in grids
        for learner in ("gpl-q", "ql")
    }
    result = fill(tmp_path, name, options, returns).result()
    found = sheet_rows(result)
    assert len(found) == 2 * len(grids)
    assert found[0]["game"] == ("lbf" if name == "team-of-two" else "fortattack among G4")
    for limit in limits:
        assert found[0][f"limit {limit}"] == f"{limit}.00 (n = 1)"
    assert len(result.charts[0].panels) == len(grids)
    assert result.charts[0].panels[0].lines[0].x == list(limits)


def test_in_a_team_of_two_there_is_one_attacker_for_one_teammate():
    (grid,) = registry.experiments["team-of-two"].grids(Options()).values()
    (config, *_) = grid.run_configs(Options(games=("fortattack",)))
    env = config.make_env(slots=5)
    assert env.sides == (0,) * 5 + (1,) * 4
    for limit in (2, 3, 5):
        limited = env.with_team_limit(limit)
        usable = limited.game.usable_slots(limited.team.slots, limited.team.limit)
        guards = [True] * limit + [False] * (5 - limit)
        attackers = [True] * (limit - 1) + [False] * (5 - limit)
        assert usable.tolist() == guards + attackers
