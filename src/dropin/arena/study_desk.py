"""Leads the participants of a study from page to page, and opens the rooms of their rounds."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from dropin.arena.play import Prepared
from dropin.arena.questions import check_answers
from dropin.arena.room import Room
from dropin.arena.rounds import EpisodeResult, Round
from dropin.arena.security import RefusedError
from dropin.arena.study import Page, Study, Words, check_participant
from dropin.arena.study_store import Session, StudyStore
from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import InputError

if TYPE_CHECKING:
    from dropin.arena.catalogue import Catalogue
    from dropin.arena.config import RoomConfig

__all__ = ["OpensRooms", "StudyDesk"]

Result = TypeVar("Result")


class OpensRooms(Protocol):
    """What a study needs of a `Hub`."""

    async def catalogue(self) -> "Catalogue":
        """Return what can be chosen."""
        ...

    def add_room(
        self, config: "RoomConfig", prepare: Callable[[], Prepared], *, round: Round | None
    ) -> Room:
        """Open a room.

        Args:
            config: Its config.
            prepare: Makes and compiles what is played.
            round: The round of a study that is played there.
        """
        ...


class StudyDesk:
    """The participants of one study.

    Args:
        study: The study.
        store: Where results are kept.
        hub: Opens the rooms.
    """

    def __init__(self, study: Study, store: StudyStore, hub: OpensRooms) -> None:
        self.study, self.store, self.hub = study, store, hub
        self._rooms: dict[str, Room] = {}
        """The room of each session that is in a round."""
        self._locks: dict[str, asyncio.Lock] = {}

    async def start(self, values: PlainMapping) -> PlainDict:
        """Begin with a participant, or go on where it was interrupted.

        Args:
            values: `participant` and `condition`, both optional.
        """
        for name in values:
            if name not in ("participant", "condition"):
                raise InputError("Only participant and condition can be given.")
        participant, condition = values.get("participant"), values.get("condition")
        if participant is not None:
            check_participant(participant)
        if condition is not None and not isinstance(condition, str):
            raise InputError("The condition has to be a name.")
        start = partial(self.store.start, self.study, participant, condition)
        session = await _in_thread(start)
        return {"session": session.id, "page": await self.page(session.id)}

    def _session(self, name: str) -> Session:
        session = self.store.get(name)
        if session is None:
            raise RefusedError(404, "There is no such session of this study.")
        return session

    async def page(self, name: str) -> PlainDict:
        """Return the page that a participant is on.

        Args:
            name: The session.
        """
        session = self._session(name)
        async with self._locks.setdefault(name, asyncio.Lock()):
            return await self._describe(session)

    async def next(self, name: str, values: PlainMapping) -> PlainDict:
        """Go on to the next page.

        Args:
            name: The session.
            values: `answers`, if the page has questions.

        Raises:
            InputError: If the page is not done with yet.
        """
        session = self._session(name)
        async with self._locks.setdefault(name, asyncio.Lock()):
            self._leave(session, values.get("answers"))
            await _in_thread(partial(self.store.save, session))
            return {"page": await self._describe(session)}

    def _page(self, session: Session) -> Page:
        return self.study.pages(session.order)[session.page]

    def _leave(self, session: Session, answers: object) -> None:
        """Check that the current page is done with, and turn it."""
        page = self._page(session)
        match page.kind:
            case "consent":
                if not isinstance(answers, dict) or answers.get("consent") is not True:
                    raise InputError("You have to agree to take part.")
            case "practice" | "round":
                if len(session.round_of(page)["episodes"]) < self._episodes(page):
                    raise InputError("This round has not been played to its end yet.")
                room = self._rooms.pop(session.id, None)
                if room is not None:
                    room.close("The round is over.")
            case "questions":
                played = session.round_of(page)
                played["answers"] = check_answers(self.study.questions, answers)
            case "end":
                raise InputError("The study is over.")
        session.page += 1
        session.times.append(round(time.time(), 3))
        if self._page(session).kind == "end":
            session.finished = session.times[-1]

    def _episodes(self, page: Page) -> int:
        rounds = self.study.practice if page.kind == "practice" else self.study.rounds
        assert rounds is not None
        return rounds.episodes

    async def _describe(self, session: Session) -> PlainDict:
        """Return the current page as the browser shows it."""
        study, page = self.study, self._page(session)
        number = len(study.pages(session.order))
        progress: PlainDict = {"progress": [session.page, number], "study": study.title}
        match page.kind:
            case "consent":
                return {**progress, **_words(study.consent), "consent": True}
            case "debriefing":
                return {**progress, **_words(study.debriefing), "consent": False}
            case "questions":
                questions = [each.describe() for each in study.questions]
                return {**progress, "kind": "questions", "title": "", "questions": questions}
            case "end":
                return {
                    **progress,
                    "kind": "end",
                    "title": "Done",
                    "text": "Your completion code:",
                    "code": study.completion_code,
                }
            case _:
                return {**progress, **await self._describe_round(session, page)}

    async def _describe_round(self, session: Session, page: Page) -> PlainDict:
        practice = page.kind == "practice"
        rounds = self.study.practice if practice else self.study.rounds
        assert rounds is not None
        pages = self.study.pages(session.order)
        total = sum(each.kind == page.kind for each in pages)
        room = await self._room(session, page, rounds.slot)
        words = {"number": page.number, "of": total}
        return {
            "kind": "round",
            "title": rounds.title.replace("{number}", str(page.number)).replace("{of}", str(total)),
            "text": rounds.text,
            "room": room.name,
            "slot": rounds.slot,
            "episodes": rounds.episodes,
            "practice": practice,
            **words,
        }

    async def _room(self, session: Session, page: Page, slot: int) -> Room:
        """Return the room of a round; one that was closed meanwhile is opened again."""
        room = self._rooms.get(session.id)
        if room is not None and not room.closed:
            return room
        played = session.round_of(page)
        done = len(played["episodes"])
        catalogue = await self.hub.catalogue()
        values = self.study.room_values(page)
        config = await _in_thread(
            partial(catalogue.room_config, {**values, "seed": page.seed + done})
        )
        round = Round(
            session.id,
            slot,
            self._episodes(page) - done,
            on_episode=partial(self._on_episode, session, page),
            on_disconnection=partial(self.store.add_disconnection, session, page),
        )
        room = self.hub.add_room(config, partial(catalogue.prepare, config), round=round)
        played["rooms"].append(room.name)
        await _in_thread(partial(self.store.save, session))
        self._rooms[session.id] = room
        return room

    def _on_episode(self, session: Session, page: Page, result: EpisodeResult) -> None:
        self.store.add_episode(session, page, result)


def _words(words: Words) -> PlainDict:
    return {"kind": "text", "title": words.title, "text": words.text, "button": words.button}


async def _in_thread(function: Callable[[], Result]) -> Result:
    """Call a function that reads or writes files, without stopping the rooms."""
    return await asyncio.get_running_loop().run_in_executor(None, function)
