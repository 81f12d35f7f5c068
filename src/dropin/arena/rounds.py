"""What a room does besides playing: it records episodes, and it counts those of a study."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from dropin.arena.people import Keys, Person
from dropin.arena.timeline import Shown, Timeline
from dropin.core.config import PlainDict, PlainMapping

if TYPE_CHECKING:
    from dropin.arena.config import RoomConfig

__all__ = ["EpisodeResult", "Recorder", "Round"]


class Recorder(Protocol):
    """Writes the episodes of a room to files. Only `finish` may take long."""

    def start(self, config: "RoomConfig", seed: int, moment: Shown) -> None:
        """Begin an episode.

        Args:
            config: The config of the room.
            seed: The seed of the episode.
            moment: Its first moment.
        """
        ...

    def change(self, change: Mapping[str, Sequence[int]], people: Mapping[int, str]) -> None:
        """Note that other people play from now on.

        Args:
            change: The arguments of `Simulation.change`.
            people: The ids of those who play from now on, by slot.
        """
        ...

    def step(
        self, forced: Mapping[int, int], pressed: Mapping[int, PlainMapping | None], moment: Shown
    ) -> None:
        """Note a step.

        Args:
            forced: The actions of people by slot.
            pressed: When people pressed their keys, by slot; None where nothing was pressed.
            moment: The moment after the step.
        """
        ...

    def rewind(self, step: int) -> None:
        """Forget what came after a step."""
        ...

    def finish(self) -> str | None:
        """Write the file of the episode, if one has begun; return its name."""
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
