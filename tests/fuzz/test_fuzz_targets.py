"""All targets of `make fuzz`: what once failed, and a share of new inputs; and the harness itself.

None of this needs the fuzzer that is guided by coverage.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import jax
import pytest
from fuzz_guard import CLOSER, Guard
from fuzz_run import SHORTEST_TURN, TURN, fuzz_unguided, main, turn_seconds
from fuzz_state import DIED, Counts, State
from fuzz_table import Target
from fuzz_targets import CORPUS, TARGETS

from dropin.core.errors import InputError

NAMES = sorted(TARGETS)
FAILED = [(name, path) for name in NAMES for path in TARGETS[name].failed]
LATE_TARGETS = ("room-env", "replay", "checkpoint")
"""They compile something first, or trace a whole learner."""
NOT_WHOLE = ("request-headers", "plugin-metadata")
"""Targets whose inputs are always refused in the end."""
SHARE = 5_000
"""Inputs of each target in the slow tests."""


@pytest.fixture(scope="module")
def guard():
    with tempfile.TemporaryDirectory() as directory:
        yield Guard(Path(directory))


@pytest.fixture(autouse=True)
def _no_cache_of_programs():
    """What is compiled for an input is kept on disk in other tests; here that would be a write."""
    jax.config.update("jax_enable_compilation_cache", False)
    yield
    jax.config.update("jax_enable_compilation_cache", True)


def unguided(name, path, inputs, seed=0) -> Counts:
    place = path / "place"
    place.mkdir()
    return fuzz_unguided(name, State(path / "state", name), place, inputs, seed)


@cache
def prepare(name, place):
    """Read a right input, so that what is imported or compiled for all is there."""
    with contextlib.suppress(InputError), warnings.catch_warnings(action="ignore"):
        TARGETS[name].read(next(iter(TARGETS[name].seeds())), place)


@pytest.mark.parametrize(("name", "path"), FAILED, ids=[f"{n}-{p.name}" for n, p in FAILED])
def test_what_once_failed_is_read_or_refused(name, path, guard):
    place = guard.directory / name
    prepare(name, place)
    assert guard.check(lambda: TARGETS[name].read(path.read_bytes(), place)) is None


def test_every_directory_of_the_corpus_is_of_a_target():
    assert {each.name for each in CORPUS.iterdir()} <= set(TARGETS)
    assert len(FAILED) > 5


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [each for each in NAMES if each not in LATE_TARGETS])
def test_right_inputs_and_a_few_changes_of_them(name, tmp_path):
    check_target(name, tmp_path, 40)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_share_of_the_inputs(name, tmp_path):
    check_target(name, tmp_path, SHARE)


def check_target(name, tmp_path, inputs):
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
    assert unguided(name, tmp_path, inputs).failures == {}


def test_the_guard_notices_what_it_should(guard, tmp_path):
    """Each of these is what no reader may do."""
    inside, outside = guard.directory / "inside", tmp_path / "outside"

    def kind(run) -> str | None:
        failure = guard.check(run)
        return None if failure is None else failure.kind

    def refuse(sentence: str) -> None:
        raise InputError(sentence)

    def work() -> None:
        until = os.times().user + 2.5
        while os.times().user < until:
            pass

    assert kind(lambda: inside.write_text("x")) is None
    assert kind(lambda: outside.write_text("x")) == "forbidden"
    beside = Path(f"{guard.directory}-beside")
    assert kind(lambda: beside.write_text("x")) == "forbidden"
    beside.unlink()
    assert kind(lambda: (guard.directory / "../up").open("w")) in ("PermissionError", "forbidden")
    assert kind(lambda: os.system("true")) == "forbidden"
    assert kind(lambda: subprocess.run(["true"], check=True)) == "forbidden"
    assert kind(lambda: eval("1 + 1")) == "forbidden"
    assert kind(lambda: outside.unlink(missing_ok=True)) == "forbidden"
    assert kind(lambda: {}["name"]) == "KeyError"
    assert kind(lambda: refuse("It cannot be used.")) is None
    assert kind(lambda: refuse("")) == "message"
    assert kind(lambda: refuse("\ud800")) == "unprintable"
    assert kind(lambda: bytearray(700 * 2**20)) == "memory"
    assert kind(lambda: None) is None
    (guard.directory.parent / "up").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "leave",
    [
        lambda left: left.append(os.open("/dev/null", os.O_RDONLY)),
        lambda left: os.environ.update(FUZZED="1"),
        lambda left: os.chdir("/"),
    ],
)
def test_a_closer_look_finds_what_is_left_behind(leave, guard, monkeypatch, tmp_path):
    """The guard looks only now and then, but then it sees what any of the inputs has left."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FUZZED", "0")
    left = []
    found = Guard(tmp_path)
    reads = [lambda: None] * CLOSER
    reads[7] = lambda: leave(left)
    kinds = {failure.kind for read in reads if (failure := found.check(read))}
    assert kinds == {"changed"}
    for each in left:
        os.close(each)


def test_counts_and_failures_go_on_where_they_ended(tmp_path, monkeypatch):
    """A failure is kept until it is mended; then its input is put aside for the corpus."""
    broken = True

    def read(data: bytes, path: Path) -> None:
        if broken and data == b"bad":
            raise KeyError("x")

    made_up = Target("made-up", read, lambda data, rng: b"bad", lambda: [b"good"])
    monkeypatch.setitem(TARGETS, "made-up", made_up)
    state, place = State(tmp_path / "state", "made-up"), tmp_path / "place"
    place.mkdir()
    counts = fuzz_unguided("made-up", state, place, 10, 0)
    assert (counts.inputs, list(counts.failures)) == (10, ["KeyError at elsewhere"])
    counts = fuzz_unguided("made-up", state, place, 10, 0)
    assert (counts.inputs, list(counts.failures)) == (20, ["KeyError at elsewhere"])
    assert [each.read_bytes() for each in (state.directory / "failures").iterdir()] == [b"bad"]
    broken = False
    counts = fuzz_unguided("made-up", state, place, 10, 0)
    assert (counts.inputs, counts.failures) == (30, {})
    assert [each.read_bytes() for each in (state.directory / "mended").iterdir()] == [b"bad"]
    assert state.read() == counts


def test_an_input_that_ends_its_process_is_not_read_again_at_the_start(tmp_path):
    state, counts = State(tmp_path, "table"), Counts()
    state.make()
    state.add_failure(counts, f"{DIED} with -9: ", b"deadly")
    state.write(counts)
    assert list(state.failures(state.read())) == []


@pytest.mark.slow
@pytest.mark.skipif(find_spec("atheris") is None, reason="needs the extra fuzz")
def test_guided_fuzzing_goes_on_where_it_ended(tmp_path):
    command = [sys.executable, Path(__file__).with_name("fuzz_run.py"), "--minutes", "0.5"]
    command += ["--targets", "message", "--state", tmp_path]
    state = State(tmp_path, "message")
    found = []
    for _ in range(2):
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
        assert "0 targets fail" in printed.stdout
        found.append((state.read(), set(state.corpus.iterdir())))
    (first, corpus), (second, later) = found
    assert 0 < first.inputs < second.inputs
    assert first.edges > 0
    assert corpus
    assert later


def test_who_has_fewest_inputs_gets_most_time():
    assert turn_seconds(0, 100, 1e9) == TURN
    assert turn_seconds(50, 100, 1e9) == TURN / 2
    assert turn_seconds(99, 100, 1e9) == SHORTEST_TURN
    assert turn_seconds(0, 100, 3.0) == 3.0


def test_counts_are_printed_without_fuzzing(tmp_path, capsys):
    state = State(tmp_path, "table")
    state.make()
    state.write(Counts(inputs=2_000_000, edges=7, failures={"KeyError": "abc"}))
    assert main(["--minutes", "0", "--state", str(tmp_path), "--targets", "table,card"]) == 1
    printed = capsys.readouterr().out
    assert "2,000,000" in printed
    assert "of which 1 have 1,000,000 or more; 1 targets fail" in printed
