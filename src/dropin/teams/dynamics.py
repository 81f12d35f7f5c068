"""How a team changes, as data: the openness and the type changes of a TOML file or a mapping.

Data is a mapping with a `kind` and the parameters of that kind:
`{"kind": "churn", "probability": 0.1}`.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dropin.core import registry
from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import InputError, unknown
from dropin.core.reading import parse_toml, read_file
from dropin.teams.changes import TypeChanges
from dropin.teams.kinds import make_alternating, make_turncoat
from dropin.teams.openness import Closed, Openness
from dropin.teams.pool import Pool

if TYPE_CHECKING:
    from dropin.core.specs import OpennessFactory

__all__ = [
    "MAX_BYTES",
    "TYPE_CHANGES",
    "Dynamics",
    "load_dynamics",
    "make_openness",
    "make_type_changes",
    "plain_openness",
    "plain_type_changes",
]

MAX_BYTES = 2**20
"""Bytes of the largest file that is read."""
TYPE_CHANGES: Mapping[str, Callable[..., TypeChanges]] = {
    "turncoat": make_turncoat,
    "alternating": make_alternating,
}
"""The kinds of type changes: functions of the pool and the parameters."""
_OPENNESS, _TYPE_CHANGES = "openness", "type_changes"
_TABLES = (_OPENNESS, _TYPE_CHANGES)
_OWN = {_OPENNESS: 3, _TYPE_CHANGES: 1}
"""How many arguments of a factory are no parameters of the kind."""


@dataclass(frozen=True)
class Dynamics:
    """What a file says about a team."""

    openness: PlainMapping | None = None
    """The kind and the parameters of the openness; None if the file does not say."""
    type_changes: PlainMapping | None = None
    """The kind and the parameters of the type changes; None if the file does not say."""


def load_dynamics(path: str | Path) -> Dynamics:
    """Read how a team changes from a TOML file with tables `[openness]` and `[type_changes]`.

    Args:
        path: The file.

    Raises:
        InputError: If the file cannot be read, or says something that cannot be used. The values
            of parameters are checked when an environment is made.
    """
    path = Path(path)
    values = parse_toml(read_file(path, MAX_BYTES), path)
    try:
        for name in values:
            if name not in _TABLES:
                raise unknown("table", name, _TABLES)
        if not values:
            raise InputError(f"It has none of the tables {', '.join(_TABLES)}.")
        return Dynamics(**{name: _checked(name, value) for name, value in values.items()})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def plain_openness(given: str | Path | PlainMapping) -> str | PlainDict:
    """Return an openness as plain values: a name as it is, and of a file its data.

    Args:
        given: The name of a registered openness, a TOML file, or a kind with its parameters.

    Raises:
        InputError: If it is something else, or the kind or a parameter is unknown.
    """
    if isinstance(given, str) and not _is_file(given):
        return given
    return _plain(_OPENNESS, given)


def plain_type_changes(given: str | Path | PlainMapping) -> PlainDict:
    """Return type changes as plain values.

    Args:
        given: A TOML file, or a kind with its parameters.

    Raises:
        InputError: If it is something else, or the kind or a parameter is unknown.
    """
    return _plain(_TYPE_CHANGES, given)


def make_openness(
    given: str | Path | PlainMapping | Openness | None,
    rules: str,
    game: Any,
    slots: int,
    default: "OpennessFactory | None" = None,
) -> Openness:
    """Make the openness of a team.

    Args:
        given: An openness, the name of a registered one, a TOML file, or a kind with its
            parameters. None means the default.
        rules: Name of a preset of the game.
        game: The game.
        slots: Number of slots of the learner's team.
        default: The default openness; without one, teams are closed.

    Raises:
        InputError: If something is unknown or cannot be used.
    """
    if given is None:
        return Closed() if default is None else default(rules, game, slots)
    if not isinstance(given, str | Path | Mapping):
        return given
    plain = plain_openness(given)
    if isinstance(plain, str):
        return registry.openness[plain](rules, game, slots)
    return _make(_OPENNESS, plain, rules, game, slots)


def make_type_changes(
    given: str | Path | PlainMapping | TypeChanges | None, pool: Pool
) -> TypeChanges | None:
    """Make the process by which teammates change their type.

    Args:
        given: A process, a TOML file, or a kind with its parameters. None means that types do not
            change.
        pool: The types that newcomers are drawn from.

    Raises:
        InputError: If something is unknown or cannot be used.
    """
    if not isinstance(given, str | Path | Mapping):
        return given
    return _make(_TYPE_CHANGES, plain_type_changes(given), pool)


def _is_file(given: str) -> bool:
    return given.endswith(".toml")


def _plain(table: str, given: object) -> PlainDict:
    """Return the data of a table, from a file or a mapping."""
    if isinstance(given, str | Path):
        if not _is_file(str(given)):
            raise InputError(f"{str(given)!r} is not a TOML file: its name has to end in .toml.")
        found = getattr(load_dynamics(given), table)
        if found is None:
            raise InputError(f"{given} has no table [{table}].")
        return found
    return _checked(table, given)


def _checked(table: str, given: object) -> PlainDict:
    """Return the data of a table as plain values, if its kind and its parameters are known."""
    words = table.replace("_", " ")
    if not isinstance(given, Mapping):
        raise InputError(f"The {words} {given!r} cannot be used: it is a kind with parameters.")
    if not isinstance(given.get("kind"), str):
        raise InputError(
            f"The {words} has no kind: write, for example, kind = {_example(table)!r}."
        )
    factory = _factory(table, given["kind"])
    allowed = _parameters(table, factory)
    for name in given:
        if name != "kind" and allowed is not None and name not in allowed:
            kind = given["kind"]
            if not allowed:
                raise InputError(f"The {words} {kind!r} has no parameters, but {name!r} is given.")
            raise unknown(f"parameter of {kind}", name, allowed)
    return {name: _value(f"{words}: {name}", value) for name, value in given.items()}


def _value(name: str, value: object) -> Any:
    """Return a value as JSON has it, if it is a number, a word, a truth value or a list of them."""
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"The {name} is {value}, which is no finite number.")
        return value
    if isinstance(value, Sequence):
        return [_value(name, each) for each in value]
    raise InputError(f"The {name} {value!r} cannot be used: it is a number, a word or a list.")


def _example(table: str) -> str:
    return "churn" if table == _OPENNESS else "turncoat"


def _factory(table: str, kind: str) -> Callable[..., Any]:
    if table == _OPENNESS:
        return registry.openness[kind]
    if kind not in TYPE_CHANGES:
        raise unknown("kind of type changes", kind, TYPE_CHANGES)
    return TYPE_CHANGES[kind]


def _parameters(table: str, factory: Callable[..., Any]) -> list[str] | None:
    """Return the names of the parameters of a kind; None if it takes any."""
    arguments = list(inspect.signature(factory).parameters.values())[_OWN[table] :]
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in arguments):
        return None
    return [each.name for each in arguments if each.kind is inspect.Parameter.KEYWORD_ONLY]


def _make(table: str, plain: PlainMapping, *given: Any) -> Any:
    """Call the factory of a kind with its parameters."""
    kind = plain["kind"]
    parameters = {name: value for name, value in plain.items() if name != "kind"}
    factory = _factory(table, kind)
    needed = [
        each.name
        for each in inspect.signature(factory).parameters.values()
        if each.kind is inspect.Parameter.KEYWORD_ONLY and each.default is each.empty
    ]
    for name in needed:
        if name not in parameters:
            raise InputError(
                f"The {table.replace('_', ' ')} {kind!r} needs the parameter {name!r}."
            )
    try:
        return factory(*given, **parameters)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"The {table.replace('_', ' ')} {kind!r} cannot be made of {parameters}: {error}."
        ) from None
