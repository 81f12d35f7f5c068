"""Records survive being written and read."""

import dataclasses

import pytest
from any_record import make_record

from dropin.core.errors import InputError
from dropin.core.files import write_arrays
from dropin.experiments.benchmark.storage import (
    Source,
    load_record,
    load_records,
    record_path,
    save_record,
)
from dropin.experiments.benchmark.tasks import select_tasks

SOURCE = Source("a checksum", "an identity", 800)


def plain(record):
    """Return a record as lists, to compare it."""
    return {
        each.name: repr(dataclasses.asdict(record)[each.name])
        for each in dataclasses.fields(record)
    }


@pytest.mark.parametrize("predicts", [True, False])
def test_a_record_is_read_as_it_was_written(tmp_path, predicts):
    record = make_record(3, predicts=predicts)
    save_record(tmp_path / "a" / "one.safetensors", record, SOURCE)
    found, source = load_record(tmp_path / "a" / "one.safetensors")
    assert plain(found) == plain(record)
    assert list(found.returns_by_type) == ["H6", "H1"]
    assert source == SOURCE


def test_all_records_of_a_directory_are_found(tmp_path):
    (task,) = select_tasks(["lbf/standard"])
    for learner in ("gpl-q", "lbf/ql", "best-response"):
        for seed in range(2):
            path = record_path(tmp_path, learner, task, 5, seed, "best")
            save_record(path, make_record(seed, learner), SOURCE)
    assert (tmp_path / "records" / "lbf-ql" / "lbf" / "standard").is_dir()
    write_arrays(tmp_path / "runs" / "agent.safetensors", {}, {"kind": "agent"})
    records = load_records(tmp_path)
    assert [(each.learner, each.seed) for each in records] == [
        ("best-response", 0), ("best-response", 1), ("gpl-q", 0), ("gpl-q", 1),
        ("lbf/ql", 0), ("lbf/ql", 1),
    ]  # fmt: skip
    assert len(load_records(tmp_path / "records" / "gpl-q")) == 2
    with pytest.raises(InputError, match="There is no directory"):
        load_records(tmp_path / "nothing")


def test_files_that_are_no_records_are_refused(tmp_path):
    path = tmp_path / "one.safetensors"
    save_record(path, make_record(), SOURCE)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="damaged"):
        load_record(path)
    write_arrays(path, {}, {"kind": "agent"})
    with pytest.raises(InputError, match="not a record"):
        load_record(path)
    write_arrays(path, {}, {"kind": "record", "format": 9})
    with pytest.raises(InputError, match="of format 9"):
        load_record(path)
    write_arrays(path, {}, {"kind": "record", "format": 1})
    with pytest.raises(InputError, match="is not a group in which task is there"):
        load_record(path)
