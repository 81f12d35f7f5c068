"""A participant walks through a study, over a real server with fake teams."""

import json
import time

import pytest
from serving import Client, Player, serving
from test_study import SMALL

from dropin.arena.protocol import Limits
from dropin.arena.study import read_study
from dropin.arena.study_store import StudyStore

STUDY = {
    **SMALL,
    "practice": {"text": "Try it.", "slot": 2, "seed": 90},
    "rounds": {"number": 2, "episodes": 2, "seed": 10},
    "room": {"game": "lbf", "clock": {"kind": "turns"}, "rules": "short"},
    "exclusion": {"idle_share": 0.9, "disconnections": 0},
}


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setattr("dropin.arena.room.EPISODE_PAUSE", 0.01)
    with serving(study=read_study(STUDY), record=tmp_path) as client:
        yield client


def start(client: Client, **values):
    answer = client.request("/api/study/start", values)
    assert answer.status == 200, answer.content
    return answer.json["session"], answer.json["page"]


def turn(client: Client, session: str, answers=None):
    return client.request(f"/api/study/{session}/next", {"answers": answers}).json


def play(client: Client, session: str, page) -> Player:
    """Play a round to its end; return who played."""
    with client.person(page["room"], session=session) as player:
        step = None
        while True:
            message = player.hear()
            if message["type"] == "over":
                return player
            if message["type"] == "frame" and message["step"] != step:
                step = message["step"]
                player.say("act", action=1, step=step)


def test_from_consent_to_the_code(client, tmp_path):
    catalogue = client.request("/api/catalogue").json
    assert catalogue["study"] == {"title": "Small"}
    assert client.request("/api/rooms", {}).status == 403
    session, page = start(client, participant="P-7", condition="b")
    assert (page["kind"], page["consent"], page["text"]) == ("text", True, "Do you agree?")
    assert page["progress"] == [0, 8]
    assert turn(client, session) == {"error": "You have to agree to take part."}
    page = turn(client, session, {"consent": True})["page"]
    assert (page["kind"], page["practice"], page["slot"]) == ("round", True, 2)
    assert turn(client, session) == {"error": "This round has not been played to its end yet."}
    play(client, session, page)
    page = turn(client, session)["page"]
    for number in (1, 2):
        assert (page["kind"], page["title"]) == ("round", f"Round {number} of 2")
        assert page["episodes"] == 2
        play(client, session, page)
        page = turn(client, session)["page"]
        assert [each["kind"] for each in page["questions"]] == ["scale", "choice", "text"]
        assert turn(client, session, {"how": 3}) == {"error": "Please answer: Which?"}
        answers = {"how": number, "which": "y", "why": "<script>"}
        page = turn(client, session, answers)["page"]
    assert (page["kind"], page["text"]) == ("text", "Thanks.")
    page = turn(client, session)["page"]
    assert (page["kind"], page["code"]) == ("end", "CODE")
    assert turn(client, session) == {"error": "The study is over."}
    assert client.request(f"/api/study/{session}").json == page
    # The same participant gets the same session again.
    assert start(client, participant="P-7")[0] == session
    (kept,) = StudyStore(tmp_path).sessions
    assert kept.order == ["b"]
    assert kept.flags == []
    assert [each["seed"] for each in kept.rounds] == [90, 10, 12]
    assert [[e["seed"] for e in each["episodes"]] for each in kept.rounds] == [
        [90], [10, 11], [12, 13],
    ]  # fmt: skip
    assert kept.rounds[1]["answers"] == {"how": 1, "which": "y", "why": "<script>"}
    assert kept.idle_share == 0
    assert len(kept.times) == 7


def test_a_lost_connection_is_counted_and_the_round_goes_on(client, tmp_path):
    session, _ = start(client)
    page = turn(client, session, {"consent": True})["page"]
    play(client, session, page)
    page = turn(client, session)["page"]
    with client.person(page["room"], session=session) as player:
        player.wait("status")
        player.say("act", action=1, step=0)
        player.wait("frame", step=1)
    again = client.request(f"/api/study/{session}").json
    assert again["room"] == page["room"]
    play(client, session, again)
    turn(client, session)
    (kept,) = StudyStore(tmp_path).sessions
    assert kept.disconnections == 1
    assert kept.flags == ["unfinished", "disconnections"]
    assert kept.participant.startswith("p-")


def test_a_room_that_was_closed_is_opened_again(tmp_path, monkeypatch):
    with serving(
        study=read_study(STUDY), record=tmp_path, limits=Limits(idle_seconds=0.1)
    ) as client:
        session, _ = start(client)
        page = turn(client, session, {"consent": True})["page"]
        while page["room"] in client.hub.rooms:  # Nobody is there, so it is closed.
            time.sleep(0.02)
        again = client.request(f"/api/study/{session}").json
        assert again["room"] != page["room"]
        with client.person(again["room"], session=session) as player:
            assert player.wait("status", waiting_for=[2])


def test_what_a_study_does_not_answer(client):
    for values, says in (
        ({"participant": "../x"}, "participant's id"),
        ({"condition": "c"}, "Unknown condition 'c'"),
        ({"condition": ["a"]}, "has to be a name"),
        ({"other": 1}, "Only participant and condition"),
    ):
        answer = client.request("/api/study/start", values)
        assert answer.status == 400
        assert says in answer.json["error"]
    assert client.request("/api/study/nonsense").status == 404
    assert client.request("/api/study/nonsense/next", {}).status == 404
    session, _ = start(client)
    page = turn(client, session, {"consent": True})["page"]
    with client.socket(page["room"]) as raw:
        raw.send(json.dumps({"type": "hello", "session": "nonsense"}))
        assert "belongs to a participant" in Player(raw).wait("error")["message"]
