"""The arena under attack: connections that never end, and what strangers write."""

import contextlib
import csv
import io
import os
import resource
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from serving import Client, serving
from test_study_desk import STUDY, play, start, turn
from websockets.exceptions import WebSocketException

from dropin.arena.cells import safe_cell
from dropin.arena.protocol import Limits
from dropin.arena.security import Access
from dropin.arena.study import read_study
from dropin.arena.study_store import StudyStore, export_csv

QUICK = Limits(request_seconds=0.8, sockets=20)
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


def raw_socket(client: Client) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", client.port), timeout=10)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def seconds_until_closed(connection: socket.socket, drip: bytes = b"") -> float:
    """Send a byte again and again; return after how long the server ends the connection."""
    start = time.monotonic()
    connection.settimeout(0.1)
    while time.monotonic() - start < 10:
        with contextlib.suppress(TimeoutError):
            try:
                if drip:
                    connection.sendall(drip)
                if connection.recv(100_000) == b"":
                    break
            except (ConnectionError, BrokenPipeError):
                break
    return time.monotonic() - start


@pytest.mark.parametrize(
    ("begins", "drip"),
    [
        (b"", b""),  # Connects, and says nothing.
        (GET + b"X-A: ", b"a"),  # Headers that never end.
        (b"POST /api/rooms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
         b"Content-Length: 9000\r\n\r\n{", b" "),
        (GET + b"\r\n" + GET + b"X-A: ", b"a"),  # The same in a second request.
    ],
)  # fmt: skip
def test_a_request_that_never_ends_is_ended(begins, drip):
    with serving(limits=QUICK) as client, raw_socket(client) as slow:
        slow.sendall(begins)
        assert seconds_until_closed(slow, drip) < 8 * QUICK.request_seconds
        assert client.request("/").status == 200


def test_a_web_socket_is_not_ended_by_the_limit_of_requests():
    with serving(limits=QUICK) as client, client.person(client.open_room()) as player:
        time.sleep(2.5 * QUICK.request_seconds)
        player.say("ping", t=1)
        assert player.wait("pong")["t"] == 1


def test_more_connections_than_the_limit_end_at_once():
    with serving(limits=Limits(sockets=20)) as client, contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(raw_socket(client))
        time.sleep(0.3)
        with raw_socket(client) as beyond:
            assert seconds_until_closed(beyond) < 5
        stack.close()
        time.sleep(0.3)
        assert client.request("/").status == 200


ROUTES = ("/", "/r/{}", "/static/{}", "/api/study/{}", "/ws/{}", "/{}")
NAMES = (
    "..", "../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e%2fserver.py", "....//server.py",
    "..%5c..%5cserver.py", "%00", "a%0d%0aSet-Cookie:%20a=b", "%c0%ae%c0%ae/", "~root", "C:\\x",
    "file:///etc/passwd", "/evil.example/", "x/", "sessions/../../x", "%ff", "a" * 3000,
    "<script>alert(1)</script>",
)  # fmt: skip


def exchange(client: Client, data: bytes) -> bytes:
    with raw_socket(client) as connection:
        connection.sendall(data)
        found = b""
        with contextlib.suppress(ConnectionError, TimeoutError):
            while part := connection.recv(65536):
                found += part
        return found


def test_no_route_leads_to_files_or_new_headers():
    secret = b"root:"
    with serving() as client:
        for route in ROUTES:
            for name in NAMES:
                path = route.format(name).encode("latin-1")
                head = b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                answer = exchange(client, b"GET " + path + head)
                head, _, body = answer.partition(b"\r\n\r\n")
                status = head.split(b" ")[1]
                assert status in (b"200", b"400", b"403", b"404", b"414"), (path, head)
                assert b"set-cookie" not in head.lower()
                assert secret not in body
                if status == b"200":  # The page itself, whose script reads the name of a room.
                    assert b"alert(1)" not in body


def test_requests_cannot_be_smuggled_or_split():
    smuggled = b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving() as client:
        for head in (
            b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            b"Content-Length: 4\r\nContent-Length: 40\r\n",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            b"Content-Length: -1\r\n", b"Content-Length : 4\r\n", b"X: a\rSet-Cookie: b\r\n",
            b"X: \x00\r\n", b"X" * 70_000 + b": a\r\n",
        ):  # fmt: skip
            start = b"POST /api/rooms HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            answer = exchange(client, start + head + b"\r\n" + b"0\r\n\r\n" + smuggled)
            assert answer.count(b"HTTP/1.1 ") <= 1, head
            assert answer == b"" or answer.split(b" ")[1] in (b"400", b"431"), head


def test_the_token_is_compared_in_constant_time(monkeypatch):
    """By the function of the standard library for it, with the whole of what was given."""
    compared: list[tuple[bytes, bytes]] = []
    compare = secrets.compare_digest
    monkeypatch.setattr(
        secrets, "compare_digest", lambda one, two: compared.append((one, two)) or compare(one, two)
    )
    access = Access("the-right-token")
    for wrong in ("", "t", "the-right-tokem", "the-right-token-and-more", "é"):
        with pytest.raises(ValueError, match="token"):
            access.check_given(wrong)
    access.check_given("the-right-token")
    assert [two for _, two in compared] == 6 * [b"the-right-token"]
    assert compared[-1][0] == b"the-right-token"


FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_is_never_a_formula(text):
    assert safe_cell(text) == f"'{text}"
    assert safe_cell("a" + text) == "a" + text
    assert safe_cell(-2.5) == -2.5


def test_what_participants_write_is_text_in_the_export(tmp_path, monkeypatch):
    monkeypatch.setattr("dropin.arena.room.EPISODE_PAUSE", 0.01)
    short = {**STUDY, "rounds": {"number": 1, "episodes": 1}, "title": "<script>"}
    study = read_study({name: each for name, each in short.items() if name != "practice"})
    with serving(study=study, record=tmp_path) as client:
        session, _ = start(client, participant="a", condition="a")
        play(client, session, turn(client, session, {"consent": True})["page"])
        turn(client, session)
        # Half a character, as browsers send it when a text is cut off.
        done = turn(client, session, {"how": 1, "which": "y", "why": "=1+\ud83d"})
        assert done["page"]["kind"] == "text", done
    text = export_csv(StudyStore(tmp_path).sessions)
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert "'=1+" in cells
    text.encode()


# At once: the slow part.


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


@contextlib.contextmanager
def in_thread(attack, *arguments) -> Iterator[None]:
    thread = threading.Thread(target=attack, args=arguments)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
        assert not thread.is_alive()


def crowd(client: Client, number: int, seconds: float) -> None:
    """Open many connections at once and keep them: silent, half a request, or never reading."""
    rng, kept, until = Random(0), [], time.monotonic() + seconds
    for _ in range(number):
        with contextlib.suppress(OSError):
            made = raw_socket(client)
            made.setblocking(False)
            kept.append(made)
            with contextlib.suppress(OSError):
                made.send(rng.choice((b"", GET, GET + b"X-A: ", b"\x16\x03\x01", GET * 300)))
    while time.monotonic() < until:
        for each in rng.sample(kept, min(len(kept), 50)):
            with contextlib.suppress(OSError):
                each.send(b"x")
        time.sleep(0.05)
    for each in kept:
        each.close()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Handles are counted in /proc.")
def test_a_crowd_of_a_thousand_does_not_hold_up_a_room():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
    limits = Limits(request_seconds=2.0)
    before = handles()
    with serving(limits=limits) as client, client.person(client.open_room()) as player:
        player.say("speed", per_second=20)
        gaps: list[float] = []
        with in_thread(crowd, client, 1000, 6.0):
            last, end = time.monotonic(), time.monotonic() + 6.0
            while time.monotonic() < end:
                player.wait("frame")
                gaps.append(time.monotonic() - last)
                last = time.monotonic()
        print(
            f"{len(gaps)} steps during the attack: {np.median(gaps) * 1000:.0f} ms between two,"
            f" {np.quantile(gaps, 0.99) * 1000:.0f} ms at the 99th percentile"
        )
        assert np.median(gaps) < 0.2
        assert client.request("/").status == 200
        time.sleep(2 * limits.request_seconds)
        with contextlib.suppress(WebSocketException):
            player.say("pause")
    assert handles() <= before + 8
