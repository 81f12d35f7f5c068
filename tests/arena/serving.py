"""A real server on a free port of the own machine, with fake teams, and its clients."""

import contextlib
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes import GAME, FakeTeam, unpacked
from websockets.sync.client import ClientConnection, connect

from dropin.arena.config import RoomConfig
from dropin.arena.hub import Hub, Options
from dropin.arena.play import Prepared
from dropin.arena.server import make_app, make_server
from dropin.core.config import PlainDict, from_dict
from dropin.core.errors import InputError


class FakeCatalogue:
    """Offers one game, which nobody can win."""

    def __init__(self, agents: Any = ()) -> None:
        self.agents = agents
        self.teams: list[FakeTeam] = []

    def default_agent(self, game: str | None) -> str:
        return "random"

    def add_agent(self, path: Any) -> str:
        return str(path)

    def room_config(self, values: Mapping[str, Any]) -> RoomConfig:
        config = from_dict(RoomConfig, {"game": "lbf", **values})
        if config.game != "lbf":
            raise InputError(f"Unknown game {config.game!r}.")
        return config

    def prepare(self, config: RoomConfig) -> Prepared:
        if config.rules == "slow":
            time.sleep(1)
        fails_at = 3 if config.rules == "broken" else None
        filling = 200_000 if config.rules == "big" else 0
        horizon = 4 if config.rules == "short" else 200
        self.teams.append(FakeTeam(horizon=horizon, fails_at=fails_at, filling=filling))
        return Prepared(self.teams[-1], dict(GAME))  # pyright: ignore[reportArgumentType]

    def make_recorder(self, directory: Path, room: str, about: Any) -> None:
        """Fake teams cannot be recorded."""

    def describe(self) -> PlainDict:
        return {"games": [{"name": "lbf"}], "agents": []}


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@dataclass
class Client:
    """Talks to a server as a browser would."""

    port: int
    hub: Hub
    timeout: float = 30
    """Seconds to wait for the answer to a request."""

    def request(
        self,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        method: str | None = None,
    ) -> Answer:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if data is not None else {}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data, {**sent, **(headers or {})}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as found:
                return Answer(found.status, _lower(found.headers), found.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, _lower(error.headers), error.read())

    def open_room(self, **values: Any) -> str:
        answer = self.request("/api/rooms", values)
        assert answer.status == 200, answer.content
        return answer.json["room"]

    def socket(self, room: str, **options: Any) -> ClientConnection:
        options = {"max_size": None, "max_queue": None, "close_timeout": 0.5, **options}
        return connect(f"ws://127.0.0.1:{self.port}/ws/{room}", **options)

    @contextlib.contextmanager
    def person(self, room: str, **hello: Any) -> Iterator["Player"]:
        with self.socket(room) as socket:
            player = Player(socket)
            player.say("hello", **hello)
            player.wait("welcome")
            yield player


@dataclass
class Player:
    """Somebody with an open web socket."""

    socket: ClientConnection

    def say(self, kind: str, /, **values: Any) -> None:
        self.socket.send(json.dumps({"type": kind, **values}))

    def hear(self, timeout: float = 10) -> PlainDict:
        return unpacked(json.loads(self.socket.recv(timeout)))

    def wait(self, kind: str, timeout: float = 10, **having: Any) -> PlainDict:
        """Return the next message of a kind, with these values."""
        end = time.monotonic() + timeout
        while True:
            message = self.hear(max(end - time.monotonic(), 0.001))
            if message["type"] == kind and having.items() <= message.items():
                return message


@contextlib.contextmanager
def serving(real: bool = False, **options: Any) -> Iterator[Client]:
    """Run a server in a thread."""
    hub = Hub(
        Options(**{"room": {}, **options}),
        None if real else FakeCatalogue,  # pyright: ignore[reportArgumentType]
    )
    failures: list[BaseException] = []
    server = make_server(make_app(hub, failures.append), hub)
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), failures
                time.sleep(0.01)
            yield Client(listener.getsockname()[1], hub)
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()
    if failures:
        raise failures[0]
