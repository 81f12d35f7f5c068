"""A room: one open team, the people who watch it or play in it, and its clock.

A room is a task on the event loop. Messages of people are put into its inbox; the task takes them
one after the other and steps the team when its clock says so, in a worker thread. Nothing else
changes a room, so it needs no locks.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING

from dropin.arena.people import Person, player_in
from dropin.arena.play import Play, Prepared
from dropin.arena.protocol import Limits, Message, encode
from dropin.arena.rounds import Recorder, Round
from dropin.arena.timeline import present_slots
from dropin.core.errors import InputError

if TYPE_CHECKING:
    from dropin.arena.config import RoomConfig

__all__ = ["EPISODE_PAUSE", "Room"]

EPISODE_PAUSE = 3.0
"""Seconds between two episodes."""
_INBOX = 1000
"""Messages that wait at most while a room is busy."""
_BY_ANY_PLAYER = ("play", "pause", "step", "speed", "next")
_BY_ONE_PLAYER = ("clock", "restart", "rewind")
_LOG = logging.getLogger("dropin.arena")


class Room(Play):
    """One open team and its people.

    Args:
        name: The id of the room.
        config: What is played, and the clock.
        workers: The worker threads.
        prepare: Makes and compiles what is played.
        limits: How many people may be there, and so on.
        round: The round of a study that is played here, if it is one.
        recorder: Writes the episodes to files, if they are recorded.
        is_replay: Whether a recording is shown, in which nobody can play.
    """

    def __init__(
        self,
        name: str,
        config: "RoomConfig",
        workers: Executor,
        *,
        prepare: Callable[[], Awaitable[Prepared]],
        limits: Limits | None = None,
        round: Round | None = None,
        recorder: Recorder | None = None,
        is_replay: bool = False,
    ) -> None:
        super().__init__(name, config, workers, round=round, recorder=recorder, is_replay=is_replay)
        self.limits, self._prepare = limits or Limits(), prepare
        self.closed = False
        self.empty_since = time.monotonic()
        self._inbox: deque[tuple[Person, Message | None]] = deque()
        self._wake = asyncio.Event()
        self._last_due = time.monotonic()

    # What connections call.

    def join(self, person: Person) -> None:
        """Let somebody in, to watch.

        Raises:
            InputError: If the room is full, or is that of another participant.
        """
        if self.closed:
            raise InputError("This room is closed.")
        if self.round is not None:
            if person.session != self.round.session:
                raise InputError("This room belongs to a participant of a study.")
            for other in list(self.people):
                other.sink.close("You have opened this page a second time.")
                self.leave(other)
        if len(self.people) >= self.limits.people:
            raise InputError(f"This room is full: it holds {self.limits.people} people.")
        self.people.append(person)
        if self.prepared is None:
            person.sink.send(encode("preparing"))
        self._put(person, Message("hello", {}))

    def leave(self, person: Person) -> None:
        """Note that somebody has left or lost the connection."""
        if person in self.people:
            self.people.remove(person)
            self.empty_since = time.monotonic()
            self._put(person, None)

    def post(self, person: Person, message: Message) -> None:
        """Pass on a message.

        Args:
            person: Who has sent it.
            message: The message.
        """
        if message.type == "ping":
            person.sink.send(encode("pong", t=message.values["t"]))
        elif message.type == "hello":
            person.sink.send(encode("error", message="You have said hello already."))
        elif len(self._inbox) >= _INBOX:
            person.sink.send(encode("error", message="The room is busy: try again."))
        else:
            self._put(person, message)

    def _put(self, person: Person, message: Message | None) -> None:
        self._inbox.append((person, message))
        self._wake.set()

    def close(self, reason: str) -> None:
        """End the room, and the connections of its people.

        Args:
            reason: For the people.
        """
        self.closed = True
        for person in self.people:
            person.sink.close(reason)
        self.people.clear()
        self._wake.set()

    # The task.

    async def run(self) -> None:
        """Play until the room is closed. What goes wrong closes this room alone."""
        try:
            self.prepared = await self._prepare()
            await self.start_episode(self.config.seed)
            while not self.closed:
                due = self._due()
                if due is not None and time.monotonic() >= due:
                    await self._tick(due)
                elif self._inbox:
                    await self._handle(*self._inbox.popleft())
                else:
                    await self._sleep(due)
        except InputError as error:
            self._fail(str(error))
        except Exception:
            _LOG.exception("A room has failed.")
            self._fail("The room has stopped because of an error in the server: open another one.")
        finally:
            self.close("The room is closed.")
            await self.finish_recording()

    def _fail(self, sentence: str) -> None:
        for person in self.people:
            person.sink.send(encode("error", message=sentence))
        self.close(sentence)

    async def _sleep(self, due: float | None) -> None:
        self._wake.clear()
        timer = None
        if due is not None:
            timer = asyncio.get_running_loop().call_at(due, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _interval(self) -> float:
        is_ticking = self.clock_kind() == "real_time"
        return self.config.clock.tick_ms / 1000 if is_ticking else 1 / self.speed

    def _due(self) -> float | None:
        """Return when the next step is to be taken; None if there is nothing to wait for."""
        if not self.playing or not any(each.greeted for each in self.people):
            return None
        if self.timeline.current.done:
            return self.state_since + EPISODE_PAUSE
        if self.clock_kind() == "turns":
            limit = self.config.clock.limit_ms / 1000 if self.waiting_for else 0.0
            return self.state_since + limit
        return self._last_due + self._interval()

    def _restart_clock(self) -> None:
        """Give people the full time for the current state."""
        self.state_since = self._last_due = time.monotonic()

    async def _tick(self, due: float) -> None:
        now = time.monotonic()
        # Ticks keep their rhythm when one is late, but missed ones are not made up for.
        self._last_due = due if now - due < self._interval() else now
        if self.timeline.current.done:
            await self.start_episode(self.timeline.seed + (not self.is_replay))
        else:
            await self.advance()

    # Messages.

    async def _handle(self, person: Person, message: Message | None) -> None:
        """Do what a message asks for; None says that the person has left."""
        try:
            if message is None:
                await self._say_goodbye(person)
            elif person in self.people:
                self._check_allowed(person, message.type)
                await self._do(person, message)
        except InputError as error:
            person.sink.send(encode("error", message=str(error)))

    def _check_allowed(self, person: Person, kind: str) -> None:
        """Raise `InputError` if the person may not do this here."""
        controls = kind in (*_BY_ANY_PLAYER, *_BY_ONE_PLAYER)
        if self.is_replay and kind in ("take", "clock"):
            raise InputError("This is a recording: nobody can join it.")
        if self.round is not None and (controls or kind in ("take", "release")):
            raise InputError("This is a round of a study: it runs by itself.")
        others = [each for each in self.players if each is not person]
        if controls and others and (person.slot is None or kind in _BY_ONE_PLAYER):
            raise InputError(f"Somebody else plays here, so you cannot do that ({kind}).")

    async def _do(self, person: Person, message: Message) -> None:
        values = message.values
        match message.type:
            case "act":
                self._act(person, **values)
                return
            case "pair":
                await self._tell_pair(person, **values)
                return
            case "hello":
                await self._greet(person)
            case "take":
                await self._take(person, values["slot"])
            case "release":
                await self._release(person)
            case _:
                await self._control(message)
        self.send_status()

    async def _control(self, message: Message) -> None:
        values = message.values
        match message.type:
            case "play" | "pause":
                self.playing = message.type == "play"
                self._restart_clock()
            case "step":
                self.playing = False
                if not self.timeline.current.done:
                    await self.advance()
            case "speed":
                self.speed = float(values["per_second"])
            case "clock":
                clock = replace(self.config.clock, **values)
                self.config = replace(self.config, clock=clock)
                self._restart_clock()
                self.compute_ahead()
            case "rewind":
                await self._rewind(values["step"])
            case _:
                await self._start_again(message)

    async def _greet(self, person: Person) -> None:
        if not any(each.greeted for each in self.people):
            self._restart_clock()
        if self.round is not None and not self.round.is_over:
            person.slot = self.round.slot
        person.sink.send(self.welcome(person))
        person.greeted = True
        await self.seat_people()

    async def _say_goodbye(self, person: Person) -> None:
        if self.round is not None and person.slot is not None and not self.round.is_over:
            self.round.collect(person)
            await self.compute(self.round.on_disconnection)
        person.slot = None
        await self.seat_people()
        self.send_status()

    async def _start_again(self, message: Message) -> None:
        seed = self.timeline.seed
        if message.type == "next":
            seed += 1
        elif "seed" in message.values:
            seed = message.values["seed"]
        if self.is_replay and seed != self.timeline.seed:
            raise InputError("A recording has one episode: there is no other seed.")
        await self.start_episode(seed)
        self._restart_clock()

    async def _rewind(self, step: int) -> None:
        self.timeline.at(step)
        self.timeline.truncate(step + 1)
        if self.recorder is not None:
            await self.compute(self.recorder.rewind, step)
        for each in self.players:
            each.forget_action()
        self.broadcast(encode("truncate", step=step))
        self._restart_clock()
        if not await self.seat_people():
            self.compute_ahead()

    async def _take(self, person: Person, slot: int) -> None:
        moment = self.timeline.current
        slots = len(moment.frame["agents"])
        if slot >= slots:
            raise InputError(f"There is no place {slot}: places are 0 to {slots - 1}.")
        other = player_in(self.people, slot)
        if other is not None and other is not person:
            raise InputError("Somebody else has taken this place.")
        if slot not in present_slots(moment):
            raise InputError("Nobody is in this place now: take that of an agent in the team.")
        person.slot = slot
        person.forget_action()
        self.playing = True
        self._restart_clock()
        await self.seat_people()

    async def _release(self, person: Person) -> None:
        if person.slot is None:
            raise InputError("You have no place to give back.")
        person.slot = None
        person.forget_action()
        self._restart_clock()
        await self.seat_people()

    def _act(self, person: Person, action: int, step: int, ms: float | None = None) -> None:
        current, names = self.timeline.current, self.playable.game["actions"]
        if person.slot is None:
            raise InputError("You watch: take a place to act.")
        if action >= len(names):
            raise InputError(f"There is no action {action}: they are 0 to {len(names) - 1}.")
        if self.clock_kind() == "real_time" and step in (current.step - 1, current.step):
            step = current.step
        if current.done or person.slot not in self.actors() or step < current.step:
            return  # It comes too late, as it may when a connection is slow.
        if step > current.step:
            raise InputError(f"There is no step {step} yet: the episode is at step {current.step}.")
        person.press(action, self.state_since, ms)
        self.broadcast(encode("acted", slot=person.slot, action=action, step=step))
        if self.clock_kind() == "turns":
            if not self.waiting_for:
                self.playing = True
            self.compute_ahead()

    async def _tell_pair(self, person: Person, step: int, a: int, b: int) -> None:
        moment = self.timeline.at(step)
        present = present_slots(moment)
        for slot in (a, b):
            if slot not in present:
                raise InputError(f"Nobody is in place {slot} at step {step}.")
        if a == b:
            raise InputError("A pair has two different agents.")
        table = await self.compute(self.playable.simulation.pair_table, moment, a, b)
        person.sink.send(encode("pair", step=step, a=a, b=b, table=table))
