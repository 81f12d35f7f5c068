"""The web server on a real port: requests, web sockets, strangers and limits."""

import contextlib
import io
import json
import logging
import socket
import time

import pytest
from serving import Client, Player, serving
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dropin.arena.hub import Hub, Options
from dropin.arena.protocol import Limits
from dropin.arena.security import HEADERS, Access
from dropin.arena.server import make_app, make_server
from dropin.core.config import PlainDict

TOKEN = "a-token-of-the-test"


@pytest.fixture(scope="module")
def client():
    with serving() as client:
        yield client


@pytest.fixture(scope="module")
def guarded():
    with serving(access=Access(TOKEN, local=True)) as client:
        yield client


def read_all(player: Player) -> list[PlainDict]:
    """Read on until the server closes."""
    heard: list[PlainDict] = []
    with contextlib.suppress(ConnectionClosed):
        while True:
            heard.append(player.hear())
    return heard


def closing(player: Player) -> tuple[int | None, str | None]:
    """Read on until the server closes; return its code and reason."""
    read_all(player)
    return player.socket.close_code, player.socket.close_reason


def test_the_catalogue_has_the_first_room(client):
    answer = client.request("/api/catalogue")
    assert answer.status == 200
    assert answer.json["games"] == [{"name": "lbf"}]
    assert answer.json["default"]["agent"] == "random"
    assert answer.json["study"] is None
    assert answer.json["replay"] is None


@pytest.mark.parametrize(
    "path", ["/", "/r/abc", "/static/none.js", "/api/catalogue", "/api/none", "/none"]
)
def test_every_response_has_the_headers(client, path):
    answer = client.request(path)
    for name, value in HEADERS.items():
        assert answer.headers.get(name.lower()) == value, (path, name)
    assert "cache-control" in answer.headers
    assert "unsafe-inline" not in answer.headers["content-security-policy"]
    assert "server" not in answer.headers


@pytest.mark.parametrize(
    "name",
    [
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/server.py",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
        "..\\server.py",
        "a\0b",
        "index.html/",
        "%00",
    ],
)
def test_no_name_reaches_the_file_system(client, name):
    with socket.create_connection(("127.0.0.1", client.port)) as raw:
        path = f"/static/{name}".encode("latin-1")
        raw.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = raw.makefile("rb").read()
    assert answer.split(b"\r\n")[0] in (
        b"HTTP/1.1 404 Not Found", b"HTTP/1.1 400 Bad Request",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "says"),
    [
        ("/api/rooms", {"game": "chess"}, {}, 400, "Unknown game 'chess'"),
        ("/api/rooms", {"colour": 1}, {}, 400, "Unknown setting of RoomConfig 'colour'"),
        ("/api/rooms", {"team_limit": 1}, {}, 400, "too small"),
        ("/api/rooms", {"clock": {"kind": "sundial"}}, {}, 400, "sundial"),
        ("/api/rooms", b"[]", {}, 400, "not a JSON object"),
        ("/api/rooms", b"{", {}, 400, "not JSON"),
        ("/api/rooms", b"[" * 16000, {}, 400, "not JSON"),
        ("/api/rooms", {}, {"Content-Type": "text/plain"}, 400, "application/json"),
        ("/api/rooms", {}, {"Origin": "http://evil.example"}, 403, "Another site"),
        ("/api/rooms", {}, {"Origin": "null"}, 403, "Another site"),
        ("/api/rooms", {}, {"Host": "evil.example"}, 403, "own machine"),
        ("/api/rooms", {}, {"Host": "[broken"}, 403, "own machine"),
        ("/api/rooms", b"x" * 20_000, {}, 413, "at most 16384 bytes"),
        ("/api/catalogue", None, {"Host": "evil.example"}, 403, "own machine"),
        ("/api/study/start", {}, {}, 404, "no study"),
        ("/api/study/abc", None, {}, 404, "no study"),
        ("/none", None, {}, 404, "no such page"),
    ],
)
def test_a_request_that_cannot_be_used_gets_one_sentence(client, path, body, headers, status, says):
    answer = client.request(path, body, headers)
    assert answer.status == status
    assert says in answer.json["error"]


def test_a_method_that_is_not_there(client):
    assert client.request("/api/rooms").status == 405
    assert client.request("/api/catalogue", {}).status == 405
    assert client.request("/", method="DELETE").status == 405


def test_two_people_meet_in_a_room_and_play(client):
    room = client.open_room(clock={"kind": "turns"})
    with client.person(room, name="Ada") as one, client.person(room, name="<b>Bo</b>") as two:
        one.say("take", slot=1)
        step = one.wait("frame")["step"]
        one.wait("status")
        two.say("take", slot=0)
        people = one.wait("status", waiting_for=[1, 0])["people"]
        assert [(each["name"], each["slot"]) for each in people] == [("Ada", 1), ("<b>Bo</b>", 0)]
        step = two.wait("status", waiting_for=[1, 0]) and step
        one.say("act", action=2, step=step)
        assert two.wait("acted")["slot"] == 1
        two.say("act", action=3, step=step)
        for each in (one, two):
            frame = each.wait("frame", step=step + 1)
            assert frame["actions"] == [3, 2, 9]
        # The connection of one of them is lost without a word.
        two.socket.socket.shutdown(socket.SHUT_RDWR)
        assert one.wait("status", waiting_for=[1])["people"][0]["name"] == "Ada"
        one.say("act", action=1, step=step + 1)
        assert one.wait("frame", step=step + 2)["actions"] == [9, 1, 9]


def test_rooms_do_not_notice_each_other(client, caplog):
    broken, good = client.open_room(rules="broken"), client.open_room()
    with client.person(good) as player, client.person(broken) as unlucky:
        unlucky.say("speed", per_second=30)
        player.say("speed", per_second=30)
        assert "stopped because of an error" in unlucky.wait("error")["message"]
        assert closing(unlucky)[0] == 4000
        step = player.wait("frame")["step"]
        assert player.wait("frame")["step"] == step + 1
    assert broken not in client.hub.rooms
    assert good in client.hub.rooms
    assert "The game is broken." in caplog.text


def test_a_room_that_is_compiled_does_not_stop_the_others(client):
    good, slow = client.open_room(), client.open_room(rules="slow")
    with client.person(good) as player, client.socket(slow) as waiting:
        player.say("speed", per_second=30)
        other = Player(waiting)
        other.say("hello")
        assert other.hear()["type"] == "preparing"
        start = time.monotonic()
        for _ in range(8):
            player.wait("frame")
        assert time.monotonic() - start < 0.9
        assert other.wait("welcome")["frames"][0]["step"] == 0


def test_an_unknown_room(client):
    with client.socket("nonsense") as raw:
        player = Player(raw)
        player.say("hello")
        assert "no such room" in player.wait("error")["message"]
        assert closing(player)[0] == 4004


def test_the_first_message_has_to_be_hello(client):
    room = client.open_room()
    with client.socket(room) as raw:
        player = Player(raw)
        player.say("play")
        assert player.wait("error")["message"] == "The first message has to be hello."
        assert closing(player)[0] == 4003


def test_a_page_of_another_site_cannot_connect(client):
    room = client.open_room()
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}):
        with pytest.raises(InvalidStatus) as caught:
            client.socket(room, additional_headers=headers)
        assert caught.value.response.status_code == 403
    own = f"http://127.0.0.1:{client.port}"
    with client.socket(room, additional_headers={"Origin": own}) as raw:
        Player(raw).say("hello")
        assert Player(raw).wait("welcome")["room"] == room


def test_wrong_messages_get_a_sentence_and_the_connection_stays(client):
    room = client.open_room()
    with client.person(room) as player:
        player.say("pause")
        player.socket.send("{nonsense")
        assert player.wait("error")["message"] == "The message is not JSON."
        player.socket.send(b"\x00\x01")
        assert "at most 2048 bytes" in player.wait("error")["message"]
        player.socket.send(json.dumps({"type": "hello", "name": "x" * 3000}))
        assert "at most 2048 bytes" in player.wait("error")["message"]
        player.say("take", slot=77)
        assert "no place 77" in player.wait("error")["message"]
        player.say("ping", t=3)
        assert player.wait("pong")["t"] == 3


def test_a_message_that_is_far_too_large_ends_the_connection(client):
    room = client.open_room()
    with client.person(room) as player:
        player.socket.send("x" * 100_000)
        assert closing(player)[0] in (1009, 1006)


def test_a_flood_ends_the_connection_of_its_sender_alone(client):
    room = client.open_room()
    with client.person(room, name="calm") as calm, client.person(room) as flooding:
        calm.say("speed", per_second=30)
        with contextlib.suppress(ConnectionClosed):
            for _ in range(400):
                flooding.say("ping", t=1)
        kinds = read_all(flooding)
        assert flooding.socket.close_code == 4008
        errors = [each["message"] for each in kinds if each["type"] == "error"]
        assert errors == ["Too many messages: at most 30 a second are read."]
        assert 80 <= sum(each["type"] == "pong" for each in kinds) <= 150
        calm.say("ping", t=2)
        assert calm.wait("pong")["t"] == 2


def test_a_token_is_asked_for(guarded: Client):
    assert guarded.request("/api/catalogue").status == 401
    assert guarded.request("/api/rooms", {}).status == 401
    wrong = {"Authorization": "Bearer nonsense-nonsense"}
    assert guarded.request("/api/catalogue", headers=wrong).status == 401
    assert "token" in guarded.request("/api/catalogue", headers=wrong).json["error"]
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.request("/api/catalogue", headers=right).status == 200
    room = guarded.request("/api/rooms", {}, right).json["room"]
    for hello in ({}, {"token": "nonsense"}, {"token": "é"}):
        with guarded.socket(room) as raw:
            player = Player(raw)
            player.say("hello", **hello)
            assert "token" in player.wait("error")["message"]
            assert closing(player)[0] == 4001
    with guarded.person(room, token=TOKEN) as player:
        assert player.wait("status")["room"] == room


@pytest.mark.parametrize("path", ["/", "/r/abc", "/study"])
def test_a_page_without_the_token_says_so(guarded: Client, path):
    for link in (path, f"{path}?token=", f"{path}?token={TOKEN}x", f"{path}?Token={TOKEN}"):
        answer = guarded.request(link)
        assert answer.status == 401, link
        assert b"The token is missing or wrong." in answer.content
        assert b"<script type" not in answer.content
        again = guarded.request(link, headers={"If-None-Match": answer.headers["etag"]})
        assert again.status == 401
    answer = guarded.request(f"{path}?token={TOKEN}")
    assert answer.status == 200
    assert b"<script type" in answer.content


def test_other_hosts_are_served_with_a_token():
    with serving(access=Access(TOKEN, local=False)) as client:
        headers = {"Authorization": f"Bearer {TOKEN}", "Host": "lab.example:8642"}
        assert client.request("/api/catalogue", headers=headers).status == 200
        headers["Origin"] = "https://lab.example:8642"
        assert client.request("/api/rooms", {}, headers).status == 200
        headers["Origin"] = "https://evil.example:8642"
        assert client.request("/api/rooms", {}, headers).status == 403


def test_rooms_people_and_connections_are_bounded():
    limits = Limits(
        rooms=3, people=2, connections=3, rooms_per_minute=60, idle_seconds=0.3, hello_seconds=0.3
    )
    with serving(limits=limits) as client:
        rooms = [client.open_room() for _ in range(3)]
        full = client.request("/api/rooms", {})
        assert (full.status, full.json["error"]) == (
            503, "All 3 rooms are in use: try again later.",
        )  # fmt: skip
        with client.person(rooms[0]), client.person(rooms[0]):
            with client.socket(rooms[0]) as third:
                player = Player(third)
                player.say("hello")
                assert "holds 2 people" in player.wait("error")["message"]
                assert closing(player)[0] == 4003
            with client.person(rooms[1]) as last, client.socket(rooms[1]) as beyond:
                assert closing(Player(beyond)) == (
                    4013, "Too many people are here: try again later.",
                )  # fmt: skip
                last.wait("status")
            with client.socket(rooms[1]) as silent:
                assert closing(Player(silent)) == (4001, "You have not said hello.")
            time.sleep(1)
            # Those without people have been removed.
            assert list(client.hub.rooms) == [rooms[0]]
        answers = [client.request("/api/rooms", {}).status for _ in range(4)]
        assert answers.count(200) <= 2
        assert set(answers) <= {200, 429, 503}
        assert 429 in answers or 503 in answers


def test_a_slow_reader_is_dropped():
    """It does not read, so the messages for it pile up until there are too many."""
    with serving(limits=Limits(outgoing=20, send_seconds=60)) as client:
        room = client.open_room(rules="big")
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        raw.connect(("127.0.0.1", client.port))
        with client.person(room) as player, client.socket(room, sock=raw, max_queue=1) as slow:
            player.say("speed", per_second=30)
            slow.send(json.dumps({"type": "hello"}))
            while len(player.wait("status")["people"]) < 2:
                pass
            while len(player.wait("status")["people"]) > 1:
                pass
            step = player.wait("frame")["step"]
            assert player.wait("frame")["step"] == step + 1


def test_stopping_closes_rooms_and_connections():
    with contextlib.ExitStack() as stack:
        with serving() as client:
            player = stack.enter_context(client.person(client.open_room()))
        assert closing(player)[0] in (4000, 1012)


def test_a_server_leaves_the_logging_of_others_alone(monkeypatch):
    closed = []
    handler = logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(handler, "close", lambda: closed.append(True))
    hub = Hub(Options(room={"agent": "random"}))
    make_server(make_app(hub, lambda error: None), hub)
    assert not closed
