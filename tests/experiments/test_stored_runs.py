"""Runs are found by their settings."""

from pathlib import Path

from dropin.experiments.stored_runs import find_runs, identity
from dropin.training.config import EvaluationConfig, run_config
from dropin.training.run_directory import RunDirectory

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
    ]
    assert len({identity(each) for each in [plain, *others]}) == 7


def test_the_runs_of_the_page_of_results_are_found():
    found = find_runs([LEARNING])
    for game, learner, rules, seeds in (
        ("lbf", "gpl-q", "reference", 1),
        ("lbf", "gpl-spi", "paper", 1),
        ("wolfpack", "gpl-q", "reference", 2),
        ("fortattack", "gpl-q", "reference", 1),
    ):
        for seed in range(seeds):
            (run,) = found[identity(run_config(game, learner, rules=rules, seed=seed))]
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
    row = {"team_limit": 3, "teammates": "strangers", "mode": "greedy"}
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
    files.evaluation.append(row)
    ((run,),) = find_runs([tmp_path]).values()
    assert run.evaluated_steps == [0]
    files.evaluation.append({**row, "step": 320})
    assert len(run.evaluations) == len(run.greedy_evaluations(3)) == 1
    assert run.reloaded().evaluated_steps == [0, 320]
    assert run.reloaded().greedy_evaluations(3, "partners") == []
