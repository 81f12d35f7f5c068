"""Recordings are re-simulated to the same bits, and wrong ones are found out."""

import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from arena_rooms import room, simulation, untrained
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_simulation import CHANGES, STEPS, do, same_bits

from dropin.arena.config import Clock
from dropin.arena.recording import KeyPress, Recorder, agent_checksum, read_recording
from dropin.arena.replay import replay
from dropin.core.errors import InputError

CONFIG = room("lbf", agent="given", seed=4)
PEOPLE = {1: "ada"}


def find(agent_id):
    assert agent_id == "given"
    return untrained(room("lbf"))


def record(path, config=CONFIG, seed=4, steps=6, close=True):
    """Record an episode in which a person joins, plays, goes back once and leaves."""
    sim = simulation(room("lbf"))
    moments = [sim.reset(seed)]
    recorder = Recorder(
        path, sim, config, moments[0], seed, agent=find("given"), about={"participant": "p7"}
    )
    moments[0] = sim.change(moments[0], joined=[1])
    recorder.change(moments[0], joined=[1], people=PEOPLE)
    for number in range(steps):
        forced = {1: number % 6}
        moments.append(sim.step(moments[-1], forced))
        key = KeyPress(after_ms=120.5 + number, latency_ms=3.25, default=number == 2)
        recorder.step(moments[-1], forced, people=PEOPLE, keys={1: key})
        if number == 4:
            recorder.rewind(3)
            del moments[4:]
    moments[-1] = sim.change(moments[-1], left=[1])
    recorder.change(moments[-1], left=[1])
    moments.append(sim.step(moments[-1], {}))
    recorder.step(moments[-1], {})
    if close:
        recorder.close()
    else:  # As the end of the process does.
        recorder._file.close()
    return moments


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "somewhere" / "episode.jsonl"


def test_a_recording_is_simulated_again_to_the_same_bits(path):
    moments = record(path)
    found = replay(path, find)
    assert len(found.moments) == len(moments) == 6
    for one, two in zip(found.moments, moments, strict=True):
        assert same_bits(one, two)
    assert found.people == [PEOPLE] * 4 + [{}, {}]
    assert found.recording.config == CONFIG
    assert found.recording.header["about"] == {"participant": "p7"}


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 100), st.lists(st.one_of(CHANGES, STEPS), max_size=8))
def test_whatever_people_do_can_be_simulated_again(tmp_path, seed, deeds):
    path = tmp_path / f"{abs(hash((seed, str(deeds))))}.jsonl"
    path.unlink(missing_ok=True)
    sim = simulation(room("lbf"))
    first, *others = do(sim, seed, deeds)
    recorder = Recorder(path, sim, CONFIG, first, seed, agent=find("given"))
    for moment, deed in zip(others, deeds, strict=False):
        if "joined" in deed:
            recorder.change(moment, **deed)
        else:
            recorder.step(moment, deed)
    recorder.close()
    steps = {each.step: each for each in (first, *others)}
    for moment in replay(path, find).moments:
        assert same_bits(moment, steps[moment.step])


def test_what_was_written_is_there_when_the_process_is_killed(path):
    """Nothing is closed; all lines but a torn one are read, and only a replay is refused."""
    record(path, close=False)
    whole = path.read_bytes()
    recording = read_recording(path)
    assert not recording.complete
    assert len(recording.lines) == 11
    path.write_bytes(whole[:-10])
    assert len(read_recording(path).lines) == 10
    with pytest.raises(InputError, match=r"incomplete: it ends after 10 lines"):
        replay(path, find)


def test_every_line_is_on_disk_as_soon_as_it_is_written(path):
    sim = simulation(room("lbf"))
    moment = sim.reset(0)
    recorder = Recorder(path, sim, CONFIG, moment, 0, agent=find("given"))
    assert len(read_recording(path).lines) == 1
    for step in range(1, 4):
        moment = sim.step(moment, {})
        recorder.step(moment, {})
        assert read_recording(path).lines[-1]["step"] == step
    recorder.close()
    recorder.close()
    assert read_recording(path).complete


def test_a_file_is_never_overwritten(path):
    record(path)
    with pytest.raises(InputError, match="exists already"):
        record(path)
    with pytest.raises(InputError, match="cannot be written"):
        record(path / "below-a-file.jsonl")


def test_any_damage_is_found(path):
    record(path, steps=2)
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(bytes(damaged))
        with pytest.raises(InputError, match=r"damaged|not a recording|incomplete"):
            replay(path, find)
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3] + lines[4:]))
    with pytest.raises(InputError, match=r"line 4, is damaged: its checksum does not fit"):
        read_recording(path)
    for content in (b"", b"\n", b"nonsense", b"{}\n", whole[:50]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"damaged|not a recording"):
            read_recording(path)
    with pytest.raises(InputError, match="There is no file"):
        read_recording(path.with_name("other"))


def edit(path, number, change):
    """Change a line of a file as somebody would who knows how checksums are made."""
    lines, check = [], 0
    for index, row in enumerate(path.read_text().splitlines()):
        line = json.loads(row)
        del line["check"]
        if index == number:
            change(line)
        body = json.dumps(line, separators=(",", ":"))
        check = zlib.crc32(body.encode(), check)
        lines.append(f'{body[:-1]},"check":{check}}}\n')
    path.write_text("".join(lines))


def set_to(**values):
    return lambda line: line.update(values)


def test_the_edit_of_these_tests_keeps_a_file_as_it_is(path):
    record(path)
    whole = path.read_text()
    edit(path, 2, set_to())
    assert path.read_text() == whole


@pytest.mark.parametrize(
    ("number", "change", "says"),
    [
        (3, set_to(forced={"1": 4}), "differs from its re-simulation at step 1, in 'actions'"),
        (3, set_to(rewards=[1.0, 0, 0, 0]), "at step 1, in 'rewards'"),
        (3, set_to(digest="0" * 24), "at step 1, in 'digest'"),
        (3, set_to(q=[0.0] * 6), "at step 1, in 'q'"),
        (3, lambda line: line["probs"][1].reverse(), "at step 1, in 'probs'"),
        (10, set_to(left=[]), "at step 4, in 'digest'"),
        (1, set_to(agents=[]), "at step 0, in 'agents'"),
        (0, set_to(seed=5), "at step 0, in 'digest'"),
        (0, set_to(format=2), "has format 2, but this version reads 1"),
        (0, set_to(game_version=7), "another game version: 7"),
        (0, set_to(types=["H1"]), "another types"),
        (0, lambda line: line["config"].update(game="chess"), "Unknown game 'chess'"),
        (0, lambda line: line["config"].update(players=3), "settings that cannot be used: Unknown"),
        (0, set_to(config={"game": "lbf"}), "its header is not a group in which config"),
        (0, set_to(agent_checksum="0"), "other weights of 'given'"),
        (3, set_to(forced={"1": 17}), "There is no action 17"),
        (3, set_to(forced={"one": 1}), "makes no sense"),
        (3, set_to(forced=None), "makes no sense"),
        (8, set_to(step=99), "rewinds to a step that it does not have"),
        (4, set_to(kind="state"), "a line of kind 'state' too many"),
    ],
)
def test_a_wrong_file_is_found_out(path, number, change, says):
    record(path)
    edit(path, number, change)
    with pytest.raises(InputError, match=says):
        replay(path, find)


def test_another_version_is_named_where_bits_differ(path):
    record(path)
    edit(path, 0, lambda line: line["versions"].update(jaxlib="0.0.1"))
    replay(path, find)
    edit(path, 3, set_to(q=[0.0] * 6))
    with pytest.raises(InputError, match=r"in 'q'; it was recorded with jaxlib 0.0.1"):
        replay(path, find)


def test_policies_without_weights_need_no_agent(tmp_path):
    for agent in ("random", "H1"):
        config = room("lbf", agent=agent, clock=Clock("turns"))
        sim = simulation(room("lbf"), agent)
        first = sim.reset(0)
        recorder = Recorder(tmp_path / f"{agent}.jsonl", sim, config, first, 0)
        recorder.step(sim.step(first, {2: 1}), {2: 1})
        recorder.close()
        assert len(replay(recorder.path).moments) == 2


def test_the_checksum_of_an_agent_depends_on_its_weights():
    config = room("lbf")
    assert agent_checksum(untrained(config)) == agent_checksum(untrained(config, "gpl-q", 0))
    assert agent_checksum(untrained(config)) != agent_checksum(untrained(config, "gpl-q", 1))
    assert agent_checksum(untrained(config)) != agent_checksum(untrained(config, "gpl-spi", 0))


def test_numbers_are_written_exactly(path):
    moments = record(path)
    sim = simulation(room("lbf"))
    lines = read_recording(path).lines
    last, moment = lines[-1], moments[-1]
    np.testing.assert_array_equal(np.float32(last["q"]), sim.mind(moment).q_values)
    np.testing.assert_array_equal(np.float32(last["probs"]), sim.mind(moment).teammate_probs)
    np.testing.assert_array_equal(np.float32(last["agents"]), sim.observation(moment).agents)
