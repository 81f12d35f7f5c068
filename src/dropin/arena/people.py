"""People in a room, and what the room sees of their connections."""

import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from dropin.core.config import PlainDict

__all__ = ["Keys", "Person", "Pressed", "Sink", "player_in"]


class Sink(Protocol):
    """Where messages to one person go. No method waits."""

    def send(self, text: str) -> None:
        """Pass a message on; one that cannot be passed on is forgotten."""
        ...

    def close(self, reason: str) -> None:
        """End the connection after what has been sent; the reason is for the person."""
        ...


@dataclass
class Keys:
    """How a person has used the keys, in one round or episode."""

    steps: int = 0
    """Steps in which the person was in the team."""
    idle: int = 0
    """Those of them for which nothing was pressed."""

    @property
    def idle_share(self) -> float:
        """The share of steps for which nothing was pressed."""
        return self.idle / self.steps if self.steps else 0.0


class Pressed(NamedTuple):
    """When a key was pressed."""

    after_ms: float
    """Milliseconds after the state was shown; after it was sent, if the page does not say."""
    latency_ms: float | None = None
    """Milliseconds that the state and the key were under way, if the page says when it was."""


@dataclass(eq=False)
class Person:
    """Somebody in a room, who watches or plays."""

    sink: Sink
    name: str = ""
    session: str = ""
    """The session of a study, or empty."""
    id: str = field(default_factory=lambda: secrets.token_hex(4))
    greeted: bool = False
    """Whether the welcome has been sent; nothing else is sent before."""
    slot: int | None = None
    """The place in the team; it stays theirs while openness lets them wait."""
    action: int | None = None
    """What was pressed for the current state."""
    last_action: int = 0
    """What was pressed last."""
    pressed: Pressed | None = None
    """When it was pressed: for recordings."""
    keys: Keys = field(default_factory=Keys)

    def press(self, action: int, since: float, client_ms: float | None) -> None:
        """Choose an action for the current state.

        Args:
            action: The action.
            since: When the state was sent, on the monotonic clock.
            client_ms: Milliseconds between drawing the state and pressing the key, if known.
        """
        passed = round(1000 * (time.monotonic() - since), 1)
        self.action = self.last_action = action
        self.pressed = Pressed(passed if client_ms is None else client_ms)
        if client_ms is not None:
            self.pressed = Pressed(client_ms, round(max(passed - client_ms, 0.0), 1))

    def forget_action(self) -> None:
        """Start a new state, for which nothing has been pressed."""
        self.action, self.pressed = None, None

    def told(self, present: Iterable[int]) -> PlainDict:
        """Return what others are told of this person.

        Args:
            present: The slots of agents that are in the team.
        """
        waiting = self.slot is not None and self.slot not in present
        return {"id": self.id, "name": self.name, "slot": self.slot, "waiting": waiting}


def player_in(people: Iterable[Person], slot: int) -> Person | None:
    """Return the person who plays in a slot, or None.

    Args:
        people: The people of a room.
        slot: The slot.
    """
    return next((each for each in people if each.slot == slot), None)
