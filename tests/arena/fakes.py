"""A team without a game, and a person without a browser: rooms can be tested in milliseconds."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from dropin.arena.config import Clock, RoomConfig
from dropin.arena.people import Person
from dropin.arena.play import Prepared
from dropin.arena.protocol import Message
from dropin.arena.room import Room
from dropin.arena.tables import unpack_frame
from dropin.core.config import PlainDict

SLOTS, HORIZON, STAY = 3, 12, 4
GAME = {
    "name": "fake",
    "actions": ["up", "right", "down", "left", "stay"],
    "default_action": STAY,
    "slots": SLOTS,
}


@dataclass(frozen=True, eq=False)
class FakeMoment:
    step: int
    done: bool
    score: float
    present: tuple[bool, ...]
    arrived: tuple[int, ...] = ()
    actions: tuple[int | None, ...] = (None,) * SLOTS
    seed: int = 0
    filling: int = 0
    """Characters that make the frame larger."""

    @property
    def frame(self) -> PlainDict:
        agents = [
            {"slot": slot, "present": there, "arrived": slot in self.arrived, "type": "T"}
            for slot, there in enumerate(self.present)
        ]
        filling = {"filling": "x" * self.filling} if self.filling else {}
        return {"step": self.step, "agents": agents, "actions": list(self.actions), **filling}


@dataclass
class FakeTeam:
    """Slot 2 is away in steps 4 to 6. The score is the sum of all forced actions."""

    horizon: int = HORIZON
    away: range = range(4, 7)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    fails_at: int | None = None
    filling: int = 0

    def _present(self, step: int) -> tuple[bool, ...]:
        return (True, True, step not in self.away)

    def reset(self, seed: int) -> FakeMoment:
        self.calls.append(("reset", seed))
        return FakeMoment(0, False, 0.0, self._present(0), seed=seed, filling=self.filling)

    def step(self, moment: FakeMoment, forced: Mapping[int, int]) -> FakeMoment:
        self.calls.append(("step", moment.step, dict(forced)))
        step = moment.step + 1
        if step == self.fails_at:
            raise RuntimeError("The game is broken.")
        return replace(
            moment,
            step=step,
            done=step >= self.horizon,
            score=moment.score + sum(forced.values()),
            present=self._present(step),
            arrived=(),
            actions=tuple(forced.get(slot, 9) for slot in range(SLOTS)),
        )

    def change(
        self,
        moment: FakeMoment,
        *,
        joined: Sequence[int] = (),
        replaced: Sequence[int] = (),
        left: Sequence[int] = (),
    ) -> FakeMoment:
        self.calls.append(("change", list(joined), list(replaced), list(left)))
        present = tuple(there and slot not in left for slot, there in enumerate(moment.present))
        return replace(moment, present=present, arrived=(*joined, *replaced))

    def pair_table(self, moment: FakeMoment, a: int, b: int) -> list[list[float]]:
        return [[float(moment.step), float(a)], [float(b), 0.0]]


def unpacked(message: PlainDict) -> PlainDict:
    """Return a message as the page has it."""
    if message["type"] == "frame":
        return unpack_frame(message)
    frames = {"frames": [*map(unpack_frame, message["frames"])]} if "frames" in message else {}
    return message | frames


class FakeSink:
    def __init__(self) -> None:
        self.messages: list[PlainDict] = []
        self.closed: str | None = None

    def send(self, text: str) -> None:
        self.messages.append(unpacked(json.loads(text)))

    def close(self, reason: str) -> None:
        self.closed = reason


class Guest(Person):
    """A person who remembers what was received."""

    def __init__(self, name: str = "", session: str = "") -> None:
        super().__init__(FakeSink(), name, session)

    @property
    def got(self) -> list[PlainDict]:
        assert isinstance(self.sink, FakeSink)
        return self.sink.messages

    @property
    def closed(self) -> str | None:
        assert isinstance(self.sink, FakeSink)
        return self.sink.closed

    def of(self, kind: str) -> list[PlainDict]:
        return [each for each in self.got if each["type"] == kind]

    @property
    def last(self) -> PlainDict:
        return (self.of("frame") or self.of("welcome")[-1]["frames"])[-1]

    @property
    def errors(self) -> list[str]:
        return [each["message"] for each in self.of("error")]


def config(kind: Any = "watch", **values: Any) -> RoomConfig:
    clock = {key: values.pop(key) for key in ("tick_ms", "limit_ms") if key in values}
    return RoomConfig(game="lbf", clock=Clock(kind, **clock), **values)


async def until(condition: Callable[[], Any], seconds: float = 5.0) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)


async def quiet(room: Room) -> None:
    """Wait until a room has nothing to do."""
    await asyncio.sleep(0)
    await until(lambda: not room._inbox and not room._wake.is_set())
    await asyncio.sleep(0.005)


Scenario = Callable[[Room, FakeTeam], Coroutine[Any, Any, None]]


def in_room(scenario: Scenario, settings: RoomConfig | None = None, **options: Any) -> Room:
    """Run a scenario in a room with a fake team, and close the room."""
    team = options.pop("team", None) or FakeTeam()

    async def prepare() -> Prepared:
        await asyncio.sleep(options.get("seconds", 0))
        return Prepared(team, dict(GAME))

    async def main() -> Room:
        with ThreadPoolExecutor(2) as workers:
            room = Room("room", settings or config(), workers, prepare=prepare, **options)
            task = asyncio.create_task(room.run())
            await until(lambda: room.timeline.moments)
            try:
                await scenario(room, team)
            finally:
                room.close("The test is over.")
                await task
            return room

    return asyncio.run(main())


async def enter(room: Room, name: str = "", session: str = "") -> Guest:
    guest = Guest(name, session)
    room.join(guest)
    await until(lambda: guest.of("welcome") and guest.of("status"))
    return guest


def say(room: Room, guest: Person, kind: str, /, **values: Any) -> None:
    room.post(guest, Message(kind, values))
