"""What a room does besides playing: it records episodes, and it counts those of a study."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dropin.arena.people import Keys, Person, Pressed
from dropin.arena.timeline import Timeline
from dropin.core.config import PlainDict

if TYPE_CHECKING:
    from dropin.arena.config import RoomConfig

__all__ = ["EpisodeResult", "Recorder", "Round"]


class Recorder(Protocol):
    """Writes the episodes of a room to files; called in worker threads, one call at a time."""

    def start(self, simulation: Any, config: "RoomConfig", seed: int, moment: Any) -> None:
        """Begin an episode.

        Args:
            simulation: What is played.
            config: The config of the room.
            seed: The seed of the episode.
            moment: Its first moment.
        """
        ...

    def change(
        self, moment: Any, change: Mapping[str, Sequence[int]], people: Mapping[int, str]
    ) -> None:
        """Note that other people play from now on.

        Args:
            moment: The moment in which they play.
            change: The arguments of `Simulation.change`.
            people: The ids of those who play from now on, by slot.
        """
        ...

    def step(
        self,
        moment: Any,
        forced: Mapping[int, int],
        people: Mapping[int, str],
        pressed: Mapping[int, Pressed | None],
    ) -> None:
        """Note a step.

        Args:
            moment: The moment after the step.
            forced: The actions of people by slot.
            people: Their ids by slot.
            pressed: When they pressed their keys, by slot; None where nothing was pressed.
        """
        ...

    def rewind(self, step: int) -> None:
        """Note that the episode goes on from an earlier step."""
        ...

    def finish(self) -> str | None:
        """Close the file of the episode, if one has begun; return its name."""
        ...


@dataclass(frozen=True)
class EpisodeResult:
    """How an episode of a study went."""

    seed: int
    steps: int
    score: float
    keys: Keys
    recording: str | None

    def to_dict(self) -> PlainDict:
        """Return it as plain values."""
        return {
            "seed": self.seed,
            "steps": self.steps,
            "score": round(self.score, 6),
            "person_steps": self.keys.steps,
            "idle_steps": self.keys.idle,
            "recording": self.recording,
        }


@dataclass
class Round:
    """A round of a study, which one participant plays in one room.

    Args:
        session: The session of the participant.
        slot: The participant's place.
        episodes: How many episodes it has.
        on_episode: Called in a worker thread when an episode is over.
        on_disconnection: The same when the participant's connection is lost during the round.
    """

    session: str
    slot: int
    episodes: int
    on_episode: Callable[[EpisodeResult], None]
    on_disconnection: Callable[[], None]
    played: int = 0
    keys: Keys = field(default_factory=Keys)

    @property
    def is_over(self) -> bool:
        """Whether all episodes have been played."""
        return self.played >= self.episodes

    def collect(self, person: Person) -> None:
        """Count the keys of the participant, who may come back as another person."""
        self.keys.steps += person.keys.steps
        self.keys.idle += person.keys.idle
        person.keys = Keys()

    def end_episode(
        self, timeline: Timeline, people: Sequence[Person], recording: str | None
    ) -> None:
        """Report an episode that is over.

        Args:
            timeline: Its moments.
            people: The people in the room.
            recording: The name of its file, if it was recorded.
        """
        for each in people:
            self.collect(each)
        last = timeline.current
        keys, self.keys = self.keys, Keys()
        self.played += 1
        self.on_episode(EpisodeResult(timeline.seed, last.step, last.score, keys, recording))
