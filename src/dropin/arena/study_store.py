"""The results of a study on disk: one file for each participant, and their export."""

import csv
import io
import json
import re
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypedDict

from dropin.arena.cells import safe_cell
from dropin.arena.rounds import EpisodeResult
from dropin.arena.study import Exclusion, Page, Study
from dropin.core.config import PlainDict, PlainMapping, misfit, to_dict
from dropin.core.errors import InputError
from dropin.core.files import read_json, write_json

__all__ = ["STUDY_FILE", "Session", "StudyStore", "export_csv", "export_json"]

STUDY_FILE = "study.json"
"""Says of which study a directory holds the results."""
_FORMAT = 1
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Sessions and rooms: their ids are parts of the names of files."""


class _PlayedEpisode(TypedDict):
    seed: int
    steps: int
    score: float
    person_steps: int
    idle_steps: int
    recording: str | None


class _PlayedRound(TypedDict):
    number: int
    practice: bool
    condition: str
    seed: int
    rooms: list[str]
    episodes: list[_PlayedEpisode]
    disconnections: int
    answers: dict[str, Any]


class _Exclusion(TypedDict):
    idle_share: float
    disconnections: int


class _StoredSession(TypedDict):
    """The file of a participant."""

    id: str
    participant: str
    order: list[str]
    started: float
    finished: float | None
    page: int
    times: list[float]
    rounds: list[_PlayedRound]
    exclusion: _Exclusion


@dataclass
class Session:
    """All that is kept of one participant."""

    id: str
    participant: str
    order: list[str]
    """The conditions, in the order of the rounds."""
    started: float = field(default_factory=lambda: round(time.time(), 3))
    finished: float | None = None
    page: int = 0
    """The index of the current page."""
    times: list[float] = field(default_factory=list)
    """When each page was left."""
    rounds: list[PlainDict] = field(default_factory=list)
    """The rounds that were begun, practice included: what was played, and the answers."""
    exclusion: PlainDict = field(default_factory=lambda: to_dict(Exclusion()))
    """When the participant is flagged, as the study said."""
    format: int = _FORMAT

    def round_of(self, page: Page) -> PlainDict:
        """Return the record of a round, which is made when it begins.

        Args:
            page: The page of the round, or of the questions on it.
        """
        practice = page.kind == "practice"
        for each in self.rounds:
            if (each["number"], each["practice"]) == (page.number, practice):
                return each
        made: PlainDict = {
            "number": page.number,
            "practice": practice,
            "condition": page.condition,
            "seed": page.seed,
            "rooms": [],
            "episodes": [],
            "disconnections": 0,
            "answers": {},
        }
        self.rounds.append(made)
        return made

    @property
    def idle_share(self) -> float:
        """The share of the participant's steps for which nothing was pressed, without practice."""
        played = [each for one in self.rounds if not one["practice"] for each in one["episodes"]]
        steps = sum(each["person_steps"] for each in played)
        return sum(each["idle_steps"] for each in played) / steps if steps else 0.0

    @property
    def disconnections(self) -> int:
        """How often the connection was lost, without practice."""
        return sum(each["disconnections"] for each in self.rounds if not each["practice"])

    @property
    def flags(self) -> list[str]:
        """Why the participant may have to be excluded; empty if there is no reason."""
        found = [] if self.finished is not None else ["unfinished"]
        if self.idle_share > self.exclusion["idle_share"]:
            found.append("idle")
        if self.disconnections > self.exclusion["disconnections"]:
            found.append("disconnections")
        return found


class StudyStore:
    """The sessions of a study in a directory. May be used by several threads.

    Args:
        directory: Where they are written.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = threading.RLock()
        self._sessions: dict[str, Session] = {}
        for path in sorted((directory / "sessions").glob("*.json")):
            session = self._read(path)
            self._sessions[session.id] = session

    @staticmethod
    def _read(path: Path) -> Session:
        values = read_json(path)
        if not isinstance(values, Mapping) or values.get("format") != _FORMAT:
            raise InputError(f"{path} is not a session of this version of Dropin.")
        if expected := misfit(values, _StoredSession):
            raise InputError(f"{path} is damaged: it is not {expected}.")
        ids = [values["id"], *(name for each in values["rounds"] for name in each["rooms"])]
        rounds = [(each["condition"], each["practice"]) for each in values["rounds"]]
        conditions = {name for name, practice in rounds if name or not practice}
        if not all(map(_ID.fullmatch, ids)) or not conditions <= set(values["order"]):
            raise InputError(f"{path} is damaged: a name in it cannot be right.")
        return Session(**{each.name: values[each.name] for each in fields(Session)})

    def claim(self, study: Study) -> None:
        """Note which study the directory is for.

        Args:
            study: The study.

        Raises:
            InputError: If it holds results of another study, or of another version of it.
        """
        path = self.directory / STUDY_FILE
        about = {"format": _FORMAT, "title": study.title, "digest": study.digest}
        if not path.exists():
            write_json(path, about)
        elif read_json(path) != about:
            raise InputError(
                f"{self.directory} holds results of another study, or of this one before its file"
                " was changed: give another --record."
            )

        for each in self.sessions:
            if tuple(each.order) not in study.orders or not 0 <= each.page < len(
                study.pages(each.order)
            ):
                raise InputError(f"The session {each.id} is damaged: it is not of this study.")

    @property
    def sessions(self) -> list[Session]:
        """All sessions, in the order in which they were started."""
        with self._lock:
            return sorted(self._sessions.values(), key=lambda each: (each.started, each.id))

    def get(self, session: str) -> Session | None:
        """Return the session with an id, or None."""
        return self._sessions.get(session)

    def start(self, study: Study, participant: str | None, condition: str | None) -> Session:
        """Return the session of a participant, which is made if there is none.

        Args:
            study: The study.
            participant: The id of the participant; one is made up if there is none.
            condition: The first condition, if it is given.
        """
        with self._lock:
            earlier = self.sessions
            for each in earlier:
                if participant is not None and each.participant == participant:
                    return each
            order = study.assign([each.order for each in earlier], condition)
            made = Session(
                secrets.token_hex(16),
                participant or f"p-{secrets.token_hex(4)}",
                list(order),
                exclusion=to_dict(study.exclusion),
            )
            self._sessions[made.id] = made
            self.save(made)
            return made

    def save(self, session: Session) -> None:
        """Write a session to its file.

        Args:
            session: The session.
        """
        with self._lock:
            if session.id in self._sessions:
                write_json(self._path(session), to_dict(session))

    def add_episode(self, session: Session, page: Page, result: EpisodeResult) -> None:
        """Note an episode that a participant has played.

        Args:
            session: The session of the participant.
            page: The page of its round.
            result: How it went.
        """
        with self._lock:
            session.round_of(page)["episodes"].append(result.to_dict())
            self.save(session)

    def add_disconnection(self, session: Session, page: Page) -> None:
        """Note that the connection of a participant was lost.

        Args:
            session: The session of the participant.
            page: The page of the round.
        """
        with self._lock:
            session.round_of(page)["disconnections"] += 1
            self.save(session)

    def delete(self, participant: str) -> int:
        """Delete all that is kept of a participant, recordings included.

        Args:
            participant: The id of the participant.

        Returns:
            How many files were deleted.

        Raises:
            InputError: If there is no such participant.
        """
        with self._lock:
            found = [each for each in self.sessions if each.participant == participant]
            if not found:
                raise InputError(f"There is no participant {participant!r} in {self.directory}.")
            files: list[Path] = []
            for session in found:
                for room in [name for each in session.rounds for name in each["rooms"]]:
                    files += self.directory.glob(f"{room}-*")
                files.append(self._path(session))
                del self._sessions[session.id]
            for path in files:
                path.unlink(missing_ok=True)
            return len(files)

    def _path(self, session: Session) -> Path:
        return self.directory / "sessions" / f"{session.id}.json"


def export_json(sessions: Sequence[Session]) -> str:
    """Return all that is known of the participants as JSON.

    Args:
        sessions: The sessions.
    """
    rows = [
        {**to_dict(each), "idle_share": round(each.idle_share, 4), "flags": each.flags}
        for each in sessions
    ]
    return json.dumps(rows, indent=2) + "\n"


def export_csv(sessions: Sequence[Session]) -> str:
    """Return a table with a row for each round of each participant, practice included.

    Args:
        sessions: The sessions.
    """
    rows = [_row(session, each) for session in sessions for each in session.rounds]
    asked = sorted({name for row in rows for name in row["answers"]})
    columns = [name for name in (rows[0] if rows else _COLUMNS) if name != "answers"]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*columns, *(f"answer_{name}" for name in asked)])
    for row in rows:
        answers = [row["answers"].get(name, "") for name in asked]
        table.writerow([safe_cell(value) for value in (*(row[each] for each in columns), *answers)])
    return text.getvalue()


_COLUMNS = ("participant", "session", "condition", "position", "round", "practice")


def _row(session: Session, played: PlainMapping) -> PlainDict:
    episodes = played["episodes"]
    steps = sum(each["person_steps"] for each in episodes)
    idle = sum(each["idle_steps"] for each in episodes)
    condition = played["condition"]
    return {
        "participant": session.participant,
        "session": session.id,
        "condition": condition,
        "position": session.order.index(condition) + 1 if condition else 0,
        "round": played["number"],
        "practice": int(played["practice"]),
        "episodes": len(episodes),
        "score": round(sum(each["score"] for each in episodes), 6),
        "steps": sum(each["steps"] for each in episodes),
        "person_steps": steps,
        "idle_share": round(idle / steps, 4) if steps else "",
        "disconnections": played["disconnections"],
        "finished": int(session.finished is not None),
        "flags": " ".join(session.flags),
        "started": session.started,
        "recordings": " ".join(each["recording"] or "" for each in episodes).strip(),
        "answers": played["answers"],
    }
