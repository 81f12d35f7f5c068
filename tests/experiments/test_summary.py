"""The results page from runs whose numbers are known, few and many."""

import csv
import json

import pytest
from made_up import make_experiment, sheet_rows, write_run

from dropin.experiments import Options
from dropin.experiments.kept import write_failure
from dropin.experiments.planning import Progress
from dropin.training.tables import write_table

LEVELS = {"gpl-q": 10.0, "ql": 5.0, "gnn": 4.0}
START = {"lbf": 0.0, "wolfpack": 2.0}


def fill(directory, options, fresh=True):
    """Write runs: seed `s` of a learner ends at its level plus `s`, and has one more when fresh."""
    for job in make_experiment(directory, "summary", options).jobs:
        config = job.config
        if config.learner not in LEVELS or (config.game == "wolfpack" and config.learner == "gnn"):
            continue
        start, level = START[config.game], LEVELS[config.learner] + config.seed
        returns = {3: [start, level + 3, level], 5: [start, level / 2, level / 4]}
        files = write_run(job.run.path, config, returns)
        if fresh:
            rows = [
                {"step": 640 if agent == "last" else 320, "team_limit": limit, "mode": "greedy",
                 "teammates": "strangers", "episodes": 400, "mean_return": value,
                 "legacy_mean_return": -value, "agent": agent}
                for agent, more in (("last", 1), ("best", 2))
                for limit, value in ((3, level + more), (5, level / 4 + more))
            ]  # fmt: skip
            write_table(files.path / "fresh.csv", rows)
    return make_experiment(directory, "summary", options)


def options(seeds, **more):
    return Options(steps=640, seeds=seeds, games=("lbf", "wolfpack"), **more)


def section(result, title):
    (found,) = [each for each in result.sections if each.title.startswith(title)]
    return found


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("summary"), options(6))


def test_the_protocol_comes_first(experiment):
    result = experiment.result()
    assert [each.title for each in result.sheets] == ["Protocol"]
    protocol = {row["what"]: row["how"] for row in sheet_rows(result)}
    assert protocol["games"] == "lbf (version 0) and wolfpack (version 1)"
    assert protocol["team limit"] == "3 in training; 3, 5 in tests"
    assert protocol["seeds"].startswith("0-5 of each learner")
    assert "640 in lbf and 640 in wolfpack" in protocol["steps"]
    assert "in 320 episodes" in protocol["evaluation in training"]
    assert "400 fresh episodes (seed 1000003" in protocol["last agent"]
    assert protocol["estimator"] == "fixed; the paper's is legacy"


def test_final_returns_are_those_of_fresh_episodes(experiment):
    result = section(experiment.result(), "Final returns")
    titles = [sheet.title for sheet in result.sheets]
    assert titles == [f"{game}, team limit {limit}" for game in START for limit in (3, 5)]
    row = {each["learner"]: each for each in sheet_rows(result)}["gpl-q"]
    # Levels 10 to 15, and one more in fresh episodes.
    assert row["last agent"].startswith("13.50 (")
    assert row["last agent"].endswith("n = 6)")
    assert row["best agent"].startswith("14.50 (")
    assert row["interquartile mean"].startswith("13.50 (")
    assert row["chance of improvement"].startswith("0.99 (")
    assert row["chance of improvement"].endswith(" over ql")
    # 3.78 in the paper.
    assert row["runs above it"] == "6 of 6"
    assert result.numbers["lbf, team limit 3, gpl-q"]["runs"] == [11.0 + seed for seed in range(6)]
    assert "All returns are of 400 fresh episodes." in result.notes
    (chart,) = result.charts
    assert [panel.title for panel in chart.panels] == titles
    assert "runs above" in chart.panels[0].ylabel


def test_without_fresh_episodes_the_last_evaluation_counts(tmp_path):
    result = section(fill(tmp_path, options(2), fresh=False).result(), "Final returns")
    row = {each["learner"]: each for each in sheet_rows(result)}["gpl-q"]
    assert row["last agent"] == "10.50 (4.15 to 16.85; n = 2)"
    assert row["best agent"] == row["interquartile mean"] == row["chance of improvement"] == "–"
    assert "lbf gpl-q (0-1), lbf ql (0-1), lbf gnn (0-1), wolfpack gpl-q (0-1)" in result.notes[1]
    assert "10 of 10 runs were not kept" in result.notes[1]
    assert not result.charts


def test_scores_are_0_for_the_untrained_and_1_for_the_best_of_the_paper(experiment):
    result = section(experiment.result(), "All games together")
    rows = sheet_rows(result)
    # GNN has no runs in Wolfpack.
    assert [row["learner"] for row in rows] == ["gpl-q", "ql"]
    assert rows[0]["runs in lbf and wolfpack"] == "6, 6"
    # The paper's largest last means at limit 3 are 3.836 and 31.388.
    expected = sum((13.5 - start) / (top - start) for start, top in ((0, 3.836), (2, 31.388))) / 2
    found = result.numbers["limit 3, gpl-q"]
    assert found["mean"]["mean"] == pytest.approx(expected, abs=1e-3)
    # In level-based foraging there is no shortfall, in Wolfpack it is that of the mean.
    gap = (1 - (13.5 - 2) / (31.388 - 2)) / 2
    assert found["optimality gap"]["mean"] == pytest.approx(gap, abs=1e-3)
    assert found["mean"]["low"] < expected < found["mean"]["high"]
    assert "gpl-q" in result.sheets[0].note


def test_one_game_has_no_scores_over_games(tmp_path):
    lbf = Options(steps=640, seeds=1, games=("lbf",))
    titles = [each.title for each in fill(tmp_path, lbf).result().sections]
    assert titles == [
        "Final returns", "Learning curves (figure 2)", "Larger teams (table 2)",
    ]  # fmt: skip


def test_the_estimator_is_that_of_the_options(tmp_path):
    reference = options(2, rules="reference")
    result = section(fill(tmp_path, reference).result(), "Final returns")
    assert result.numbers["lbf, team limit 3, gpl-q"]["runs"] == [-11.0, -12.0]


def test_raw_data_and_missing_runs_are_written(tmp_path):
    experiment = fill(tmp_path, options(3))
    jobs = [job for job in experiment.jobs if job.progress is not Progress.DONE]
    write_failure(jobs[0].config, "A loss was not finite.", tmp_path / "results")
    markdown, _ = experiment.write("dropin reproduce summary")
    with (markdown.parent / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    # Five kinds of runs, three seeds, two agents, two team limits.
    assert len(rows) == 5 * 3 * 2 * 2
    first = rows[0]
    assert (first["game"], first["learner"], first["seed"]) == ("lbf", "gpl-q", "0")
    assert (first["agent"], first["fresh"], first["mean_return"]) == ("last", "True", "11.0")
    assert first["jaxlib"]
    assert first["machine"]
    page = json.loads((markdown.parent / "summary.json").read_text())
    assert page["command"] == "dropin reproduce summary"
    assert {run["progress"] for run in page["runs"]} == {"done", "missing"}
    done = next(run for run in page["runs"] if run["progress"] == "done")
    assert done["versions"]["XLA_FLAGS"] is not None
    assert done["machine"]
    assert page["made with"]["machine"] == done["machine"]
    text = markdown.read_text()
    assert "| lbf | gpl-q |  | 640 | 0-2 | none |" in text
    assert "| lbf | gpl-spi |  | 640 | none | 0-2 |" in text
    assert "lbf gpl-spi seed 0 failed: A loss was not finite." in text
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "Final returns", "All games together", "Learning curves (figure 2)",
        "Larger teams (table 2)", "How it was made",
    ]  # fmt: skip
    assert text.index("**Protocol**") < text.index("## Final returns")
