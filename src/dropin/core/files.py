"""Files that are whole or not there: atomic writes, and arrays with a checksum (safetensors)."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import InputError
from dropin.core.reading import MAX_ARRAYS_BYTES, MAX_JSON_BYTES, parse_json, read_file

__all__ = [
    "checksum",
    "file_checksum",
    "make_directory",
    "names_in",
    "naming",
    "read_arrays",
    "read_json",
    "remove_unfinished",
    "sync_directory",
    "write",
    "write_arrays",
    "write_json",
]

_KEY = "dropin"
_LARGE = 2**26
"""Files of arrays with more bytes are looked at before they are read."""
_UNFINISHED = re.compile(r"\.(?P<name>.+)\.\d+\.tmp")
"""The names under which files are written before they are renamed."""


def write(path: Path, data: bytes) -> None:
    """Write a file atomically: under a temporary name, then sync and rename.

    Args:
        path: The file; one that exists is replaced, missing directories are created.
        data: Its content.

    Raises:
        OSError: If it cannot be written; it names the file, which is as it was before.
    """
    make_directory(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with naming(path):
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the file system name a file, which those of an open file do not.

    Args:
        path: The file that the user knows, instead of a temporary one.
    """
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def make_directory(path: Path) -> None:
    """Make a directory and those above it, so that their names survive a crash.

    Args:
        path: The directory; nothing happens if it exists.
    """
    missing = []
    for each in (path, *path.parents):
        if each.exists():
            break
        missing.append(each)
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        with suppress(PermissionError):  # One may be allowed to write in a directory, not to read.
            sync_directory(each.parent)


def names_in(directory: Path) -> list[str]:
    """Return the names in a directory, in order; none if it does not exist.

    Unlike `Path.glob`, it does not take a directory that cannot be read for an empty one.
    """
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []


def remove_unfinished(directory: Path, start: str = "") -> None:
    """Remove what killed processes have left of files that they were writing.

    No other process may be writing these files.

    Args:
        directory: The directory; it need not exist.
        start: Only what would have become a file whose name starts so.
    """
    for each in names_in(directory):
        found = _UNFINISHED.fullmatch(each)
        if found and found["name"].startswith(start):
            (directory / each).unlink(missing_ok=True)


def file_checksum(path: Path) -> str:
    """Return the SHA-256 checksum of a file, in hexadecimal digits."""
    return hashlib.sha256(read_file(path, MAX_ARRAYS_BYTES)).hexdigest()


def sync_directory(path: Path) -> None:
    """Sync a directory, so that the names of its files survive a crash."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, atomically.

    Args:
        path: The file; one that exists is replaced.
        value: A value that JSON can hold.
    """
    write(path, (json.dumps(value, indent=2) + "\n").encode())


def read_json(path: Path, *, nan: bool = False) -> Any:
    """Read a JSON file, within the bounds of `parse_json`.

    Args:
        path: The file.
        nan: Whether a number may be NaN or infinite, as the ends of an interval that is not known.

    Raises:
        InputError: If the file is missing or is not JSON.
    """
    return parse_json(read_file(path, MAX_JSON_BYTES), path, nan=nan)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], about: PlainMapping) -> None:
    """Write named arrays and a description as one safetensors file, atomically.

    Equal contents give equal files, byte by byte.

    Args:
        path: The file.
        arrays: The arrays by name.
        about: Plain values that describe them.
    """
    described = json.dumps(about, sort_keys=True)
    # One entry, since safetensors writes several in any order: equal contents are equal files.
    metadata = {_KEY: f"{checksum(arrays, described)} {described}"}
    write(path, safetensors.numpy.save(dict(arrays), metadata))


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], PlainDict]:
    """Read the arrays and the description from a file of `write_arrays`.

    Raises:
        InputError: If the file is missing, or its checksum does not fit.
    """
    if path.is_file() and path.stat().st_size > _LARGE:
        _check_promised_size(path)
    data = read_file(path, MAX_ARRAYS_BYTES)
    try:
        arrays = safetensors.numpy.load(data)
        header = parse_json(data[8 : 8 + int.from_bytes(data[:8], "little")], path)
        stored, _, described = header["__metadata__"][_KEY].partition(" ")
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path} is damaged or not a file of Dropin.") from None
    if checksum(arrays, described) != stored:
        raise InputError(f"{path} is damaged: its checksum does not fit.")
    try:
        about = parse_json(described, path)
    except InputError:
        raise InputError(f"{path} is damaged or not a file of Dropin.") from None
    if not isinstance(about, dict):
        raise InputError(
            f"{path} is not a file of Dropin: its description is {type(about).__name__}."
        )
    return arrays, about


def _check_promised_size(path: Path) -> None:
    """Raise `InputError` if a file has not the size that its header says, without reading it all.

    Args:
        path: A safetensors file.
    """
    length = int.from_bytes(read_file(path, MAX_ARRAYS_BYTES, first=8), "little")
    try:
        if length > MAX_JSON_BYTES:
            raise ValueError("The header is too long.")
        start = read_file(path, MAX_ARRAYS_BYTES, first=8 + length)
        header = parse_json(start[8:], path)
        ends = [each["data_offsets"][1] for name, each in header.items() if name != "__metadata__"]
        if 8 + length + max(ends, default=0) != path.stat().st_size:
            raise ValueError("The size is another one.")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise InputError(f"{path} is damaged or not a file of Dropin.") from None


def checksum(arrays: Mapping[str, np.ndarray], described: str = "") -> str:
    """Return the SHA-256 of named arrays and a description.

    Args:
        arrays: The arrays by name.
        described: The description.
    """
    whole = hashlib.sha256(described.encode())
    for name in sorted(arrays):
        array = arrays[name]
        whole.update(f"{name} {array.dtype} {array.shape}".encode())
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()
