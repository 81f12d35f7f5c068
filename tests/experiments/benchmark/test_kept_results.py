"""Results without agents and episodes: small, and the pages are the same."""

import json
from dataclasses import replace

import numpy as np
import pytest
from made_up_records import record, runs

from dropin.cli import main
from dropin.core.errors import InputError
from dropin.experiments.benchmark.kept_results import RECORDS_FILE, keep_results, read_kept
from dropin.experiments.benchmark.leaderboard import write_leaderboard
from dropin.experiments.benchmark.results import About, read_results, write_results
from dropin.experiments.benchmark.standing import collect

GPL = [2.0, 2.25, 1.75, 2.5, 2.125]


def store(root, name, means, **changes):
    records = [
        replace(each, learner=name)
        for task in ("lbf/crowd", "lbf/standard")
        for each in runs(means, task=task, **changes)
    ]
    write_results(root / name, records, About(name, command=f"dropin benchmark run {name}"))
    return read_results(root / name)


def test_a_record_that_was_kept_says_what_the_record_says(tmp_path):
    results = store(tmp_path, "gpl-q", GPL)
    kept = read_kept(keep_results(results, tmp_path / "kept"))
    assert kept.seeds == [0, 1, 2, 3, 4]
    assert kept.about == results.about
    for one, two in zip(results.records, kept.records, strict=True):
        for name in ("task", "version", "team_limit", "seed", "checkpoint", "step", "learner"):
            assert getattr(one, name) == getattr(two, name)
        assert two.num_episodes == 5
        assert two.mean_return == pytest.approx(one.mean_return, rel=1e-5)
        assert two.standard_error == pytest.approx(
            np.std(one.episodes.returns, ddof=1) / np.sqrt(5), rel=1e-5
        )
        assert two.mean_return_by_type == pytest.approx(dict(one.mean_return_by_type), rel=1e-5)
        for name in ("by_team_size", "around_entry", "around_exit", "around_change"):
            mine, theirs = (getattr(each, f"reward_{name}") for each in (one, two))
            np.testing.assert_allclose(mine.total, theirs.total, rtol=1e-5)
            assert np.array_equal(mine.count, theirs.count)
        assert two.correct_by_age is not None


def test_the_pages_of_kept_results_are_those_of_the_results(tmp_path):
    for name, means in (("gpl-q", GPL), ("ql", [1.5, 1.0, 1.25, 1.75, 1.375])):
        results = store(tmp_path / "whole", name, means, predicts=name == "gpl-q")
        keep_results(results, tmp_path / "kept" / name)
    texts, numbers = [], []
    for place in ("whole", "kept"):
        out = tmp_path / f"{place}-page"
        pages = write_leaderboard(collect([tmp_path / place], need_receipt=False), out, "x")
        texts.append([page.read_text().split("Results**")[0] for page in pages[::2]])
        numbers.append(json.loads((out / "leaderboard.json").read_text()))
    assert texts[0] == texts[1]
    assert numbers[0] == numbers[1]


def test_a_leaderboard_takes_kept_results_that_were_checked(tmp_path):
    keep_results(store(tmp_path / "whole", "gpl-q", GPL), tmp_path / "kept")
    (reason,) = collect([tmp_path / "kept"]).refused.values()
    assert "kept without being checked" in reason


def test_what_is_kept_is_replaced_by_the_same_learner_only(tmp_path):
    few, more = store(tmp_path / "a", "gpl-q", [9.0, 9.0]), store(tmp_path / "b", "gpl-q", GPL)
    keep_results(few, tmp_path / "kept")
    kept = read_kept(keep_results(more, tmp_path / "kept")).records
    assert [each.mean_return for each in kept] == 2 * GPL
    # Records that the new results lack stay; those of an older version of a task do not.
    keep_results(store(tmp_path / "c", "gpl-q", [7.0], team_limit=5), tmp_path / "kept")
    kept = read_kept(tmp_path / "kept").records
    assert len(kept) == 12
    assert [each.mean_return for each in kept if each.team_limit == 5] == [7.0, 7.0]
    keep_results(store(tmp_path / "d", "gpl-q", [8.0], version=2), tmp_path / "kept")
    assert [each.mean_return for each in read_kept(tmp_path / "kept").records] == [8.0, 8.0]
    other = store(tmp_path, "ql", GPL)
    with pytest.raises(InputError, match="holds results of gpl-q at scale 1: give another"):
        keep_results(other, tmp_path / "kept")
    assert read_kept(tmp_path / "kept").about.learner == "gpl-q"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("last", "lost", "records.csv was changed"),
        ('"schema": 1', '"schema": 2', "kept.json.schema is 2: it can be 1"),
        ('"learner"', '"lerner"', "unknown key 'lerner'"),
        ('"scale": 1.0', '"scale": NaN', "NaN"),
    ],
)
def test_what_was_changed_is_refused(old, new, sentence, tmp_path):
    directory = keep_results(store(tmp_path, "gpl-q", GPL[:1]), tmp_path / "kept")
    for path in directory.iterdir():
        if old in path.read_text() and (path.suffix == ".json" or old == "last"):
            path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=sentence):
        read_kept(directory)


@pytest.mark.parametrize(
    ("old", "new"), [("last", "first"), (",5,", ",five,"), ("H1 H6", "H1"), ("1.75", "nan")]
)
def test_a_row_that_is_no_record_is_refused(old, new, tmp_path):
    """Even if somebody has written its checksum too."""
    from dropin.core.files import file_checksum

    results = store(tmp_path, "gpl-q", [1.75])
    directory = keep_results(results, tmp_path / "kept")
    table, about = directory / RECORDS_FILE, directory / "kept.json"
    before = file_checksum(table)
    assert old in table.read_text()
    table.write_text(table.read_text().replace(old, new))
    about.write_text(about.read_text().replace(before, file_checksum(table)))
    with pytest.raises(InputError, match=r"Row 1 of .* is not a record"):
        read_kept(directory)


def test_the_command_keeps_results_and_writes_their_page(tmp_path, capsys):
    (tmp_path / "results").mkdir()
    with pytest.raises(SystemExit):
        main(["benchmark", "keep", str(tmp_path / "results"), "--out", str(tmp_path / "kept")])
    assert "There are no results to keep" in capsys.readouterr().err
    store(tmp_path / "results", "gpl-q", GPL[:1])
    main(["benchmark", "keep", str(tmp_path / "results"), "--out", str(tmp_path / "kept")])
    out = capsys.readouterr().out.split()
    assert str(tmp_path / "kept" / "gpl-q") in out
    assert (tmp_path / "kept" / "report.md").exists()
    assert not list((tmp_path / "kept").rglob("*.safetensors"))
    with pytest.raises(SystemExit):
        main(["benchmark", "report", str(tmp_path / "kept"), "--csv", "--out", str(tmp_path / "b")])
    assert "kept results hold means only" in capsys.readouterr().err


def test_a_record_of_one_episode_has_no_standard_error():
    assert record(num_episodes=1).standard_error == 0
