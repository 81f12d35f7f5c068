"""Runs are found by what they are."""

from pathlib import Path

from dropin.experiments.runs import find_runs, identity
from dropin.training.config import EvaluationConfig, run_config
from dropin.training.directory import RunDirectory

LEARNING = Path(__file__).parents[2] / "docs" / "results" / "learning"


def test_what_is_watched_does_not_make_another_run():
    plain = run_config("lbf", "gpl-q", seed=3)
    watched = EvaluationConfig(team_limits=(5,), envs=16)
    assert identity(plain) == identity(run_config("lbf", "gpl-q", seed=3, evaluation=watched))
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
            kept = found[identity(run_config(game, learner, rules=rules, seed=seed))]
            assert kept.done
            assert kept.limits == {3, 5}
            assert not kept.has_agents
    # Those in which a type was missing are other runs.
    eight = tuple(f"H{number}" for number in range(1, 10) if number != 5)
    for seed in range(3):
        config = run_config("lbf", "gpl-q", rules="reference", seed=seed, types=eight)
        assert found[identity(config)].done


def test_of_two_the_one_that_has_come_further_counts(tmp_path):
    config = run_config("lbf", "gpl-q", steps=640)
    for name, steps in (("a", [0]), ("b", [0, 320, 640]), ("c", [])):
        files = RunDirectory(tmp_path / name / "deep" / "run")
        files.create(config)
        for step in steps:
            row = dict.fromkeys(files.evaluation.columns, "") | {"step": step, "team_limit": 3}
            files.evaluation.append(row)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "run.json").write_text("{}")
    found = find_runs([tmp_path])
    assert list(found) == [identity(config)]
    kept = found[identity(config)]
    assert kept.path == tmp_path / "b" / "deep" / "run"
    assert (kept.step, kept.last, kept.done) == (640, 640, True)
