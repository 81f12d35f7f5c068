"""Files of format 1, and formats that do not exist."""

import json
from pathlib import Path

import numpy as np
import pytest

from dropin.core.errors import InputError
from dropin.core.formats import (
    AGENT_FORMAT,
    RUN_FORMAT,
    check_format,
    upgrade_agent,
    upgrade_columns,
    upgrade_run_config,
)
from dropin.training.run_directory import RunDirectory, run_env
from dropin.training.tables import read_table

LEARNING = Path(__file__).resolve().parents[2] / "docs" / "results" / "learning"
OLD_RUNS = sorted(path.parent for path in LEARNING.rglob("run.json"))


@pytest.mark.parametrize("run", OLD_RUNS[:: max(len(OLD_RUNS) // 12, 1)], ids=lambda run: run.name)
def test_a_kept_run_of_format_1_is_read_with_every_setting(run):
    old = json.loads((run / "run.json").read_text())
    assert "format" not in old
    config = RunDirectory(run).config()
    assert config.training.num_envs == old["config"]["training"]["envs"]
    assert config.training.rollout_length == old["config"]["training"]["period"]
    assert config.training.epsilon.final == old["config"]["training"]["epsilon"]["last"]
    assert config.settings.type_lstm_size == old["config"]["settings"]["type_memory"]
    assert (config.game, config.learner) == (old["config"]["game"], old["config"]["learner"])
    assert (config.steps, config.seed) == (old["config"]["steps"], old["config"]["seed"])
    rows = read_table(run / "evaluation.csv")
    assert {"mean_return", "ci_low", "legacy_mean_return", "mode", "teammates"} <= set(rows[0])
    header, first = (run / "evaluation.csv").read_text().splitlines()[:2]
    assert (
        rows[0]["mean_return"]
        == dict(zip(header.split(","), first.split(","), strict=True))["mean"]
    )


def test_every_kept_run_is_read():
    assert len(OLD_RUNS) > 60
    for run in OLD_RUNS:
        assert RunDirectory(run).config().game in ("lbf", "wolfpack", "fortattack")


def test_the_environment_of_a_run_of_format_1_can_be_made():
    env, config = run_env(next(run for run in OLD_RUNS if "lbf-gpl-q-paper" in str(run)))
    assert (env.game.name, int(env.team.limit)) == ("lbf", config.team_limit)


def test_a_run_of_format_1_cannot_go_on():
    with pytest.raises(InputError, match=r"started with version 0.1.*training cannot go on"):
        RunDirectory(OLD_RUNS[0]).check_resumable()


def test_settings_of_games_are_renamed():
    old = {
        "game": "fortattack", "learner": "gpl-q", "settings": {}, "own_environment": False,
        "changes": {"fewer": 1, "fort": 0.2, "alike": True},
    }  # fmt: skip
    new = upgrade_run_config(old, None, "run.json")
    assert new["game_settings"] == {"fewer_attackers": 1, "fort_radius": 0.2, "shared_type": True}
    assert new["custom_env"] is False
    assert "changes" not in new


def test_partners_of_format_1_stay_partners():
    new = upgrade_run_config({"game": "lbf", "learner": "dgn", "settings": {}}, None, "x")
    assert new["evaluation"]["teammates"] == ["strangers", "partners"]
    rows = [upgrade_columns({"policy": "greedy", "among": "partners", "mean": "1"})]
    assert rows == [{"mode": "greedy", "teammates": "partners", "mean_return": "1"}]


def test_rows_of_metrics_keep_their_own_names():
    row = upgrade_columns({"step": "1", "unshaped": "2", "accuracy": "0.5", "extra_loss": "3"})
    assert row == {
        "step": "1", "unshaped_return": "2", "prediction_accuracy": "0.5", "auxiliary_loss": "3",
    }  # fmt: skip


def test_arrays_of_agents_get_their_present_paths():
    arrays = {"learner.value.types.first.weight": np.ones(2), "temperature": np.ones(())}
    about = {"kind": "agent", "learner": "ql", "config": {"places": 5}, "meets": {"agents": ["x"]}}
    new, described = upgrade_agent(arrays, about, "file")
    assert set(new) == {"network.value.type_network.first.weight", "temperature"}
    assert described["settings"] == {"max_agents_per_side": 5}
    assert described["interface"] == {"agent_features": ["x"]}
    assert described["format"] == AGENT_FORMAT
    checkpoint = {**about, "kind": "checkpoint", "temperature": 0.5}
    new, described = upgrade_agent({**arrays, "env.game.time": np.ones(1)}, checkpoint, "file")
    assert set(new) == set(described["policy_arrays"].values())
    assert "env.game.time" not in new
    assert float(new["temperature"]) == 0.5


def test_what_is_up_to_date_stays_as_it_is():
    config = {"game": "lbf", "changes": 3}
    assert upgrade_run_config(config, RUN_FORMAT, "x") == config


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (
            RUN_FORMAT + 1,
            rf"has format {RUN_FORMAT + 1}, but this version of Dropin reads",
        ),
        ("two", "format 'two', which is no format"),
        (0, "format 0, which is no format"),
        (True, "format True, which is no format"),
    ],
)
def test_other_formats_are_refused_in_one_sentence(found, says, tmp_path):
    with pytest.raises(InputError, match=says):
        check_format(found, RUN_FORMAT, "run.json")
    (tmp_path / "run.json").write_text(json.dumps({"format": found, "config": {}}))
    with pytest.raises(InputError, match=says):
        RunDirectory(tmp_path).config()


def test_a_setting_that_no_longer_exists_is_named(tmp_path):
    old = json.loads((OLD_RUNS[0] / "run.json").read_text())
    old["config"]["settings"]["patience"] = 3
    (tmp_path / "run.json").write_text(json.dumps(old))
    with pytest.raises(InputError, match=r"run.json: Unknown setting of \w+ 'patience'"):
        RunDirectory(tmp_path).config()
