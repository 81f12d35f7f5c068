"""Rooms with real games: recorded, replayed, and found out when the file is wrong."""

import json
from pathlib import Path

import pytest
from serving import Client, serving

from dropin.arena.replay import replay
from dropin.core.errors import InputError

ROOM = {"agent": "H6", "types": ["H1", "H6"], "clock": {"kind": "turns"}}


def play_an_episode(client: Client) -> str:
    """Join in the middle, go back once, and leave; return the room."""
    room = client.open_room(**ROOM)
    with client.person(room, name="Ada") as player:
        player.say("pause")
        player.say("restart", seed=4)
        player.wait("frame", step=0)
        player.say("step")
        player.wait("frame", step=1)
        player.say("take", slot=1)
        player.wait("frame", step=1)
        for step in (1, 2, 3):
            player.say("act", action=step, step=step, ms=1.0)
            player.wait("frame", step=step + 1)
        player.say("rewind", step=2)
        player.wait("truncate")
        player.say("act", action=5, step=2)
        player.wait("frame", step=3)
        player.say("release")
        player.wait("frame", step=3)
        player.say("pause")
        player.say("step")
        player.wait("frame", step=4)
        player.say("restart", seed=9)  # Closes the recording of seed 4.
        player.wait("episode", seed=9)
    return room


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("recordings")
    with serving(real=True, room={"agent": "random"}, record=directory) as client:
        room = play_an_episode(client)
    files = sorted(directory.iterdir())
    assert all(path.name.startswith(room) for path in files)
    lines = {path: path.read_text().splitlines() for path in files}
    return next(path for path, rows in lines.items() if json.loads(rows[0])["seed"] == 4)


def test_an_episode_with_a_person_replays_to_the_same_states(recorded):
    found = replay(recorded)
    assert [moment.step for moment in found.moments] == [0, 1, 2, 3, 4]
    lines = [json.loads(row) for row in recorded.read_text().splitlines()]
    kinds = [line["kind"] for line in lines]
    assert kinds == [
        "header", "state", "step", "change", "step", "step", "step", "rewind", "step", "change",
        "step", "end",
    ]  # fmt: skip
    keys = [line["keys"].get("1") for line in lines if line["kind"] == "step"]
    assert keys[0] is None
    assert keys[1]["after_ms"] == 1.0
    assert keys[1]["latency_ms"] >= 0
    assert keys[4]["latency_ms"] is None
    assert keys[5] is None


def test_a_recording_is_shown_and_cannot_be_joined(recorded):
    with serving(real=True, replay=recorded, room={"agent": "random"}) as client:
        room = client.request("/api/catalogue").json["replay"]
        with client.person(room) as player:
            player.say("pause")
            player.say("restart")
            player.wait("episode", seed=4)
            frames = [player.wait("frame", step=0)]
            for step in (1, 2, 3, 4):
                player.say("step")
                frames.append(player.wait("frame", step=step))
            people = [frame["agents"][1]["person"] is not None for frame in frames]
            # Slot 1 was given back in step 3.
            assert people == [False, True, True, False, False]
            assert frames[3]["actions"][1] == 5
            player.say("take", slot=1)
            assert "nobody can join" in player.wait("error")["message"]
            player.say("next")
            assert "one episode" in player.wait("error")["message"]
            player.say("rewind", step=1)
            player.wait("truncate", step=1)
        found = replay(recorded)
        scores = [round(moment.score, 3) for moment in found.moments]
        assert [round(frame["score"], 3) for frame in frames] == scores


def test_a_wrong_recording_is_found_out_at_the_start(recorded, tmp_path):
    text = recorded.read_text()
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(text.replace('"forced":{"1":5}', '"forced":{"1":4}'))
    assert wrong.read_text() != text
    options = {"replay": wrong, "room": {"agent": "random"}}
    with pytest.raises(InputError, match=r"wrong\.jsonl"), serving(True, **options) as client:
        client.request("/api/catalogue")


def test_stopping_the_server_closes_the_recording(tmp_path):
    options = {"room": {"agent": "random"}, "record": tmp_path}
    with serving(True, **options) as client, client.person(client.open_room(**ROOM)) as player:
        player.wait("frame", step=2, timeout=60)
    (path,) = tmp_path.iterdir()
    assert replay(path).moments[-1].step >= 2
