"""What a cycle does: about as much as a person does in an hour."""

import contextlib
import shutil
import socket
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import tiny
from made_up import TRAINING, fill
from serving import Client, Player, serving
from websockets.sync.client import ClientConnection

import dropin
from dropin.arena.protocol import Limits
from dropin.cli import main
from dropin.experiments.runs import Options
from dropin.training.loop import resume_run
from dropin.training.run_directory import RunDirectory

__all__ = ["ROOMS", "Use"]

ROOMS = 42
"""Rooms in a cycle: a thousand in 24 cycles."""
_ROOM = {
    "game": "lbf",
    "agent": "lbf/gpl-q",
    "team_limit": 3,
    "types": ["H1", "H6"],
    "openness": "closed",
    "clock": {"kind": "turns"},
}
_ABRUPT = 7
"""In every seventh room the person's connection breaks."""
_SECONDS = 300.0
"""How long to wait for an answer: the first room is compiled, and the machine may be busy."""


class Use:
    """The things that are done in every cycle.

    Args:
        directory: A directory for the files; those of a cycle are removed at its end.
        rooms: Number of rooms of the arena in a cycle.
    """

    def __init__(self, directory: Path, rooms: int = ROOMS):
        self.directory, self.rooms = directory, rooms
        self.runs = directory / "pages"
        options = Options(games=("lbf",), learners=("ql",), seeds=2, steps=640)
        fill(self.runs, "table2", options, TRAINING)
        self.agent = b""
        self.cycles = self.opened = self.recorded = 0

    def cycle(self) -> None:
        """Do everything once."""
        self.train_and_resume()
        self.evaluate()
        self.load_agents()
        self.draw()
        self.play()
        self.cycles += 1

    @contextlib.contextmanager
    def place(self, name: str) -> Iterator[Path]:
        """Provide a directory that is removed afterwards."""
        path = self.directory / name
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def train_and_resume(self) -> None:
        """Train, lose the latest checkpoint, and resume: the same bytes, in every cycle."""
        with self.place("run") as path:
            tiny.run(path)
            files = RunDirectory(path)
            whole = files.agent.read_bytes()
            files.checkpoint(files.steps()[-1]).unlink()
            resume_run(path, report="none")
            assert files.agent.read_bytes() == whole == (self.agent or whole)
            self.agent = whole

    def evaluate(self) -> None:
        """Evaluate a trained agent of the package, with other random numbers in each cycle."""
        dropin.evaluate("lbf/ql", types=["H6"], episodes=80, seed=self.cycles)

    def load_agents(self) -> None:
        """Load trained agents of every game."""
        for name in ("lbf/gpl-q", "wolfpack/gpl-q", "fortattack/gpl-q"):
            dropin.load_agent(name)

    def draw(self) -> None:
        """Draw the page of an experiment."""
        arguments = ["table2", "--games", "lbf", "--learners", "ql", "--seeds", "2"]
        arguments += ["--steps", "640", "--directory", str(self.runs), "--draw"]
        with redirect_stdout(StringIO()):
            main(["reproduce", *arguments])
        main_page = self.runs / "table2" / "table2.md"
        assert "ql" in main_page.read_text()

    def play(self) -> None:
        """Start a server, open rooms one after another, play in each, and record all of it."""
        limits = Limits(rooms=1000, rooms_per_minute=1e6, idle_seconds=5)
        with self.place("episodes") as record:
            with serving(real=True, record=record, limits=limits) as client:
                client.timeout = _SECONDS
                for number in range(self.rooms):
                    self._play_in_a_room(client, number)
                    self.opened += 1
            self.recorded += len(list(record.rglob("*.jsonl*")))

    def _play_in_a_room(self, client: Client, number: int) -> None:
        room = client.open_room(**_ROOM, seed=number)
        with client.socket(room, open_timeout=_SECONDS) as connection:
            person = Player(connection)
            person.say("hello", name="Ada")
            person.wait("welcome", _SECONDS)
            person.say("take", slot=1)
            frame = person.wait("frame", _SECONDS)
            for _ in range(3):
                if frame["done"]:
                    break
                person.say("act", action=number % 5, step=frame["step"])
                frame = person.wait("frame", _SECONDS, step=frame["step"] + 1)
            if number % _ABRUPT == 0:
                _break(connection)


def _break(connection: ClientConnection) -> None:
    """Cut a connection without a word."""
    with contextlib.suppress(OSError):
        connection.socket.shutdown(socket.SHUT_RDWR)
