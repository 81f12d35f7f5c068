"""The W&B reporter with the real client, which in offline mode writes what it would send."""

import json

import pytest
import wandb
from wandb.proto import wandb_internal_pb2 as protocol

from dropin.core.files import write_json
from dropin.training.reporters import OneOfSeveral
from dropin.training.services import WandB, run_reporter

METRICS = {"step": 640, "return": 1.5, "value_loss": 0.25, "prediction_loss": None}
EVALUATION = {
    "step": 640, "team_limit": 5, "teammates": "strangers", "mode": "greedy", "mean_return": 2.5,
}  # fmt: skip


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")


@pytest.fixture
def records(tmp_path, offline):
    """What a run with one row of metrics and one evaluation leaves behind."""
    directory = tmp_path / "seed-3"
    write_json(directory / "run.json", {"config": {"game": "lbf", "seed": 3}})
    with WandB(directory) as reporter:
        reporter.metrics(METRICS)
        reporter.metrics(METRICS | {"step": 1280, "return": 2.0})
        reporter.evaluation(EVALUATION | {"step": 1280})
    wandb.teardown()  # The client's own process may still be writing; this waits for its end.
    return read_records(directory)


def read_records(directory):
    (path,) = directory.glob("wandb/offline-run-*/run-*.wandb")
    found = []
    for data in read_log(path.read_bytes()):
        record = protocol.Record()  # pyright: ignore[reportAttributeAccessIssue]
        record.ParseFromString(data)
        found.append(record)
    return found


def read_log(data, block=32768, header=7):
    """Read a LevelDB log, the format of the client's files: chunks of records in blocks."""
    position, parts = header, []
    while position + header <= len(data):
        if block - position % block < header:
            position += block - position % block
            continue
        length = int.from_bytes(data[position + 4 : position + 6], "little")
        kind = data[position + 6]  # 1 whole, 2 first, 3 middle, 4 last
        parts.append(data[position + header : position + header + length])
        position += header + length
        if kind in (1, 4):
            yield b"".join(parts)
            parts = []


def test_the_run_has_its_name_and_settings(records):
    (run,) = [each.run for each in records if each.WhichOneof("record_type") == "run"]
    assert (run.project, run.display_name) == ("dropin", "seed-3")
    config = {each.key: json.loads(each.value_json) for each in run.config.update}
    assert config["config"] == {"game": "lbf", "seed": 3}


def logged(records):
    """The numbers by step and name."""
    rows = {}
    for each in records:
        if each.WhichOneof("record_type") == "history":
            items = {
                (".".join(item.nested_key) or item.key): json.loads(item.value_json)
                for item in each.history.item
            }
            rows.setdefault(each.history.step.num, {}).update(items)
    return rows


def test_every_number_is_logged_under_its_name_and_step(records):
    rows = logged(records)
    assert rows[640]["training/return"] == 1.5
    assert rows[640]["training/value_loss"] == 0.25
    assert "training/prediction_loss" not in rows[640]
    assert rows[1280]["training/return"] == 2.0
    assert rows[1280]["evaluation/limit_5_greedy"] == 2.5


def test_two_runs_in_one_process_are_kept_apart(offline, tmp_path):
    paths = [tmp_path / "seed-3", tmp_path / "seed-4"]
    for path in paths:
        write_json(path / "run.json", {})
    with run_reporter("none", paths, tensorboard=False, wandb=True) as reporter:
        for number, path in enumerate(paths):
            one = OneOfSeveral(reporter, path.name)
            one.begin("title", 0, 6400)
            one.metrics(METRICS | {"return": float(number)})
    wandb.teardown()
    returns = [logged(read_records(path))[640]["training/return"] for path in paths]
    assert returns == [0.0, 1.0]
