"""Messages between browser and server: parsing, validation, encoding, and limits."""

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import InputError, unknown
from dropin.core.reading import parse_json

__all__ = ["FIELDS", "Bucket", "Limits", "Message", "Number", "Text", "encode", "parse_message"]

_SHOWN = 40
"""Characters of a wrong value that a message repeats."""
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
)
"""An escape in JSON; the two halves of one character are one match."""


class Message(NamedTuple):
    """A message from a browser, with checked fields."""

    type: str
    values: PlainMapping


@dataclass(frozen=True)
class Number:
    """A field that holds a number within bounds."""

    low: float
    high: float
    whole: bool = True
    required: bool = True

    def read(self, name: str, value: object) -> int | float:
        """Return a value of this field, or raise `InputError`.

        Args:
            name: Name of the field.
            value: What the message has.
        """
        kinds = int if self.whole else int | float
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise InputError(
                f"{name} has to be a {'whole ' * self.whole}number, not {_show(value)}."
            )
        if not (math.isfinite(value) and self.low <= value <= self.high):
            raise InputError(
                f"{name} has to be between {self.low:g} and {self.high:g}, not {_show(value)}."
            )
        return value


@dataclass(frozen=True)
class Text:
    """A field that holds a short text; characters that cannot be printed are removed."""

    longest: int
    required: bool = False

    def read(self, name: str, value: object) -> str:
        """Return a value of this field, or raise `InputError`.

        Args:
            name: Name of the field.
            value: What the message has.
        """
        if not isinstance(value, str):
            raise InputError(f"{name} has to be a text, not {_show(value)}.")
        if len(value) > self.longest:
            raise InputError(f"{name} is too long: it has at most {self.longest} characters.")
        return "".join(each for each in value if each.isprintable()).strip()


_STEP = Number(0, 1_000_000)
_SLOT = Number(0, 999)
_SEED = Number(0, 2**31 - 1, required=False)

FIELDS: Mapping[str, Mapping[str, Number | Text]] = {
    "hello": {"name": Text(32), "token": Text(128), "session": Text(64)},
    "play": {},
    "pause": {},
    "step": {},
    "speed": {"per_second": Number(0.5, 30, whole=False)},
    "clock": {
        "kind": Text(16, required=True),
        "tick_ms": Number(1, 60_000, required=False),
        "limit_ms": Number(1, 3_600_000, required=False),
    },
    "restart": {"seed": _SEED},
    "next": {},
    "rewind": {"step": _STEP},
    "take": {"slot": _SLOT},
    "release": {},
    "act": {
        "action": Number(0, 999),
        "step": _STEP,
        "ms": Number(0, 1e9, whole=False, required=False),
    },
    "pair": {"step": _STEP, "a": _SLOT, "b": _SLOT},
    "ping": {"t": Number(-1e18, 1e18, whole=False)},
}
"""The messages that a browser can send, and their fields."""


def parse_message(text: str | bytes) -> Message:
    """Read and check a message from a browser.

    Args:
        text: What was received.

    Raises:
        InputError: If it is not a message of the protocol; the text is one sentence.
    """
    values = parse_object(text)
    kind = values.pop("type", None)
    if not isinstance(kind, str) or kind not in FIELDS:
        raise unknown("message type", _show(kind), FIELDS)
    fields = FIELDS[kind]
    for name in values:
        if name not in fields:
            raise InputError(f"A message {kind!r} has no field {_show(name)}.")
    read: PlainDict = {}
    for name, each in fields.items():
        if values.get(name) is not None:
            read[name] = each.read(name, values[name])
        elif each.required:
            raise InputError(f"A message {kind!r} needs the field {name!r}.")
    return Message(kind, read)


def parse_object(text: str | bytes) -> PlainDict:
    """Read a JSON object from an untrusted text.

    Args:
        text: What was received.

    Raises:
        InputError: If it is something else.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        found = parse_json(_ESCAPE.sub(_whole_character, text), "The message")
    except ValueError:  # An `InputError` is one.
        raise InputError("The message is not JSON.") from None
    if not isinstance(found, dict):
        raise InputError("The message is not a JSON object.")
    return found


def _whole_character(escape: re.Match[str]) -> str:
    """Return an escape as it is, or nothing for half a character: browsers cut texts so."""
    text = escape[0]
    is_half = len(text) == 6 and "D800" <= text[2:].upper() <= "DFFF"
    return "" if is_half else text


def _show(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def encode(kind: str, /, **values: Any) -> str:
    """Return a message to a browser as JSON; numbers that are not finite become null.

    Args:
        kind: The type of the message.
        **values: Its fields.
    """
    message = {"type": kind, **values}
    try:
        return json.dumps(message, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(message), separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Limits:
    """What strangers can use up at most."""

    rooms: int = 64
    """Rooms at a time."""
    people: int = 16
    """People in a room, those who watch included."""
    connections: int = 256
    """Web sockets at a time."""
    sockets: int = 512
    """Connections of any kind at a time."""
    request_seconds: float = 20.0
    """How long a request may take to arrive, and a response to be read."""
    message_bytes: int = 2048
    """Size of a message from a browser."""
    body_bytes: int = 16_384
    """Size of the body of a request."""
    messages_per_second: float = 30.0
    """Messages of one connection in the long run."""
    message_burst: int = 90
    """Messages of one connection at once."""
    refused_messages: int = 200
    """Messages beyond the rate after which a connection is closed."""
    rooms_per_minute: float = 120.0
    """New rooms in the long run, of all people together."""
    outgoing: int = 256
    """Messages that wait for a slow reader; with more it is dropped."""
    send_seconds: float = 10.0
    """How long one message may take to be sent."""
    hello_seconds: float = 10.0
    """How long a connection may be silent before its first message."""
    idle_seconds: float = 120.0
    """How long a room without people is kept."""


@dataclass
class Bucket:
    """A rate limit: `burst` at once, `rate` a second in the long run."""

    rate: float
    burst: float
    level: float = field(init=False)
    updated: float = field(init=False)

    def __post_init__(self) -> None:
        self.level, self.updated = self.burst, time.monotonic()

    def take(self, now: float | None = None) -> bool:
        """Use one unit; return whether there was one.

        Args:
            now: The time in seconds; that of the monotonic clock if not given.
        """
        now = time.monotonic() if now is None else now
        self.level = min(self.level + (now - self.updated) * self.rate, self.burst)
        self.updated = now
        if self.level < 1:
            return False
        self.level -= 1
        return True
