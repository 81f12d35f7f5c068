"""Runs are found by their settings; finished ones are used, and all others are planned."""

import json
from pathlib import Path

import pytest
from made_up import write_run

from dropin.core import registry
from dropin.core.errors import InputError
from dropin.experiments.planning import Progress, find_runs, identity, plan
from dropin.experiments.reproduce import select_experiments
from dropin.experiments.runs import Grid, Options
from dropin.experiments.timing import estimate_seconds
from dropin.training.config import EvaluationConfig, run_config
from dropin.training.run_directory import RunDirectory

ONE = {"": Grid(games=("lbf",), learners=("ql",), seeds=1)}
OPTIONS = Options(steps=640)
RETURNS = {3: [0.0, 1.0], 5: [0.0, 1.0]}
LEARNING = Path(__file__).parents[2] / "docs" / "results" / "learning"


def test_how_a_run_is_evaluated_does_not_make_it_another_run():
    plain = run_config("lbf", "gpl-q", seed=3)
    evaluation = EvaluationConfig(team_limits=(5,), num_envs=16)
    assert identity(plain) == identity(run_config("lbf", "gpl-q", seed=3, evaluation=evaluation))
    others = [
        run_config("lbf", "gpl-q", seed=4),
        run_config("lbf", "gpl-spi", seed=3),
        run_config("lbf", "gpl-q", seed=3, rank=4),
        run_config("lbf", "gpl-q", seed=3, rules="reference"),
        run_config("lbf", "gpl-q", seed=3, steps=64),
        run_config("lbf", "gpl-q", seed=3, types=("H6",)),
        run_config("lbf", "gpl-q", seed=3, game_version=1),
    ]
    assert len({identity(each) for each in [plain, *others]}) == 8


def test_the_runs_of_the_page_of_results_are_found():
    found = find_runs([LEARNING])
    for game, learner, rules, seeds in (
        ("lbf", "gpl-q", "reference", 1),
        ("lbf", "gpl-spi", "paper", 1),
        ("wolfpack", "gpl-q", "reference", 2),
        ("fortattack", "gpl-q", "reference", 1),
    ):
        for seed in range(seeds):
            # Before versions were counted, Wolfpack had other prey.
            config = run_config(game, learner, rules=rules, seed=seed, game_version=0)
            (run,) = found[identity(config)]
            assert run.is_done
            assert run.evaluated_limits == {3, 5}
            assert run.evaluated_teammates == {"strangers"}
            assert not run.has_agents
            # They are of version 0.1.
            assert not run.is_resumable
    # Those in which a type was missing are other runs.
    eight = tuple(f"H{number}" for number in range(1, 10) if number != 5)
    for seed in range(3):
        config = run_config("lbf", "gpl-q", rules="reference", seed=seed, types=eight)
        assert found[identity(config)][0].is_done


def test_runs_of_the_same_settings_are_found_together(tmp_path):
    config = run_config("lbf", "gpl-q", steps=640)
    row = {"team_limit": 3, "teammates": "strangers", "mode": "greedy", "mean_return": 1.0}
    for name, steps in (("a", [0]), ("b", [0, 320, 640]), ("c", [])):
        files = RunDirectory(tmp_path / name / "deep" / "run")
        files.create(config)
        for step in steps:
            files.evaluation.append({"step": step, **row})
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "run.json").write_text("{}")
    (runs,) = find_runs([tmp_path]).values()
    assert [run.path.parts[-3] for run in runs] == ["a", "b", "c"]
    assert [run.last_evaluated_step for run in runs] == [0, 640, -1]
    assert [run.is_done for run in runs] == [False, True, False]
    assert runs[1].final_step == 640


def test_evaluations_are_read_once(tmp_path):
    config = run_config("lbf", "gpl-q", steps=640)
    files = RunDirectory(tmp_path / "run")
    files.create(config)
    row = {"step": 0, "team_limit": 3, "teammates": "strangers", "mode": "greedy"}
    row["mean_return"] = 1.0
    files.evaluation.append(row)
    ((run,),) = find_runs([tmp_path]).values()
    assert run.evaluated_steps == [0]
    files.evaluation.append({**row, "step": 320})
    assert len(run.evaluations) == len(run.greedy_evaluations(3)) == 1
    assert run.reloaded().evaluated_steps == [0, 320]
    assert run.reloaded().greedy_evaluations(3, "partners") == []


def only(tmp_path, *search, grids=ONE, options=OPTIONS, needs_agents=False):
    (job,) = plan(grids, options, tmp_path / "home", search, needs_agents=needs_agents)
    return job


def test_a_run_elsewhere_is_used(tmp_path):
    job = only(tmp_path)
    assert job.progress is Progress.MISSING
    assert job.seconds_left > 0
    assert job.run.path.is_relative_to(tmp_path / "home")
    write_run(tmp_path / "elsewhere" / "deep", job.config, RETURNS)
    found = only(tmp_path, tmp_path / "elsewhere")
    assert (found.progress, found.seconds_left) == (Progress.DONE, 0.0)
    assert found.run.path == tmp_path / "elsewhere" / "deep"
    # Without its agents it is of no use to an experiment that analyses them.
    without = only(tmp_path, tmp_path / "elsewhere", needs_agents=True)
    assert without.progress is Progress.MISSING


def test_a_run_that_was_not_tested_with_larger_teams_is_not_used(tmp_path):
    write_run(tmp_path / "elsewhere", only(tmp_path).config, {3: [0.0, 1.0]})
    assert only(tmp_path, tmp_path / "elsewhere").progress is Progress.MISSING


def test_of_several_runs_the_one_that_has_everything_is_used(tmp_path):
    config = only(tmp_path).config
    write_run(tmp_path / "elsewhere" / "a", config, {3: [0.0, 1.0]})
    write_run(tmp_path / "elsewhere" / "b", config, RETURNS)
    job = only(tmp_path, tmp_path / "elsewhere")
    assert (job.progress, job.run.path.name) == (Progress.DONE, "b")


def test_a_run_without_the_evaluations_with_partners_is_not_used(tmp_path):
    grids = {"": Grid(games=("lbf",), learners=("dgn",), seeds=1)}
    config = only(tmp_path, grids=grids).config
    write_run(tmp_path / "a", config, RETURNS)
    assert only(tmp_path, tmp_path / "a", grids=grids).progress is Progress.MISSING
    write_run(tmp_path / "b", config, RETURNS, partners=RETURNS)
    assert only(tmp_path, tmp_path / "b", grids=grids).progress is Progress.DONE


def test_a_run_without_the_returns_of_the_estimator_is_not_used(tmp_path):
    legacy = Options(steps=640, estimator="legacy")
    files = write_run(tmp_path / "elsewhere", only(tmp_path).config, RETURNS)
    search = tmp_path / "elsewhere"
    assert only(tmp_path, search, options=legacy).progress is Progress.DONE
    text = files.evaluation.path.read_text()
    files.evaluation.path.write_text(text.replace(",100.0,", ",,").replace(",101.0,", ",,"))
    assert only(tmp_path, search, options=legacy).progress is Progress.MISSING
    assert only(tmp_path, search).progress is Progress.DONE


def test_a_run_whose_last_evaluation_is_incomplete_is_not_done(tmp_path):
    files = write_run(tmp_path / "home" / "run", only(tmp_path).config, RETURNS)
    assert only(tmp_path).progress is Progress.DONE
    lines = files.evaluation.path.read_text().splitlines(keepends=True)
    files.evaluation.path.write_text("".join(lines[:-1]))
    assert only(tmp_path).progress is Progress.STARTED


def test_a_run_is_created_once(tmp_path):
    job = only(tmp_path)
    job.create()
    job.create()
    files = RunDirectory(job.run.path)
    assert identity(files.config()) == identity(job.config)
    assert files.keep(None) == "agents"
    again = only(tmp_path)
    assert again.run.path == job.run.path
    # Nothing of it has been trained yet.
    assert again.progress is Progress.MISSING


def test_a_run_that_is_done_but_lacks_something_is_trained_again_elsewhere(tmp_path):
    job = only(tmp_path)
    write_run(job.run.path, job.config, RETURNS)
    wider = {"": Grid(games=("lbf",), learners=("ql",), seeds=1, test_limits=(4, 5))}
    again = only(tmp_path, grids=wider)
    assert again.progress is Progress.MISSING
    assert again.run.path != job.run.path
    again.create()
    assert only(tmp_path, grids=wider).run.path == again.run.path
    assert only(tmp_path).run.path == job.run.path


def test_grids_share_a_run_if_it_has_what_both_need(tmp_path):
    larger = Grid(games=("lbf",), learners=("ql",), seeds=1, test_limits=(4, 5))
    first, second = plan({"a": ONE[""], "b": ONE[""]}, OPTIONS, tmp_path)
    assert first.run.path == second.run.path
    first, second = plan({"a": larger, "b": ONE[""]}, OPTIONS, tmp_path)
    assert first.run.path == second.run.path
    first, second = plan({"a": ONE[""], "b": larger}, OPTIONS, tmp_path)
    assert first.run.path != second.run.path


def test_an_unfinished_run_of_an_older_version_is_not_resumed(tmp_path):
    job = only(tmp_path)
    job.create()
    path = job.run.path / "run.json"
    stored = json.loads(path.read_text())
    del stored["format"]
    path.write_text(json.dumps(stored))
    again = only(tmp_path)
    assert identity(again.config) == identity(job.config)
    assert again.run.path != job.run.path


def test_a_job_is_refreshed_after_its_run(tmp_path):
    job = only(tmp_path)
    write_run(job.run.path, job.config, RETURNS)
    assert job.progress is Progress.MISSING
    done = job.refreshed()
    assert done.progress is Progress.DONE
    assert done.refreshed() is done


def test_nothing_is_left_of_an_experiment(tmp_path):
    with pytest.raises(InputError, match="it has lbf and ql"):
        plan(ONE, Options(learners=("dgn",)), tmp_path)


def test_the_estimate_of_time_follows_the_specs():
    config = run_config("lbf", "ql", evaluation={"team_limits": (5,)})
    usual = estimate_seconds(config)
    speed = registry.learners["ql"].steps_per_second
    evaluation = 41 * 64 * 5 * registry.games["lbf"].episode_length * 2 / (4 * speed)
    assert usual == pytest.approx(20 + 6_400_000 / speed + evaluation)
    # Twice as many evaluations with partners as well, and twice as many in two modes.
    joint = run_config("lbf", "dgn", evaluation={"team_limits": (5,)})
    alone = run_config("lbf", "dgn", evaluation={"team_limits": (5,), "teammates": ("strangers",)})
    assert estimate_seconds(joint) > estimate_seconds(alone)
    costs = [registry.games[game].relative_cost for game in ("lbf", "wolfpack", "fortattack")]
    assert costs == pytest.approx([1, 1 / 0.7, 1 / 0.28])


def test_every_experiment_has_runs_and_says_where_it_is_in_the_paper():
    for spec in registry.experiments.values():
        assert not any(grid.is_empty(Options()) for grid in spec.grids(Options()).values())
        assert spec.title
        assert spec.source
    with pytest.raises(InputError, match="did you mean 'table2'"):
        select_experiments("tabel2", Options())
    everything = select_experiments("all", Options())
    assert {spec.name for spec in everything} == set(registry.experiments) - {"held-out"}
    joint = Options(learners=("maddpg",))
    assert [spec.name for spec in select_experiments("all", joint)] == [
        "summary", "figure2", "table2", "partners",
    ]  # fmt: skip
