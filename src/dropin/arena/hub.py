"""All rooms of a server, and what they share."""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dropin.arena.play import Prepared
from dropin.arena.protocol import Bucket, Limits
from dropin.arena.room import Room
from dropin.arena.rounds import Recorder, Round
from dropin.arena.security import Access, RefusedError
from dropin.arena.study import Study
from dropin.arena.study_desk import StudyDesk
from dropin.arena.study_store import StudyStore
from dropin.core.config import PlainDict, PlainMapping, to_dict

if TYPE_CHECKING:
    from dropin.arena.catalogue import Catalogue
    from dropin.arena.config import RoomConfig

__all__ = ["Hub", "Options"]

_WORKERS = 2
"""Threads that step the teams of all rooms."""
_SWEEP_SECONDS, _CLOSE_SECONDS = 5.0, 5.0
Result = TypeVar("Result")


@dataclass(frozen=True)
class Options:
    """What a server is started with."""

    room: PlainMapping
    """The config of the room that a browser opens first; what is missing has its default."""
    agents: tuple[str, ...] = ()
    """Trained agents besides those that come with packages."""
    record: Path | None = None
    """Where episodes are written."""
    replay: Path | None = None
    """A recording to show."""
    study: Study | None = None
    """A study to lead participants through; its results go to `record`."""
    access: Access = field(default_factory=Access)
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class _Loaded:
    """What needs JAX, and so is there a moment after the server has started."""

    catalogue: "Catalogue"
    config: "RoomConfig"
    """Of the room that a browser opens first."""
    replay: "tuple[RoomConfig, Prepared] | None" = None


class Hub:
    """The rooms of a server.

    JAX is imported and the first room is compiled in the background, so that the page is there at
    once. Rooms are prepared in one thread of their own: while a program is compiled, the other
    rooms go on.

    Args:
        options: What the server is started with.
        make_catalogue: Makes what can be chosen from the agents of the options; `Catalogue` if it
            is not given.
    """

    def __init__(
        self,
        options: Options,
        make_catalogue: "Callable[[Sequence[str]], Catalogue] | None" = None,
    ) -> None:
        self._make_catalogue = make_catalogue
        self.options, self.limits = options, options.limits
        self.rooms: dict[str, Room] = {}
        self.connections = 0
        """Open web sockets."""
        self.replay_room: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._workers = ThreadPoolExecutor(_WORKERS, "dropin-step")
        self._preparer = ThreadPoolExecutor(1, "dropin-compile")
        self._preparations: list[Future[Any]] = []
        self._creation = Bucket(self.limits.rooms_per_minute / 60, self.limits.rooms)
        self._loaded: asyncio.Future[_Loaded] | None = None
        self._described: asyncio.Future[PlainDict] | None = None
        self.desk: StudyDesk | None = None
        if options.study is not None and options.record is not None:
            store = StudyStore(options.record)
            store.claim(options.study)
            self.desk = StudyDesk(options.study, store, self)

    # Start and end.

    def start(self, on_failure: Callable[[BaseException], None]) -> None:
        """Begin to load what can be chosen, and to remove idle rooms.

        Args:
            on_failure: Called if the options turn out to be wrong.
        """
        loop = asyncio.get_running_loop()
        self._loaded = asyncio.wrap_future(self._prepare(self._load))

        def check(done: asyncio.Future[_Loaded]) -> None:
            if done.cancelled():
                return
            if (error := done.exception()) is not None:
                on_failure(error)
            elif (replay := done.result().replay) is not None:
                config, prepared = replay
                self.replay_room = self.add_room(config, lambda: prepared, is_replay=True).name

        self._loaded.add_done_callback(check)
        self._sweeper = loop.create_task(self._sweep())

    def _load(self) -> _Loaded:
        make_catalogue = self._make_catalogue
        if make_catalogue is None:
            from dropin._xla.cache import use_cache
            from dropin.arena.catalogue import Catalogue

            use_cache()
            make_catalogue = Catalogue
        catalogue = make_catalogue(self.options.agents)
        if self.desk is not None:
            self.desk.study = self.desk.study.with_agents(catalogue.add_agent)
            for values in self.desk.study.all_rooms():
                catalogue.room_config(values)
        room = dict(self.options.room)
        room.setdefault("agent", catalogue.default_agent(room.get("game")))
        config = catalogue.room_config(room)
        if self.options.replay is not None:
            return _Loaded(catalogue, config, catalogue.replay(self.options.replay))
        if self.desk is None:
            self._prepare(partial(catalogue.prepare, config))
        return _Loaded(catalogue, config)

    async def catalogue(self) -> "Catalogue":
        """Return what can be chosen, as soon as it is loaded."""
        return (await self._wait_until_loaded()).catalogue

    async def describe(self) -> PlainDict:
        """Return what can be chosen as browsers are told of it."""
        loaded = await self._wait_until_loaded()
        if self._described is None:
            # Beside the compilation of the first room, which has begun.
            self._described = asyncio.ensure_future(asyncio.to_thread(loaded.catalogue.describe))
        described = {**await asyncio.shield(self._described), "default": to_dict(loaded.config)}
        study = None if self.options.study is None else {"title": self.options.study.title}
        return {**described, "replay": self.replay_room, "study": study}

    async def _wait_until_loaded(self) -> _Loaded:
        if self._loaded is None:
            raise RefusedError(503, "The server has not started yet.")
        return await asyncio.shield(self._loaded)

    async def close(self) -> None:
        """Close all rooms, and with them their recordings."""
        for room in self.rooms.values():
            room.close("The server has been stopped.")
        self.rooms.clear()
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
        self._preparer.shutdown(wait=False, cancel_futures=True)
        self._workers.shutdown(wait=True)

    # Rooms.

    async def open_room(self, values: PlainMapping) -> Room:
        """Open a room as a browser asks for it.

        Args:
            values: The config of the room; what is missing has its default.

        Raises:
            InputError: If the config cannot be used.
            RefusedError: If there are too many rooms.
        """
        if self.desk is not None:
            raise RefusedError(403, "This server leads through a study: no other rooms are opened.")
        if len(self.rooms) >= self.limits.rooms:
            raise RefusedError(503, f"All {self.limits.rooms} rooms are in use: try again later.")
        if not self._creation.take():
            raise RefusedError(429, "Too many rooms are being opened: try again in a minute.")
        catalogue = await self.catalogue()
        config = await asyncio.to_thread(catalogue.room_config, values)
        return self.add_room(config, partial(catalogue.prepare, config))

    def add_room(
        self,
        config: "RoomConfig",
        prepare: Callable[[], Prepared],
        *,
        round: Round | None = None,
        is_replay: bool = False,
    ) -> Room:
        """Open a room.

        Args:
            config: Its config.
            prepare: Makes and compiles what is played.
            round: The round of a study that is played there.
            is_replay: Whether a recording is shown.
        """
        name = secrets.token_hex(6)
        recorder: Recorder | None = None
        if self.options.record is not None and not is_replay:
            assert self._loaded is not None
            about = {} if round is None else {"session": round.session}
            make_recorder = self._loaded.result().catalogue.make_recorder
            recorder = make_recorder(self.options.record, name, about)
        room = Room(
            name,
            config,
            self._workers,
            prepare=lambda: asyncio.wrap_future(self._prepare_room(prepare)),
            limits=self.limits,
            round=round,
            recorder=recorder,
            is_replay=is_replay,
        )
        self.rooms[name] = room
        task = asyncio.get_running_loop().create_task(room.run())
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._forget(done, name))
        return room

    def _forget(self, task: "asyncio.Task[None]", name: str) -> None:
        self._tasks.discard(task)
        self.rooms.pop(name, None)

    def find(self, name: str) -> Room:
        """Return a room.

        Raises:
            RefusedError: If there is none of this name.
        """
        if name not in self.rooms:
            raise RefusedError(404, "There is no such room (any more): open a new one.")
        return self.rooms[name]

    async def _sweep(self) -> None:
        """Close rooms that nobody is in."""
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self.limits.idle_seconds))
            now = time.monotonic()
            for name, room in list(self.rooms.items()):
                idle = not room.people and now - room.empty_since > self.limits.idle_seconds
                if idle and name != self.replay_room:
                    room.close("Nobody was here for a while, so the room was closed.")

    def _prepare(self, function: Callable[[], Result]) -> Future[Result]:
        """Call a function in the thread that prepares rooms, after what was asked for before."""
        self._preparations = [each for each in self._preparations if not each.done()]
        made = self._preparer.submit(function)
        self._preparations.append(made)
        return made

    def _prepare_room(self, prepare: Callable[[], Prepared]) -> Future[Prepared]:
        """Prepare what a room plays; what its first step does not need is compiled after that."""
        made = self._prepare(prepare)

        def finish() -> None:
            if made.exception() is None and (later := made.result().later) is not None:
                later()

        self._prepare(finish)
        return made

    @property
    def is_preparing(self) -> bool:
        """Whether a program is being compiled, which nothing can interrupt."""
        return any(each.running() for each in self._preparations)
