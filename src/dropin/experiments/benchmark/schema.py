"""Strict reading of JSON that somebody else wrote: every key, type, length and range is checked."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from dropin.core.config import PlainDict
from dropin.core.errors import InputError, did_you_mean
from dropin.core.reading import parse_json, read_file

__all__ = [
    "LARGEST",
    "Reader",
    "check_size",
    "each_of",
    "fail",
    "fields_of",
    "list_of",
    "number",
    "one_of",
    "optional",
    "plain",
    "read_bytes",
    "read_strictly",
    "shown",
    "text",
    "whole",
]

Reader = Callable[[Any, str], Any]
"""Checks a value and returns it: `(value, where)`, where `where` is its place in the file."""
LARGEST = 1e12
"""Numbers are not larger than this, whatever they count or measure."""
MAX_DEPTH = 8
"""How deeply settings may be nested."""
MAX_SHOWN = 40
"""Longer values are cut in messages."""


def fail(where: str, problem: str) -> NoReturn:
    """Raise the error of a value.

    Args:
        where: The place of the value in its file.
        problem: What is wrong with it, as the end of a sentence.
    """
    raise InputError(f"{where} {problem}.")


def shown(value: object) -> str:
    """Return a value for a message, cut if it is long."""
    found = repr(value)
    return found if len(found) <= MAX_SHOWN else f"{found[:MAX_SHOWN]}..."


def whole(least: int = 0, most: int = int(LARGEST)) -> Reader:
    """Return a reader of whole numbers.

    Args:
        least: The smallest one allowed.
        most: The largest one allowed.
    """

    def read(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            fail(where, f"is {shown(value)}, which is no whole number")
        if not least <= value <= most:
            fail(where, f"is out of range: it is from {least} to {most}")
        return value

    return read


def number(least: float = -LARGEST, most: float = LARGEST) -> Reader:
    """Return a reader of finite numbers.

    Args:
        least: The smallest one allowed.
        most: The largest one allowed.
    """

    def read(value: Any, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            fail(where, f"is {shown(value)}, which is no number")
        if not least <= value <= most:  # Not a number is in no range.
            fail(where, f"is out of range: it is from {least:g} to {most:g}")
        return float(value)

    return read


def text(pattern: str = r"[^\x00-\x1f]*", longest: int = 1000) -> Reader:
    """Return a reader of text.

    Args:
        pattern: A regular expression that all of it has to match; by default it has no control
            characters.
        longest: The largest number of characters.
    """

    def read(value: Any, where: str) -> str:
        if not isinstance(value, str):
            fail(where, f"is {shown(value)}, which is no text")
        if len(value) > longest:
            fail(where, f"is {len(value)} characters long: {longest} are allowed")
        if not re.fullmatch(pattern, value):
            fail(where, f"is {shown(value)}, which is not of the form {pattern}")
        return value

    return read


def one_of(*allowed: Any) -> Reader:
    """Return a reader of a choice.

    Args:
        *allowed: The values it can have.
    """

    def read(value: Any, where: str) -> Any:
        for each in allowed:
            if value == each and type(value) is type(each):
                return each
        return fail(where, f"is {shown(value)}: it can be {', '.join(map(str, allowed))}")

    return read


def optional(reader: Reader) -> Reader:
    """Return a reader that also allows null.

    Args:
        reader: Reads what is not null.
    """
    return lambda value, where: None if value is None else reader(value, where)


def list_of(reader: Reader, least: int = 0, most: int = 100_000) -> Reader:
    """Return a reader of lists.

    Args:
        reader: Reads each value.
        least: The smallest length.
        most: The largest length.
    """

    def read(value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            fail(where, f"is {shown(value)}, which is no list")
        if not least <= len(value) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            fail(where, f"has {len(value)} values: it has {wanted}")
        return [reader(each, f"{where}[{index}]") for index, each in enumerate(value)]

    return read


def each_of(reader: Reader, key: Reader, most: int = 100_000) -> Reader:
    """Return a reader of objects whose keys are not known beforehand.

    Args:
        reader: Reads each value.
        key: Reads each key.
        most: The largest number of keys.
    """

    def read(value: Any, where: str) -> PlainDict:
        given = _object(value, where)
        if len(given) > most:
            fail(where, f"has {len(given)} keys: {most} are allowed")
        return {key(name, f"A key of {where}"): reader(each, f"{where}.{name}")
                for name, each in given.items()}  # fmt: skip

    return read


def fields_of(readers: Mapping[str, Reader]) -> Reader:
    """Return a reader of objects with exactly these keys.

    Args:
        readers: By key, what reads its value.
    """

    def read(value: Any, where: str) -> PlainDict:
        given = _object(value, where)
        for name in given:
            if name not in readers:
                hint = did_you_mean(shown(name), readers)
                raise InputError(f"{where} has an unknown key {shown(name)}{hint}")
        for name in readers:
            if name not in given:
                fail(where, f"has no key {name!r}")
        return {name: reader(given[name], f"{where}.{name}") for name, reader in readers.items()}

    return read


def plain(value: Any, where: str, depth: int = MAX_DEPTH) -> Any:
    """Read settings of any shape, with finite numbers and of limited depth.

    Args:
        value: The value.
        where: Its place.
        depth: How many levels may follow.
    """
    if depth == 0:
        fail(where, f"is nested too deeply: {MAX_DEPTH} levels are allowed")
    if isinstance(value, dict):
        return {text()(name, f"A key of {where}"): plain(each, f"{where}.{name}", depth - 1)
                for name, each in value.items()}  # fmt: skip
    if isinstance(value, list):
        return [plain(each, f"{where}[{index}]", depth - 1) for index, each in enumerate(value)]
    if isinstance(value, float):
        return number()(value, where)
    if isinstance(value, int) and not isinstance(value, bool):
        return whole(-int(LARGEST))(value, where)
    return value if value is None or isinstance(value, bool) else text()(value, where)


def read_strictly(path: Path, reader: Reader, max_bytes: int) -> Any:
    """Read a JSON file and check all of it.

    Args:
        path: The file.
        reader: Reads its content.
        max_bytes: The largest size of the file.

    Raises:
        InputError: If it is missing, too large, no JSON, or something in it is not as it should be.
    """
    return reader(parse_json(read_bytes(path, max_bytes), path), path.name)


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file of limited size.

    Args:
        path: The file.
        max_bytes: The largest size.
    """
    check_size(path, max_bytes)
    return read_file(path, max_bytes)


def check_size(path: Path, max_bytes: int) -> None:
    """Raise `InputError` if there is no such file, if it is a link, or if it is too large.

    Args:
        path: The file.
        max_bytes: The largest size.
    """
    if path.is_symlink() or not path.is_file():
        kind = "is not a file" if path.is_symlink() or path.exists() else "does not exist"
        raise InputError(f"{path} {kind}.")
    size = path.stat().st_size
    if size > max_bytes:
        raise InputError(f"{path} has {size:,} bytes: {max_bytes:,} are allowed.")


def _object(value: Any, where: str) -> PlainDict:
    if not isinstance(value, dict):
        fail(where, f"is {shown(value)}, which is no object")
    return value
