"""All targets of `make fuzz`: what once failed, the special files, and a share of new inputs."""

import os
import tempfile
from pathlib import Path

import pytest
from fuzz_guard import ForbiddenError, Watch, check
from fuzz_run import fuzz_unguided
from fuzz_targets import CORPUS, TARGETS

from dropin.core.errors import InputError

NAMES = sorted(TARGETS)
FAILED = [(name, path) for name in NAMES for path in TARGETS[name].failed]
SLOW_TARGETS = ("agent-file", "room-env")
"""A tenth of a second each, or more."""
NOT_WHOLE = ("request-headers", "plugin-metadata", "experiment-files", "results")
"""Targets whose inputs are always refused in the end; for the results episodes are missing."""
SHARE, SLOW_SHARE = 20_000, 200
"""Inputs of each target in the slow tests."""


@pytest.fixture(scope="module")
def watch():
    with tempfile.TemporaryDirectory() as directory:
        yield Watch(Path(directory))


@pytest.mark.parametrize(("name", "path"), FAILED, ids=[f"{n}-{p.name}" for n, p in FAILED])
def test_what_once_failed_is_read_or_refused(name, path, watch):
    place = Path(watch.directory) / name
    assert check(lambda: TARGETS[name].read(path.read_bytes(), place), watch) is None


def test_every_directory_of_the_corpus_is_of_a_target():
    assert {each.name for each in CORPUS.iterdir()} <= set(TARGETS)
    assert len(FAILED) > 5


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [each for each in NAMES if each not in SLOW_TARGETS])
def test_right_inputs_and_a_few_changes_of_them(name, tmp_path):
    """The first inputs are right: that they are refused would mean that nothing is tested."""
    found = TARGETS[name]
    accepted = 0
    for number, data in enumerate(found.seeds()):
        try:
            found.read(data, tmp_path / f"{name}-{number}")
            accepted += 1
        except InputError:
            continue
    assert accepted or name in NOT_WHOLE
    assert fuzz_unguided(name, 40, 0, tmp_path / "out").failures == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_share_of_the_inputs(name, tmp_path):
    inputs = SLOW_SHARE if name in SLOW_TARGETS else SHARE
    assert fuzz_unguided(name, inputs, 1, tmp_path).failures == {}


def test_the_guard_notices_what_it_should(watch, tmp_path):
    """Each of these is what no reader may do."""
    inside, outside = Path(watch.directory) / "inside", tmp_path / "outside"

    def kind(run) -> str | None:
        failure = check(run, watch)
        return None if failure is None else failure.kind

    def refuse(sentence: str) -> None:
        raise InputError(sentence)

    assert kind(lambda: inside.write_text("x")) is None
    assert kind(lambda: outside.write_text("x")) == ForbiddenError.__name__
    assert kind(lambda: (inside.parent / "../up").open("w")) in (
        "PermissionError",
        "ForbiddenError",
    )
    assert kind(lambda: os.system("true")) == ForbiddenError.__name__
    assert kind(lambda: eval("1 + 1")) == ForbiddenError.__name__
    assert kind(lambda: outside.unlink(missing_ok=True)) == ForbiddenError.__name__
    assert kind(lambda: {}["name"]) == "KeyError"
    assert kind(lambda: refuse("It cannot be used.")) is None
    assert kind(lambda: refuse("")) == "message"
    assert kind(lambda: refuse("\ud800")) == "unprintable"
    assert kind(lambda: bytearray(700 * 2**20)) == "memory"
    (Path(watch.directory).parent / "up").unlink(missing_ok=True)
