"""Settings as frozen dataclasses: checked when made, written as JSON and read back."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from dropin.core.errors import InputError, shown, unknown
from dropin.core.reading import MAX_DEPTH, parse_json

__all__ = [
    "Checked",
    "PlainDict",
    "PlainMapping",
    "differences",
    "from_dict",
    "merge",
    "misfit",
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
        for name, kind, least in _checks(type(self)):
            value, words = getattr(self, name), name.replace("_", " ")
            if get_origin(kind) is Literal:
                if isinstance(value, bool) or value not in get_args(kind):
                    raise unknown(words, value, get_args(kind))
            elif expected := misfit(value, kind):
                raise InputError(f"The {words} {shown(value)} is not {expected}.")
            elif kind is int and value < least:
                raise InputError(f"The {words} {value} is too small: it is at least {least}.")
            elif kind is float and not 0 <= value < float("inf"):
                raise InputError(f"The {words} {value} is out of range: it is at least 0.")
            elif isinstance(value, list):
                object.__setattr__(self, name, tuple(value))


@cache
def _checks(kind: type) -> list[tuple[str, Any, int]]:
    """Return the name and the type of each field of a class, and its smallest allowed value."""
    hints = _hints(kind)
    return [
        (each.name, hints[each.name], each.metadata.get("least", 1))
        for each in dataclasses.fields(kind)
    ]


@cache
def _hints(kind: type) -> PlainDict:
    """Return the types of the fields of a class; reading annotations takes long."""
    return get_type_hints(kind)


_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def misfit(value: object, kind: Any) -> str | None:
    """Return what a plain value should be, as "a whole number"; None if it is of its kind.

    Args:
        value: The value.
        kind: A type as annotations have it: of plain values, lists, groups, and unions of these.
            Other types, and what is in groups of no known names, are not checked.
    """
    origin, args = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        found = [misfit(value, each) for each in args]
        return None if None in found else found[0]
    if origin in (tuple, list, Sequence):
        return _misfit_of_list(value, args)
    if is_typeddict(kind):
        return _misfit_of_group(value, _hints(kind))
    return _misfit_of_one(value, kind, origin, args)


def _misfit_of_one(
    value: object, kind: Any, origin: object, choices: tuple[object, ...]
) -> str | None:
    """Return the same for a value that is no list, and no group of known names."""
    good, expected = True, ""
    if origin is Literal:
        good, expected = value in choices, f"one of {', '.join(map(str, choices))}"
    elif origin in (dict, Mapping) or dataclasses.is_dataclass(kind):
        good = isinstance(value, Mapping if origin else kind)  # pyright: ignore[reportArgumentType]
        expected = "a group of settings"
    elif kind is NoneType:
        good, expected = value is None, "empty"
    elif kind in _KINDS:
        types = (int, float) if kind is float else kind
        good = isinstance(value, types) and (kind is bool or not isinstance(value, bool))
        expected = _KINDS[kind]
    return None if good else expected


def _misfit_of_list(value: object, kinds: tuple[Any, ...]) -> str | None:
    if not isinstance(value, list | tuple):
        return "a list"
    same = len(kinds) == 1 or kinds[-1] is Ellipsis
    wanted = [kinds[0]] * len(value) if same else kinds
    found = next(filter(None, map(misfit, value, wanted)), None)
    if same:
        return f"a list in which each is {found}" if found else None
    if found or len(value) != len(kinds):
        return f"a list of {', '.join(_KINDS.get(each, 'a value') for each in kinds)}"
    return None


def _misfit_of_group(value: object, kinds: PlainMapping) -> str | None:
    if not isinstance(value, Mapping):
        return "a group"
    for name, kind in kinds.items():
        found = misfit(value[name], kind) if name in value else "there"
        if found:
            return f"a group in which {name} is {found}"
    return None


def to_dict(config: Any) -> PlainDict:
    """Return settings as plain values, as JSON has them."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def from_dict(kind: type[Config], values: PlainMapping) -> Config:
    """Read settings from plain values; what is missing has its default.

    Args:
        kind: The dataclass of the settings.
        values: The plain values by name.

    Raises:
        InputError: If there is no setting of a name, one is missing, or a value cannot be used.
    """
    hints = _hints(kind)
    for name in values:
        if name not in hints:
            raise unknown(f"setting of {kind.__name__}", name, hints)
    given: PlainDict = {}
    for name, value in values.items():
        if dataclasses.is_dataclass(hints[name]) and isinstance(value, Mapping):
            given[name] = from_dict(hints[name], value)  # pyright: ignore[reportArgumentType]
        else:
            given[name] = tuple(value) if isinstance(value, list) else value
    for each in dataclasses.fields(kind):  # pyright: ignore[reportArgumentType]
        optional = (each.default, each.default_factory) != (dataclasses.MISSING,) * 2
        if each.init and not optional and each.name not in given:
            raise InputError(f"The {each.name.replace('_', ' ')} is missing.")
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
            raise InputError(
                f"{shown(each)} is not a setting: write name=value, as in settings.rank=3."
            )
        if name.count(".") >= MAX_DEPTH:
            raise InputError(f"{name[:40]!r}... is not the name of a setting: it is too long.")
        try:
            value: Any = parse_json(text, name)
        except InputError:
            value = text
        for part in reversed(name.split(".")):
            value = {part: value}
        changes = merge(changes, value)
    return changes
