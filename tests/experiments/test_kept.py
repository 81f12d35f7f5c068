"""Finished runs are kept as small tables, evaluated in episodes that were never used before."""

import dataclasses
import json

import numpy as np
import pytest
import tiny
from made_up import write_run

from dropin.agents import load_agent
from dropin.core.errors import InputError
from dropin.evaluation.evaluate import evaluate
from dropin.experiments import kept
from dropin.experiments.kept import (
    find_failures,
    fresh_evaluations,
    kept_name,
    publish,
    write_failure,
)
from dropin.experiments.planning import StoredRun, find_runs, identity
from dropin.training.config import run_config
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import read_table

RETURNS = {3: [0.0, 2.123456789, 1.0], 5: [0.0, 1.0, 0.5]}


def test_the_name_says_what_differs_from_table_2():
    names = {
        "lbf-gpl-q-reference/seed-3": {"rules": "reference", "seed": 3},
        "lbf-gpl-q-paper-limit-2/seed-0": {"team_limit": 2},
        "lbf-gpl-q-paper-H1-H2/seed-0": {"types": ("H1", "H2")},
        "lbf-gpl-q-paper-shared-type-True/seed-0": {"game_settings": {"shared_type": True}},
        "lbf-gpl-q-paper-closed/seed-0": {"openness": "closed"},
    }
    for name, settings in names.items():
        assert str(kept_name(run_config("lbf", "gpl-q", **settings))) == name


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A real run of a second, with its agents."""
    path = tmp_path_factory.mktemp("trained") / "run"
    tiny.run(path, keep="agents")
    ((run,),) = find_runs([path]).values()
    return run


@pytest.mark.slow
def test_last_and_best_agents_play_fresh_episodes(trained, monkeypatch):
    monkeypatch.setattr(kept, "FRESH_ENVS", 16)
    monkeypatch.setattr(kept, "FRESH_EPISODES", 80)
    rows = fresh_evaluations(trained)
    assert [(row["agent"], row["step"], row["team_limit"]) for row in rows] == [
        (agent, step, limit)
        for agent, step in (("last", 120), ("best", trained.best_step))
        for limit in (3, 4)
    ]
    # The same episodes, played by the function that users call.
    agent = load_agent(RunDirectory(trained.path).agent_at(120))
    env = trained.config.make_env(slots=4)
    again = evaluate(agent, env, episodes=80, seed=kept.FRESH_SEED)
    assert rows[0]["episodes"] == 80
    assert rows[0]["mean_return"] == pytest.approx(np.mean(again.returns))


def test_episodes_of_training_are_not_fresh(tmp_path):
    for change in ({"seed": kept.FRESH_SEED}, {"evaluation": {"seed": kept.FRESH_SEED}}):
        run = StoredRun(tmp_path, run_config("lbf", "ql", **change))
        with pytest.raises(InputError, match="no episode of it is fresh"):
            fresh_evaluations(run)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A finished run, and made-up returns in fresh episodes."""
    row = {"step": 640, "team_limit": 3, "mode": "greedy", "mean_return": 1 / 3, "agent": "last"}
    monkeypatch.setattr(kept, "fresh_evaluations", lambda run: [row])
    config = run_config("lbf", "ql", steps=640, rules="reference")
    files = write_run(tmp_path / "run", config, RETURNS, agents=True)
    sampled = {**read_table(files.evaluation.path)[0], "mode": "sampled"}
    files.evaluation.append(sampled)
    return StoredRun(files.path, config)


def test_a_kept_run_has_small_tables_and_no_agents(stored, tmp_path):
    directory = publish(stored, tmp_path / "results")
    assert directory == tmp_path / "results" / "lbf-ql-reference" / "seed-0"
    names = sorted(each.name for each in directory.iterdir())
    assert names == ["evaluation.csv", "fresh.csv", "run.json"]
    ((again,),) = find_runs([tmp_path / "results"]).values()
    assert identity(again.config) == identity(stored.config)
    assert (again.is_done, again.best_step) == (True, 320)
    assert [row["mean_return"] for row in again.greedy_evaluations(3)] == ["0", "2.1235", "1"]
    assert {row["mode"] for row in again.evaluations} == {"greedy"}
    assert [row["mean_return"] for row in again.fresh_evaluations] == ["0.3333"]
    about = json.loads((directory / "run.json").read_text())
    assert "keep" not in about
    assert RunDirectory(directory).ran_on() == RunDirectory(stored.path).ran_on()
    assert "cores" in about["machine"]


def test_one_run_of_each_kind_is_kept_with_its_best_agent(stored, tmp_path):
    results = tmp_path / "results"
    RunDirectory(stored.path).agent_at(320).write_bytes(b"the best of seed 0")
    config = dataclasses.replace(stored.config, seed=1)
    files = write_run(tmp_path / "second", config, RETURNS, agents=True)
    directory = publish(stored, results, with_agent=True)
    second = publish(StoredRun(files.path, config), results, with_agent=True)
    assert (directory / "agent.safetensors").read_bytes() == b"the best of seed 0"
    assert sorted(each.name for each in second.iterdir()) == [
        "evaluation.csv",
        "fresh.csv",
        "run.json",
    ]
    # Another training of seed 0 replaces the agent too.
    again = write_run(tmp_path / "again", stored.config, {3: [0, 1, 3], 5: [0, 0, 0]}, agents=True)
    again.agent_at(640).write_bytes(b"the best of the other training")
    assert publish(StoredRun(again.path, stored.config), results, with_agent=True) == directory
    assert (directory / "agent.safetensors").read_bytes() == b"the best of the other training"


def test_a_run_is_kept_once_and_never_replaced_by_another(stored, tmp_path):
    results = tmp_path / "results"
    write_failure(stored.config, "The disk was full.", results)
    failure = results / kept_name(stored.config) / "failure.json"
    assert find_failures([tmp_path]) == {identity(stored.config): "The disk was full."}
    directory = publish(stored, results)
    assert not failure.exists()
    before = (directory / "fresh.csv").stat().st_mtime_ns
    assert publish(stored, results) == directory
    assert (directory / "fresh.csv").stat().st_mtime_ns == before
    other = dataclasses.replace(stored.config, steps=1280)
    files = write_run(tmp_path / "other", other, RETURNS)
    with pytest.raises(InputError, match="holds a run of other settings"):
        publish(StoredRun(files.path, other), results)
