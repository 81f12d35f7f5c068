"""A study from one TOML file: what a participant reads, plays and answers, in which order."""

import hashlib
import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dropin.arena.questions import Question, read_questions
from dropin.core.config import Checked, PlainDict, PlainMapping, from_dict, merge
from dropin.core.errors import InputError, unknown
from dropin.core.reading import parse_toml, read_file

__all__ = [
    "Condition",
    "Exclusion",
    "Page",
    "Rounds",
    "Study",
    "Words",
    "check_participant",
    "load_study",
    "read_study",
]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""Names of conditions and ids of participants: they become columns and parts of links."""
_MAX_BYTES = 2**20
"""Size of a study's file, at most."""
_MAX_ROUNDS = 1000
_MAX_CONDITIONS = 100
"""Rounds of a condition, and episodes of a round, at most."""


@dataclass(frozen=True)
class Words(Checked):
    """A page to read."""

    title: str = ""
    text: str = ""
    button: str = "Next"


@dataclass(frozen=True)
class Rounds(Checked):
    """Rounds of play."""

    number: int = 1
    """Rounds of each condition."""
    episodes: int = 1
    """Episodes of each round."""
    slot: int = field(default=1, metadata={"least": 0})
    """The place of the participant; 0 is that of the learner."""
    seed: int = field(default=0, metadata={"least": 0})
    """Of the first episode; the next ones follow. All participants play the same ones."""
    title: str = "Round {number} of {of}"
    text: str = ""
    room: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the room that differ from those of all rooms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("number", "episodes"):
            if getattr(self, name) > _MAX_ROUNDS:
                raise InputError(f"The {name} of rounds is too large: it is at most {_MAX_ROUNDS}.")


@dataclass(frozen=True)
class Exclusion(Checked):
    """When a participant is flagged in the export."""

    idle_share: float = 0.5
    """Above this share of steps without a key."""
    disconnections: int = field(default=3, metadata={"least": 0})
    """With more lost connections than this."""


@dataclass(frozen=True)
class Condition:
    """One of the things that are compared."""

    name: str
    room: PlainMapping
    """Settings of the room that differ from those of all rooms."""


@dataclass(frozen=True)
class Page:
    """A page in the course of one participant."""

    kind: Literal["consent", "practice", "round", "questions", "debriefing", "end"]
    number: int = 0
    """The number of the round, counted from 1 over all conditions."""
    condition: str = ""
    seed: int = 0


@dataclass(frozen=True)
class Study:
    """All that a file says of a study."""

    title: str
    consent: Words
    debriefing: Words
    completion_code: str
    rounds: Rounds
    conditions: Mapping[str, Condition]
    room: PlainMapping
    practice: Rounds | None = None
    questions: tuple[Question, ...] = ()
    design: str = "between"
    """`between`: each participant has one condition. `within`: all of them, in a balanced order."""
    seed: int = 0
    exclusion: Exclusion = field(default_factory=Exclusion)
    digest: str = ""
    """Changes with the file."""
    directory: Path = Path()
    """Where the file is: paths of agents are relative to it."""

    @property
    def orders(self) -> list[tuple[str, ...]]:
        """The orders of conditions that participants are assigned to."""
        names = list(self.conditions)
        if self.design == "between":
            return [(name,) for name in names]
        return [tuple(names[start:] + names[:start]) for start in range(len(names))]

    def assign(self, earlier: Sequence[Sequence[str]], condition: str | None) -> tuple[str, ...]:
        """Return the conditions of a new participant, in order.

        The order that the fewest participants have is taken; the seed decides between several.

        Args:
            earlier: The conditions of the participants so far.
            condition: The first condition, if the link of the participant names it.

        Raises:
            InputError: If there is no such condition.
        """
        if condition is not None and condition not in self.conditions:
            raise unknown("condition", condition, self.conditions)
        allowed = [each for each in self.orders if condition in (None, each[0])]
        counts = [sum(tuple(each) == order for each in earlier) for order in allowed]
        fewest = [order for order, n in zip(allowed, counts, strict=True) if n == min(counts)]
        return random.Random(f"{self.seed} {len(earlier)}").choice(fewest)

    def pages(self, order: Sequence[str]) -> list[Page]:
        """Return the pages of a participant.

        Args:
            order: The conditions of the participant.
        """
        pages = [Page("consent")]
        if self.practice is not None:
            pages += [
                Page(
                    "practice",
                    number,
                    seed=self.practice.seed + (number - 1) * self.practice.episodes,
                )
                for number in range(1, self.practice.number + 1)
            ]
        number = 0
        for condition in order:
            for _ in range(self.rounds.number):
                seed = self.rounds.seed + number * self.rounds.episodes
                number += 1
                pages.append(Page("round", number, condition, seed))
                if self.questions:
                    pages.append(Page("questions", number, condition))
        return [*pages, Page("debriefing"), Page("end")]

    def all_rooms(self) -> list[PlainDict]:
        """Return the configs of all different rooms, as plain values."""
        names = list(self.conditions)
        pages = [page for name in names for page in self.pages([name])]
        return [self.room_values(page) for page in pages if page.kind in ("practice", "round")]

    def with_agents(self, add_agent: Callable[[Path], str]) -> "Study":
        """Return the study with ids in place of the paths of agents.

        Args:
            add_agent: Makes the agent at a path known, and returns its id.
        """

        def known(room: PlainMapping) -> PlainDict:
            path = self.directory / str(room.get("agent", ""))
            found = "agent" in room and os.path.exists(path)  # Also if it is too long for a name.
            return {**room, "agent": add_agent(path)} if found else dict(room)

        conditions = {
            name: replace(each, room=known(each.room)) for name, each in self.conditions.items()
        }
        practice = self.practice
        if practice is not None:
            practice = replace(practice, room=known(practice.room))
        rounds = replace(self.rounds, room=known(self.rounds.room))
        return replace(
            self, room=known(self.room), rounds=rounds, practice=practice, conditions=conditions
        )

    def room_values(self, page: Page) -> PlainDict:
        """Return the config of the room of a round, as plain values.

        Args:
            page: The page of the round.
        """
        rounds = self.practice if page.kind == "practice" else self.rounds
        assert rounds is not None
        values = merge(self.room, rounds.room)
        if page.condition:
            values = merge(values, self.conditions[page.condition].room)
        return {**values, "seed": page.seed}


def load_study(path: Path) -> Study:
    """Read a study from its file.

    Args:
        path: A TOML file.

    Raises:
        InputError: If the file is missing or something in it cannot be used.
    """
    content = read_file(path, _MAX_BYTES)
    values = parse_toml(content, path)
    try:
        digest = hashlib.sha256(content).hexdigest()[:16]
        return read_study(values, digest, path.resolve().parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


_PARTS = (
    "title", "design", "seed", "completion_code", "consent", "practice", "room", "conditions",
    "rounds", "questions", "debriefing", "exclusion",
)  # fmt: skip


def read_study(values: PlainMapping, digest: str = "", directory: Path = Path()) -> Study:
    """Read a study from plain values.

    Args:
        values: What the file says.
        digest: A checksum of the file.
        directory: Where the file is.

    Raises:
        InputError: If something cannot be used.
    """
    for name in values:
        if name not in _PARTS:
            raise unknown("part of a study", name, _PARTS)
    for name in ("consent", "conditions", "debriefing", "completion_code"):
        if not values.get(name):
            raise InputError(f"The study has no {name}.")
    design = values.get("design", "between")
    if design not in ("between", "within"):
        raise unknown("design", design, ("between", "within"))
    seed = values.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InputError(f"The seed {seed!r} of the study is not a whole number.")
    return Study(
        title=str(values.get("title", "Study")),
        consent=_words(values["consent"], "Consent", "I agree"),
        debriefing=_words(values["debriefing"], "Thank you", "Next"),
        completion_code=str(values["completion_code"]),
        rounds=from_dict(Rounds, _table(values, "rounds")),
        conditions=_conditions(values["conditions"]),
        room=_table(values, "room"),
        practice=from_dict(Rounds, {"title": "Practice", **_table(values, "practice")})
        if "practice" in values
        else None,
        questions=read_questions(values.get("questions", ())),
        design=design,
        seed=seed,
        exclusion=from_dict(Exclusion, _table(values, "exclusion")),
        digest=digest,
        directory=directory,
    )


def _table(values: PlainMapping, name: str) -> PlainDict:
    found = values.get(name, {})
    if not isinstance(found, Mapping):
        raise InputError(f"{name} has to be a table: [{name}].")
    return dict(found)


def _words(values: object, title: str, button: str) -> Words:
    if isinstance(values, str):
        values = {"text": values}
    if not isinstance(values, Mapping):
        raise InputError(f"{title} has to be a text or a table with a text.")
    return from_dict(Words, {"title": title, "button": button, **values})


def _conditions(values: object) -> dict[str, Condition]:
    if not isinstance(values, list) or not all(isinstance(each, Mapping) for each in values):
        raise InputError("The conditions have to be tables: [[conditions]].")
    if len(values) > _MAX_CONDITIONS:
        raise InputError(f"There are {len(values)} conditions, but at most {_MAX_CONDITIONS}.")
    found: dict[str, Condition] = {}
    for each in values:
        name = each.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(f"The name {name!r} of a condition is not a word.")
        if name in found:
            raise InputError(f"There are two conditions {name!r}.")
        found[name] = Condition(name, {key: value for key, value in each.items() if key != "name"})
    return found


def check_participant(participant: object) -> str:
    """Return the id of a participant if it is one.

    Args:
        participant: What the link says.

    Raises:
        InputError: If it has other characters, or is too long.
    """
    if not isinstance(participant, str) or not _NAME.fullmatch(participant):
        raise InputError(
            "The participant's id has at most 64 letters, digits and the characters _ . -"
        )
    return participant
