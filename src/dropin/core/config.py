"""Settings as frozen dataclasses: checked when made, written as JSON and read back."""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from dropin.core.errors import InputError, unknown

__all__ = [
    "Checked",
    "PlainDict",
    "PlainMapping",
    "differences",
    "from_dict",
    "merge",
    "not_none",
    "parse_settings",
    "to_dict",
]

Config = TypeVar("Config")
PlainDict = dict[str, Any]
"""Plain values by name, as JSON has them."""
PlainMapping = Mapping[str, Any]
"""The same, read only."""


class Checked:
    """A base class of settings that checks choices, counts and numbers when it is made.

    The metadata `least` of an integer field is its smallest allowed value (1 if not given).
    """

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for each in dataclasses.fields(self):  # pyright: ignore[reportArgumentType]
            name, kind = each.name, hints[each.name]
            value, words = getattr(self, name), name.replace("_", " ")
            least = each.metadata.get("least", 1)
            if get_origin(kind) is Literal:
                if value not in get_args(kind):
                    raise unknown(words, value, get_args(kind))
            elif kind is int and (isinstance(value, bool) or not isinstance(value, int)):
                raise InputError(f"The {words} {value!r} is not a whole number.")
            elif kind is int and value < least:
                raise InputError(f"The {words} {value} is too small: it is at least {least}.")
            elif kind is float and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise InputError(f"The {words} {value!r} is not a number.")
            elif kind is float and not 0 <= value < float("inf"):
                raise InputError(f"The {words} {value} is out of range: it is at least 0.")
            elif (group := _group(kind)) and not isinstance(value, group):
                raise InputError(f"The {words} {value!r} is not a group of settings.")
            elif (rows := _rows(kind)) and isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
            elif rows and not isinstance(value, rows):
                raise InputError(f"The {words} {value!r} is not a list.")


def _group(kind: Any) -> type | None:
    """Return the class of values of a kind if they are groups of settings, else None."""
    if get_origin(kind) is Mapping:
        return Mapping
    return kind if isinstance(kind, type) and dataclasses.is_dataclass(kind) else None


def _rows(kind: Any) -> tuple[type, ...]:
    """Return the classes of values of a kind if they are tuples (or None), else nothing."""
    options = get_args(kind) if get_origin(kind) is UnionType else (kind,)
    if not any(get_origin(each) is tuple for each in options):
        return ()
    return (tuple, NoneType) if NoneType in options else (tuple,)


def to_dict(config: Any) -> PlainDict:
    """Return settings as plain values, as JSON has them."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def from_dict(kind: type[Config], values: PlainMapping) -> Config:
    """Read settings from plain values; what is missing has its default.

    Args:
        kind: The dataclass of the settings.
        values: The plain values by name.

    Raises:
        InputError: If there is no setting of a name, or a value cannot be used.
    """
    hints = get_type_hints(kind)
    for name in values:
        if name not in hints:
            raise unknown(f"setting of {kind.__name__}", name, hints)
    given: PlainDict = {}
    for name, value in values.items():
        if dataclasses.is_dataclass(hints[name]) and isinstance(value, Mapping):
            given[name] = from_dict(hints[name], value)  # pyright: ignore[reportArgumentType]
        else:
            given[name] = tuple(value) if isinstance(value, list) else value
    return kind(**given)


def differences(one: PlainMapping, two: PlainMapping, prefix: str = "") -> list[str]:
    """Return where two settings differ, as `name: this, not that` with dots into nested ones.

    Args:
        one: Settings as plain values.
        two: Settings to compare with.
        prefix: Put before each name.
    """
    found: list[str] = []
    for name in sorted({*one, *two}):
        a, b = one.get(name), two.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += differences(a, b, f"{prefix}{name}.")
        elif a != b:
            found.append(f"{prefix}{name}: {a}, not {b}")
    return found


def not_none(**options: Any) -> PlainDict:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def merge(values: PlainMapping, changes: PlainMapping) -> PlainDict:
    """Return nested settings with some of them changed.

    Args:
        values: Settings as plain values.
        changes: New values, in the same shape.
    """
    merged = dict(values)
    for name, value in changes.items():
        nested = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = merge(merged[name], value) if nested else value
    return merged


def parse_settings(texts: Iterable[str]) -> PlainDict:
    """Return nested settings from words such as `training.num_envs=32`.

    A value is JSON or else a plain word.
    """
    changes: PlainDict = {}
    for each in texts:
        name, sign, text = each.partition("=")
        if not sign or not all(name.split(".")):
            raise InputError(f"{each!r} is not a setting: write name=value, as in settings.rank=3.")
        try:
            value: Any = json.loads(text)
        except ValueError:
            value = text
        for part in reversed(name.split(".")):
            value = {part: value}
        changes = merge(changes, value)
    return changes
