"""Recorded episodes as arrays and tables."""

import csv
import sys

import numpy as np
import pytest
from arena_rooms import room, simulation
from test_recording import PEOPLE, edit, record

import dropin
from dropin.arena.episodes import export_csv, export_parquet, load_episodes
from dropin.core.errors import InputError, MissingExtraError


@pytest.fixture
def moments(tmp_path):
    return record(tmp_path / "b" / "one.jsonl")


def test_episodes_are_arrays_of_what_happened_in_the_end(tmp_path, moments):
    record(tmp_path / "c.jsonl", seed=5, close=False)
    (tmp_path / "notes.txt").write_text("not a recording")
    episode, other = dropin.load_episodes(tmp_path)
    assert (episode.complete, other.complete) == (True, False)
    assert (episode.header["seed"], other.header["seed"]) == (4, 5)
    assert len(episode) == 5
    sim = simulation(room("lbf"))
    for step, moment in enumerate(moments):
        seen, mind = sim.observation(moment), sim.mind(moment)
        np.testing.assert_array_equal(episode.agents[step], seen.agents)
        np.testing.assert_array_equal(episode.shared[step], seen.shared)
        np.testing.assert_array_equal(episode.present[step], seen.present)
        np.testing.assert_array_equal(episode.arrived[step], seen.arrived)
        np.testing.assert_array_equal(episode.types[step], sim.state(moment).roster.type)
        np.testing.assert_array_equal(episode.chosen[step], mind.chosen)
        assert episode.q_values is not None
        np.testing.assert_array_equal(episode.q_values[step], mind.q_values)
        assert episode.teammate_probs is not None
        np.testing.assert_array_equal(episode.teammate_probs[step], mind.teammate_probs)
    for step, moment in enumerate(moments[1:]):
        outcome = sim.time_step(moment)
        assert outcome is not None
        np.testing.assert_array_equal(episode.actions[step], outcome.actions)
        np.testing.assert_array_equal(episode.acted[step], outcome.acted)
        np.testing.assert_array_equal(episode.rewards[step], outcome.rewards)
    assert episode.terminated.tolist() == episode.truncated.tolist() == [False] * 5
    # The person pressed 0, 1, 2, went back from step 5 to 3 and pressed 5 there, and left.
    assert episode.actions[:4, 1].tolist() == [0, 1, 2, 5]
    assert episode.is_person[:, 1].tolist() == [True] * 4 + [False]
    assert not episode.is_person[:, [0, 2, 3]].any()
    assert episode.people == [PEOPLE] * 4 + [{}]
    assert episode.is_default[:, 1].tolist() == [False, False, True, False, False]
    assert episode.after_ms[:4, 1].tolist() == [120.5, 121.5, 122.5, 125.5]
    assert episode.latency_ms[0, 1] == 3.25
    assert np.isnan(episode.after_ms[:, 0]).all()


def test_a_learner_without_predictions_has_none(tmp_path):
    from dropin.arena.recording import Recorder

    sim = simulation(room("lbf"), "random")
    Recorder(tmp_path / "one.jsonl", sim, room("lbf"), sim.reset(0), 0).close()
    (episode,) = load_episodes(tmp_path / "one.jsonl")
    assert len(episode) == 0
    assert (episode.q_values, episode.teammate_probs) == (None, None)
    assert episode.agents.shape == (1, 4, 3)
    assert episode.actions.shape == (0, 4)


def test_the_table_has_a_row_for_each_action(tmp_path, moments):
    episodes = load_episodes(tmp_path)
    export_csv(episodes, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    (episode,) = episodes
    assert len(rows) == episode.acted.sum()
    hers = [row for row in rows if row["is_person"] == "True"]
    assert [row["action_name"] for row in hers] == ["none", "north", "south", "load"]
    assert {row["person"] for row in hers} == {"ada"}
    assert {row["type"] for row in hers} == {""}
    assert {row["type"] for row in rows if row["slot"] == "2"} <= {"H1", "H6"}
    assert episode.teammate_probs is not None
    wanted = episode.teammate_probs[1, 1, 1]
    assert float(hers[1]["predicted_prob"]) == pytest.approx(float(wanted))
    assert float(hers[1]["feature: row"]) == episode.agents[1, 1, 0]
    assert [row["after_ms"] for row in hers] == ["120.5", "121.5", "122.5", "125.5"]
    assert {row["predicted_action"] for row in rows if row["slot"] == "0"} == {""}


def test_parquet_holds_the_same_table(tmp_path, moments):
    parquet = pytest.importorskip("pyarrow.parquet")
    episodes = load_episodes(tmp_path)
    export_csv(episodes, tmp_path / "table.csv")
    export_parquet(episodes, tmp_path / "table.parquet")
    table = parquet.read_table(tmp_path / "table.parquet").to_pylist()
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(table) == len(rows)
    for typed, text in zip(table, rows, strict=True):
        as_text = {name: "" if value is None else str(value) for name, value in typed.items()}
        assert as_text == text


def test_without_pyarrow_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dropin-rl\[parquet\]'"):
        export_parquet([], tmp_path / "table.parquet")


def test_wrong_directories_and_damaged_files_get_one_sentence(tmp_path, moments):
    with pytest.raises(InputError, match="There is no directory"):
        load_episodes(tmp_path / "nowhere")
    assert load_episodes(tmp_path / "b")
    edit(tmp_path / "b" / "one.jsonl", 3, lambda line: line.pop("rewards"))
    with pytest.raises(InputError, match="a line of it makes no sense"):
        load_episodes(tmp_path)
