"""The time line of a room: the moments of the episode so far, as states and as messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from dropin.arena.protocol import encode
from dropin.arena.tables import pack_frame
from dropin.core.config import PlainDict
from dropin.core.errors import InputError

__all__ = ["AnyPlayable", "Playable", "Shown", "Timeline", "present_slots"]


class Shown(Protocol):
    """A moment of an episode, as a room uses it."""

    @property
    def step(self) -> int:
        """How many steps have been taken."""
        ...

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        ...

    @property
    def score(self) -> float:
        """The learner's return so far."""
        ...

    @property
    def frame(self) -> PlainDict:
        """What browsers are told of the moment."""
        ...


MomentT = TypeVar("MomentT", bound=Shown)


class Playable(Protocol[MomentT]):
    """What a room plays: an open team (`Simulation`), or a recording of one."""

    def reset(self, seed: int) -> MomentT:
        """Return the first moment of an episode."""
        ...

    def step(self, moment: MomentT, forced: Mapping[int, int]) -> MomentT:
        """Return the next moment.

        Args:
            moment: The current one.
            forced: The actions of people by slot.
        """
        ...

    def change(
        self,
        moment: MomentT,
        *,
        joined: Sequence[int] = (),
        replaced: Sequence[int] = (),
        left: Sequence[int] = (),
    ) -> MomentT:
        """Return the moment with other people in it.

        Args:
            moment: The current one.
            joined: Slots in which a person takes over.
            replaced: Slots in which a type takes over.
            left: Slots whose agents leave the team.
        """
        ...

    def pair_table(self, moment: MomentT, a: int, b: int) -> list[list[float]]:
        """Return the pairwise utilities of two agents (Eq. 7).

        Args:
            moment: The moment.
            a: Slot of the one, whose actions are the rows.
            b: Slot of the other.
        """
        ...


AnyPlayable = Playable[Any]
"""Something to play, with any kind of moments."""


def present_slots(moment: Shown) -> frozenset[int]:
    """Return the slots of the agents that are in the team."""
    return frozenset(each["slot"] for each in moment.frame["agents"] if each["present"])


@dataclass
class Timeline:
    """The moments of one episode, in order; the last one is the current state."""

    episode: int = -1
    """The number of the episode in its room."""
    seed: int = 0
    moments: list[Shown] = field(default_factory=list)
    owners: list[dict[int, str]] = field(default_factory=list)
    """For each moment, who played in which slot: ids of people."""
    texts: list[str] = field(default_factory=list)
    """For each moment, the message with its frame."""

    @property
    def current(self) -> Shown:
        """The last moment."""
        return self.moments[-1]

    def start(self, seed: int, moment: Shown) -> None:
        """Start another episode.

        Args:
            seed: Its seed.
            moment: Its first moment, in which nobody plays.
        """
        self.episode, self.seed = self.episode + 1, seed
        self.moments, self.owners, self.texts = [], [], []
        self.push(moment, {})

    def push(
        self, moment: Shown, owners: Mapping[int, str], deadline_ms: int | None = None
    ) -> None:
        """Add the next moment.

        Args:
            moment: The moment.
            owners: Who plays in which slot.
            deadline_ms: How long the room waits for people.
        """
        frame = dict(moment.frame)
        frame["agents"] = [{**each, "person": owners.get(each["slot"])} for each in frame["agents"]]
        frame |= {"episode": self.episode, "deadline_ms": deadline_ms}
        text = encode("frame", **pack_frame(frame))
        self.moments.append(moment)
        self.owners.append(dict(owners))
        self.texts.append(text)

    def replace(
        self, moment: Shown, owners: Mapping[int, str], deadline_ms: int | None = None
    ) -> None:
        """Replace the last moment: other people play in it.

        Args:
            moment: The moment.
            owners: Who plays in which slot.
            deadline_ms: How long the room waits for people.
        """
        self.truncate(len(self.moments) - 1)
        self.push(moment, owners, deadline_ms)

    def at(self, step: int) -> Shown:
        """Return the moment of a step.

        Raises:
            InputError: If the episode has not come to this step.
        """
        if step >= len(self.moments):
            raise InputError(
                f"There is no step {step} yet: the episode is at step {len(self.moments) - 1}."
            )
        return self.moments[step]

    def truncate(self, length: int) -> None:
        """Forget the moments from one on.

        Args:
            length: How many stay.
        """
        del self.moments[length:], self.owners[length:], self.texts[length:]
