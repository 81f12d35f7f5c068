"""The directory of results: what is written is read back, and nothing else is accepted."""

import json

import numpy as np
import pytest
from made_up_records import record, runs

from dropin.core.errors import InputError
from dropin.core.files import read_arrays, write_arrays
from dropin.experiments.benchmark.episode_file import EPISODES_FILE, write_episode_table
from dropin.experiments.benchmark.records import EpisodeTable, Record, Sums
from dropin.experiments.benchmark.results import (
    About,
    read_results,
    write_results,
)
from dropin.training.tables import read_table

ABOUT = About("gpl-q", settings={"rank": 2}, training={"steps": 1000}, who="A. Nobody", scale=0.5)
RECORDS = [
    *runs([1.0, 2.0], team_limit=5, predicts=False),
    *runs([3.0, 4.0]),
    *runs([5.0, 6.0], checkpoint="best", returns_by_type={}),
]


@pytest.fixture
def directory(tmp_path):
    write_results(tmp_path / "results", RECORDS, ABOUT)
    return tmp_path / "results"


def same(one, two):
    """Whether two records are equal, arrays and all."""
    if isinstance(one, np.ndarray):
        return one.dtype == two.dtype and np.array_equal(one, two)
    if isinstance(one, Record | EpisodeTable | Sums):
        return same(vars(one), vars(two))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[name], two[name]) for name in one)
    return one == two


def test_what_is_written_is_read_back_in_order(directory):
    found = read_results(directory)
    assert found.about == ABOUT
    assert found.seeds == [0, 1]
    assert found.tasks == [("lbf/strangers", 1)]
    assert found.is_small
    places = [(each.team_limit, each.seed, each.checkpoint) for each in found.records]
    assert places == [(3, 0, "last"), (3, 0, "best"), (3, 1, "last"), (3, 1, "best"),
                      (5, 0, "last"), (5, 1, "last")]  # fmt: skip
    for each in found.records:
        written = [other for other in RECORDS if same(each, other)]
        assert len(written) == 1
    assert sorted(found.files) == [EPISODES_FILE]
    assert found.summaries[0]["mean_return"] == 3.0
    assert found.summaries[0]["by_type"]["H1"] == {"episodes": 5, "mean_return": 4.0}


def test_equal_results_are_equal_files(directory, tmp_path):
    write_results(tmp_path / "again", RECORDS[::-1], ABOUT)
    for name in ("results.json", EPISODES_FILE):
        assert (directory / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_results_are_not_overwritten_unless_asked(directory):
    with pytest.raises(InputError, match="exists already"):
        write_results(directory, RECORDS, ABOUT)
    (directory / "checked.json").write_text("{}")
    write_results(directory, RECORDS[:1], ABOUT, replace=True)
    assert len(read_results(directory).records) == 1
    assert not (directory / "checked.json").exists()


def test_agents_are_copied_and_every_other_file_has_its_checksum(tmp_path):
    (tmp_path / "a").write_bytes(b"weights")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "policy.py").write_text("")
    (tmp_path / "results" / ".hidden").write_text("")
    write_results(
        tmp_path / "results", RECORDS, ABOUT, {("lbf/strangers", 3, 1, "best"): tmp_path / "a"}
    )
    found = read_results(tmp_path / "results")
    agent = "agents/lbf-strangers-limit-3-seed-1-best.safetensors"
    assert sorted(found.files) == [agent, EPISODES_FILE, "policy.py"]
    assert (tmp_path / "results" / agent).read_bytes() == b"weights"
    assert [said["agent"] for said in found.summaries] == [None, None, None, agent, None, None]
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "x").symlink_to(tmp_path / "a")
    with pytest.raises(InputError, match="is a link"):
        write_results(tmp_path / "linked", RECORDS, ABOUT)


def test_nothing_is_written_that_could_not_be_read(tmp_path):
    for wrong in (record(float("nan")), record(seed=-1), record(task="../x"), record(team_limit=1)):
        with pytest.raises(InputError, match=r"^results\.json\."):
            write_results(tmp_path / "results", [wrong], ABOUT)
    assert not (tmp_path / "results").exists()


def change(directory, function):
    path = directory / "results.json"
    values = json.loads(path.read_text())
    function(values)
    path.write_text(json.dumps(values))


def set_path(*path):
    *inner, last, value = path

    def function(values):
        for name in inner:
            values = values[name]
        values[last] = value

    return function


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("schema", 2), r"results\.json\.schema is 2: it can be 1"),
        (("who", None), "who is None, which is no text"),
        (("kind", "dropped"), "kind is 'dropped': it can be dropin, policy, foreign"),
        (("extra", 1), "unknown key 'extra'"),
        (("scale", 2), "scale is out of range"),
        (("settings", {"x": 1e400}), "Infinity is no number of JSON"),
        (("settings", "x", 1e99), "settings.x is out of range"),
        (("seeds", [0, 1, 2]), r"seeds \[0, 1, 2\], but records of \[0, 1\]"),
        (("records", []), "records has 0 values"),
        (("records", 0, "checkpoint", "first"), r"records\[0\].checkpoint is 'first'"),
        (("records", 0, "agent", "../../x"), "agent is .* not of the form"),
        (("records", 0, "agent", "/x"), "agent is .* not of the form"),
        (("records", 0, "episodes", 6), "not those of the records"),
        (("records", 0, "episodes", 10**12), "not those of the records"),
        (("records", 0, "by_type", "H1", "episodes", 4), "not those of the records"),
        (("records", 0, "by_type", "H2", {"episodes": 1, "mean_return": 0}), "of type 'H2'"),
        (("records", 0, "mean_return", 3.1), r"records\[0\].mean_return is 3.1, but .* is 3"),
        (("records", 0, "by_type", "H6", "mean_return", 0), "by_type.H6.mean_return is 0, but"),
        (("records", 0, "around_exit", "total", [0] * 19), "around_exit.total has 19 values"),
        (("records", 0, "by_age", "count", 3, -1), r"by_age.count\[3\] is out of range"),
        (("records", 0, "by_team_size", "count", 2, 26), "counts 51 steps, but .* have 50"),
        (("records", 0, "by_team_size", "count", [1, 2]), "differ in length"),
        (("files", {"a": "b"}), "files.a is 'b'"),
    ],
)  # fmt: skip
def test_results_that_are_not_as_the_schema_says_are_refused(directory, path, message):
    change(directory, set_path(*path))
    with pytest.raises(InputError, match=message):
        read_results(directory)


@pytest.mark.parametrize("name", ["learner", "records"])
def test_a_missing_key_is_refused(directory, name):
    change(directory, lambda values: values.pop(name))
    with pytest.raises(InputError, match=f"has no key '{name}'"):
        read_results(directory)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"returns": np.full(30, np.nan, np.float32)}, "'returns' .* not finite"),
        ({"returns": np.full(30, 1e30, np.float32)}, "'returns' .* not finite"),
        ({"returns": np.zeros(30)}, "'returns' .* 1 axes of float64: it has one of float32"),
        ({"returns": np.zeros((30, 1), np.float32)}, "'returns' .* has 2 axes"),
        ({"steps": np.zeros(30, np.int32)}, "'steps' .* too small"),
        ({"exits": np.full(30, -1, np.int32)}, "'exits' .* too small"),
        ({"exits": np.zeros(29, np.int32)}, "differ in length"),
        ({"more": np.zeros(30, np.int32)}, "unknown column 'more'"),
        ({"steps": None}, "no column 'steps'"),
        ({"record": np.zeros(30, np.int32)}, "not those of the records"),
        ({"type": np.zeros(40, np.int32)}, "not those of the records"),
        ({"returns": np.zeros(30, np.float32)}, "mean of its episodes is 0"),
    ],
)  # fmt: skip
def test_episodes_that_do_not_fit_are_refused(directory, arrays, message):
    stored, about = read_arrays(directory / EPISODES_FILE)
    stored |= arrays
    kept = {name: array for name, array in stored.items() if array is not None}
    write_arrays(directory / EPISODES_FILE, kept, about)
    with pytest.raises(InputError, match=message):
        read_results(directory)


def test_other_files_are_no_episodes(directory):
    write_arrays(directory / EPISODES_FILE, {}, {"kind": "agent"})
    with pytest.raises(InputError, match="does not hold episodes"):
        read_results(directory)
    (directory / EPISODES_FILE).unlink()
    with pytest.raises(InputError, match="does not exist"):
        read_results(directory)


def test_the_table_of_episodes_has_every_episode_as_a_row(directory, tmp_path):
    records = read_results(directory).records
    write_episode_table(tmp_path / "episodes.csv", {"gpl-q": records})
    rows = read_table(tmp_path / "episodes.csv")
    assert len(rows) == 6 * 5 + 4 * 2 * 5
    first, last = rows[0], rows[-1]
    assert (first["learner"], first["teammates"], first["episode"]) == ("gpl-q", "pool", "0")
    assert (float(first["returns"]), first["steps"], first["entries"]) == (2.75, "10", "1")
    assert (last["team_limit"], last["teammates"], last["episode"]) == ("5", "H6", "4")
    assert (float(last["returns"]), last["steps"]) == (1.25, "")
