"""An open team with people in it: what a room plays, and what it tells of it."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from dropin.arena.ahead import Ahead
from dropin.arena.people import Person
from dropin.arena.protocol import encode
from dropin.arena.rounds import Recorder, Round
from dropin.arena.timeline import AnyPlayable, Shown, Timeline, present_slots
from dropin.core.config import PlainDict, to_dict

if TYPE_CHECKING:
    from dropin.arena.config import RoomConfig

__all__ = ["Play", "Prepared"]

Params = ParamSpec("Params")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Prepared:
    """What a room plays, compiled."""

    simulation: AnyPlayable
    game: PlainDict
    """What browsers are told of the game: names of actions, keys, sides of the slots."""
    people: Sequence[Mapping[int, str]] = ()
    """Of a recording: for each step, who played, by slot."""
    later: Callable[[], None] | None = None
    """Compiles what the first step does not need."""


class Play:
    """A team, its time line and its people; `Room` adds the clock and the messages.

    Args:
        name: The id of the room.
        config: What is played, and the clock.
        workers: The worker threads, in which the team is stepped.
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
        round: Round | None = None,
        recorder: Recorder | None = None,
        is_replay: bool = False,
    ) -> None:
        self.name, self.config = name, config
        self.round, self.recorder, self.is_replay = round, recorder, is_replay
        self.prepared: Prepared | None = None
        self.timeline = Timeline()
        self.people: list[Person] = []
        self.playing = True
        clock = config.clock
        self.speed = 1000 / clock.tick_ms if clock.kind == "real_time" else 4.0
        self.state_since = time.monotonic()
        """When the current state was reached, or the clock was started again."""
        self._workers, self._ahead = workers, Ahead(workers)

    async def compute(
        self, function: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        """Call a function in a worker thread.

        Args:
            function: The function.
            *args: Its arguments.
            **kwargs: Its named arguments.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._workers, partial(function, *args, **kwargs))

    @property
    def playable(self) -> Prepared:
        """What is played; only after it has been prepared."""
        assert self.prepared is not None
        return self.prepared

    # Who plays.

    @property
    def players(self) -> list[Person]:
        """The people who have a place, those who wait included."""
        return [each for each in self.people if each.slot is not None]

    def actors(self, moment: Shown | None = None) -> dict[int, Person]:
        """Return the people who are in the team, by slot.

        Args:
            moment: The moment; the current one if not given.
        """
        if not self.players:
            return {}
        present = present_slots(moment or self.timeline.current)
        return {each.slot: each for each in self.players if each.slot in present}

    def clock_kind(self, moment: Shown | None = None) -> str:
        """Return how time passes: a person in a room for watching plays in turns.

        Args:
            moment: The moment; the current one if not given.
        """
        if not self.actors(moment):
            return "watch"
        return "turns" if self.config.clock.kind == "watch" else self.config.clock.kind

    @property
    def waiting_for(self) -> list[int]:
        """In turns, the slots of people who have not acted."""
        if self.timeline.current.done or self.clock_kind() != "turns":
            return []
        return [slot for slot, each in self.actors().items() if each.action is None]

    def deadline_ms(self) -> int | None:
        """Return how long the room still waits for people, in turns."""
        if not self.playing or not self.waiting_for:
            return None
        passed = 1000 * (time.monotonic() - self.state_since)
        return max(round(self.config.clock.limit_ms - passed), 0)

    # What happens.

    async def start_episode(self, seed: int) -> None:
        """Start an episode, with the people who have a place.

        Args:
            seed: Its seed.
        """
        await self.finish_recording()
        moment = await self.compute(self.playable.simulation.reset, seed)
        self.timeline.start(seed, moment)
        if self.recorder is not None:
            simulation = self.playable.simulation
            await self.compute(self.recorder.start, simulation, self.config, seed, moment)
        for each in self.players:
            each.forget_action()
        self.state_since = time.monotonic()
        self.broadcast(encode("episode", episode=self.timeline.episode, seed=seed))
        if not await self.seat_people():
            self._show()

    async def advance(self) -> None:
        """Take one step: people who have not acted take the default action."""
        actors, moment = self.actors(), self.timeline.current
        default = self.playable.game["default_action"]
        forced = {
            slot: default if each.action is None else each.action for slot, each in actors.items()
        }
        following = self._ahead.take(moment, forced)
        if following is None:
            following = await self.compute(self.playable.simulation.step, moment, forced)
        people = {slot: each.id for slot, each in actors.items()}
        pressed = {slot: each.pressed for slot, each in actors.items()}
        for each in actors.values():
            each.keys.steps += 1
            each.keys.idle += each.action is None
        for each in self.players:
            each.forget_action()
        self.state_since = time.monotonic()
        before = self.timeline.owners[-1]
        self.timeline.push(following, self._owners(following), self._time_limit(following))
        self._show()
        if set(before) != set(self.timeline.owners[-1]):  # Openness has sent somebody out, or back.
            self.send_status()
        if self.recorder is not None:
            await self.compute(self.recorder.step, following, forced, people, pressed)
        if following.done:
            await self._end_episode()

    async def seat_people(self) -> bool:
        """Make the current state one in which exactly those people play who have a place.

        Returns:
            Whether that changed the state; then it has been sent.
        """
        timeline = self.timeline
        before, after = timeline.owners[-1], self._owners(timeline.current)
        if timeline.current.done or before == after:
            return False
        gone = [slot for slot in before if slot not in after]
        change = {
            "joined": [slot for slot in after if before.get(slot) != after[slot]],
            "replaced": gone if self.config.on_leave == "type" else [],
            "left": gone if self.config.on_leave == "leave" else [],
        }
        moment = timeline.current
        if any(change.values()):
            moment = await self.compute(self.playable.simulation.change, moment, **change)
            if self.recorder is not None:
                await self.compute(self.recorder.change, moment, change, after)
        timeline.replace(moment, self._owners(moment), self._time_limit(moment))
        self._show()
        return True

    def _owners(self, moment: Shown) -> dict[int, str]:
        """Return who plays in a moment, by slot."""
        if self.is_replay:
            people, present = self.playable.people[moment.step], present_slots(moment)
            return {slot: who for slot, who in people.items() if slot in present}
        return {slot: each.id for slot, each in self.actors(moment).items()}

    def _time_limit(self, moment: Shown) -> int | None:
        """Return how long the room waits for people in a moment that has just begun."""
        waits = self.playing and not moment.done and self.clock_kind(moment) == "turns"
        return self.config.clock.limit_ms if waits else None

    async def _end_episode(self) -> None:
        recording = await self.finish_recording()
        if self.round is not None:
            people = list(self.people)
            await self.compute(self.round.end_episode, self.timeline, people, recording)
            if self.round.is_over:
                self.playing = False
                self.broadcast(encode("over"))
                self.send_status()

    async def finish_recording(self) -> str | None:
        """Write the episode to its file, if it is recorded; return the name of the file."""
        return None if self.recorder is None else await self.compute(self.recorder.finish)

    def _show(self) -> None:
        """Send the current state, and compute ahead what may follow."""
        self.broadcast(self.timeline.texts[-1])
        self.compute_ahead()

    def compute_ahead(self) -> None:
        """In turns, compute what follows from each action of the one person who is waited for."""
        waiting = self.waiting_for
        if len(waiting) == 1:
            actors = self.actors().items()
            chosen = {slot: each.action for slot, each in actors if each.action is not None}
            simulation, moment = self.playable.simulation, self.timeline.current
            likeliest = self.actors()[waiting[0]].last_action
            numbers = range(len(self.playable.game["actions"]))
            actions = sorted(numbers, key=lambda number: number != likeliest)
            self._ahead.start(simulation, moment, chosen, waiting[0], actions)

    # What people are told.

    def broadcast(self, text: str) -> None:
        """Send a message to everybody who has been welcomed."""
        for each in list(self.people):
            if each.greeted:
                each.sink.send(text)

    def told(self) -> list[PlainDict]:
        """Return what people are told of each other."""
        present = present_slots(self.timeline.current)
        return [each.told(present) for each in self.people]

    def send_status(self) -> None:
        """Tell everybody who is here and how time passes."""
        self.broadcast(
            encode(
                "status",
                room=self.name,
                playing=self.playing,
                speed=self.speed,
                people=self.told(),
                clock=to_dict(self.config.clock),
                waiting_for=self.waiting_for,
                deadline_ms=self.deadline_ms(),
            )
        )

    def welcome(self, person: Person) -> str:
        """Return the first message to somebody, with all of the episode so far.

        Args:
            person: Whom it is for.
        """
        text = encode(
            "welcome",
            you=person.id,
            room=self.name,
            config=to_dict(replace(self.config, seed=self.timeline.seed)),
            game=self.playable.game,
            people=self.told(),
            playing=self.playing,
            speed=self.speed,
            episode=self.timeline.episode,
            seed=self.timeline.seed,
            replay=self.is_replay,
            study=self.round is not None,
        )
        return f'{text[:-1]},"frames":[{",".join(self.timeline.texts)}]}}'
