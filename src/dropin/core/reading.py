"""Files and texts of strangers, read within bounds: size, depth, numbers, no name twice."""

import json
import math
import os
import stat
import tomllib
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from dropin.core.errors import InputError

__all__ = [
    "MAX_ARRAYS_BYTES",
    "MAX_DEPTH",
    "MAX_JSON_BYTES",
    "MAX_TEXT_BYTES",
    "check_plain",
    "first_repeated",
    "parse_json",
    "parse_toml",
    "read_file",
]

Value = TypeVar("Value", bound=Hashable)

MAX_ARRAYS_BYTES = 2**36
"""Size of a file of arrays, at most; checkpoints with a replay buffer are the largest."""
MAX_TEXT_BYTES = 2**26
"""Size of any other file, at most."""
MAX_JSON_BYTES = 2**23
"""Size of a file of JSON that is parsed as a whole, at most: values need 30 times its memory."""
MAX_DEPTH = 64
"""Lists and groups within one another, at most."""
_INTEGERS = range(-(2**63), 2**64)
"""Whole numbers that arrays can hold: others are not converted anywhere."""
_LONGEST_INTEGER = len(str(-(2**63)))


def read_file(path: Path, most: int = MAX_TEXT_BYTES, *, first: int | None = None) -> bytes:
    """Read a file, if it is one: no directory, no device, and no pipe, which would never end.

    Args:
        path: The file.
        most: Its size in bytes, at most.
        first: How many bytes from its start; all of them if it is None.

    Raises:
        InputError: If it is missing, no regular file, or too large, for this machine or at all.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{path} cannot be read: it is a device or a pipe, not a file.")
            if found.st_size > most:
                raise InputError(f"{path} cannot be read: it has more than {most:,} bytes.")
            if first is None and 2 * found.st_size > _memory():  # It is read, and then understood.
                raise InputError(
                    f"{path} cannot be read: its {found.st_size:,} bytes need more memory than this"
                    " machine has."
                )
            return file.read(found.st_size if first is None else first)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r} is no name of a file: {error}.") from None


def _memory() -> int:
    """Return the memory of this machine, in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; a pipe that nobody writes to is not waited for."""
    return os.open(path, flags | os.O_NONBLOCK)


def parse_json(text: bytes | str, source: object, *, nan: bool = False) -> Any:
    """Read JSON of a stranger.

    Beyond the rules of JSON, a name may stand only once in an object, numbers have to be finite
    and of 64 bits, text has to be Unicode, and nesting ends at `MAX_DEPTH`.

    Args:
        text: The text.
        source: Where it comes from, for messages.
        nan: Whether a number may be NaN or infinite.

    Raises:
        InputError: If it is something else.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=float if nan else _finite,
            parse_constant=None if nan else _refuse_constant,
        )
        if text.count("[") + text.count("{") > MAX_DEPTH:
            _check_depth(value)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        raise InputError(f"{source} cannot be read as JSON: half a character is in it.") from None
    except UnicodeDecodeError:
        raise InputError(f"{source} cannot be read as JSON: it is not a text in UTF-8.") from None
    except RecursionError:
        raise InputError(f"{source} cannot be read as JSON: {_TOO_DEEP}.") from None
    except ValueError as error:
        raise InputError(f"{source} cannot be read as JSON: {error}.") from None


_TOO_DEEP = f"more than {MAX_DEPTH} lists and groups are within one another"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = str(first_repeated(name for name, _ in pairs))
        raise ValueError(f"the name {twice[:40]!r} stands twice in one object")
    return found


def first_repeated(values: Iterable[Value]) -> Value | None:
    """Return the first value that has been there before, or None.

    Args:
        values: The values, in any number: a stranger's file may have a million.
    """
    seen: set[Value] = set()
    for each in values:
        if each in seen:
            return each
        seen.add(each)
    return None


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER or int(text) not in _INTEGERS:
        raise ValueError(f"the number {text[:24]}... is too large")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:24]} is too large")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [each for one in level for each in _parts(one)]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _parts(value: Any) -> Iterable[Any]:
    """Return what is directly in a list or a group; nothing for other values."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def parse_toml(data: bytes, source: object) -> dict[str, Any]:
    """Read TOML of a stranger; its values have the bounds of `parse_json`.

    Args:
        data: The content of the file.
        source: Where it comes from, for messages.

    Raises:
        InputError: If it is something else, or if it has dates or times.
    """
    try:
        values = tomllib.loads(data.decode())
        check_plain(values)
        return values
    except UnicodeDecodeError:
        raise InputError(f"{source} cannot be read as TOML: it is not a text in UTF-8.") from None
    except RecursionError:
        raise InputError(f"{source} cannot be read as TOML: {_TOO_DEEP}.") from None
    except ValueError as error:
        raise InputError(f"{source} cannot be read as TOML: {error}.") from None


def check_plain(value: Any) -> None:
    """Raise `ValueError` if a value is none that `parse_json` could return.

    Args:
        value: Any value.
    """
    _check_depth(value)
    waiting = [value]
    while waiting:
        each = waiting.pop()
        waiting += _parts(each)
        if isinstance(each, dict):
            "".join(each).encode()
        elif isinstance(each, str):
            each.encode()
        elif isinstance(each, int):
            if each not in _INTEGERS:
                raise ValueError(f"the number {each:#x}"[:40] + "... is too large")
        elif isinstance(each, float):
            if not math.isfinite(each):
                raise ValueError(f"{each} is no finite number")
        elif each is not None and not isinstance(each, list):
            raise ValueError(f"{each} is a date or a time, which nothing here is")
