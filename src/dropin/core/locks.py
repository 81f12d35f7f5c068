"""Locks of directories: one process trains in one at a time, on whatever machine.

The lock is the kernel's, so it is free again as soon as its process has died; that of a dead node
when the file server has noticed. Some network file systems lock for each node alone, and a
directory can be moved away and made anew. So the file also says who holds the lock, and whoever
trains looks from time to time whether that is still itself.
"""

import errno
import fcntl
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from dropin.core.config import misfit
from dropin.core.errors import InputError
from dropin.core.files import naming
from dropin.core.reading import parse_json, read_file

__all__ = ["LOCK_FILE", "Lock", "hold"]

LOCK_FILE = ".lock"
_POLL_SECONDS = 0.5
_MOST_BYTES = 4096
_HOST = re.compile(r"[\w.:-]{1,255}")


class _Owner(TypedDict):
    host: str
    pid: int


class Lock:
    """A lock that this process holds.

    Args:
        path: The lock file.
        handle: The open and locked file.
    """

    def __init__(self, path: Path, handle: int):
        self.path, self._handle = path, handle
        owner = {"host": socket.gethostname(), "pid": os.getpid(), "token": secrets.token_hex(8)}
        self._owner = json.dumps(owner).encode()
        os.ftruncate(handle, 0)
        os.pwrite(handle, self._owner, 0)
        os.fsync(handle)

    def check(self) -> None:
        """Raise `OSError` if the directory has gone, or another process trains in it."""
        found, own = self.path.stat(), os.fstat(self._handle)
        moved = (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino)
        if moved or found.st_size != len(self._owner) or self.path.read_bytes() != self._owner:
            raise OSError(
                errno.ESTALE, f"another process trains there{_describe(self.path)}", str(self.path)
            )


@contextmanager
def hold(path: Path, refusal: str, wait: float = 0.0) -> Iterator[Lock]:
    """Hold a lock that no other process can have at the same time; it ends with the process.

    Args:
        path: The lock's file, in a directory that has to be there.
        refusal: What to say if another process holds the lock, without a full stop.
        wait: Seconds to wait for that process.

    Raises:
        InputError: If another process still holds the lock, or nothing can be locked.
    """
    until = time.monotonic() + wait
    try:
        # The lock's owner is written into the file, which must not be somebody else's.
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(
                f"{path} is a symbolic link, and cannot be a lock: remove it."
            ) from None
        if error.errno in (errno.EACCES, errno.EROFS):
            raise InputError(
                f"{path.parent} cannot be written: {error.strerror}. Make it writable, or copy it"
                " to where you may write."
            ) from None
        raise InputError(f"{path.parent} cannot be locked: {error.strerror}.") from None
    try:
        while not _try(handle, path.parent):
            if time.monotonic() >= until:
                raise InputError(f"{refusal}{_describe(path)}.")
            time.sleep(_POLL_SECONDS)
        with naming(path):
            lock = Lock(path, handle)
        yield lock
    finally:
        os.close(handle)


def _try(handle: int, directory: Path) -> bool:
    """Return whether the lock could be taken."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise InputError(
            f"{directory} cannot be locked: {error.strerror}. Training needs a file system that"
            " has locks."
        ) from None
    return True


def _describe(path: Path) -> str:
    """Return who holds a lock, as the end of a sentence; nothing if the file does not say."""
    try:
        owner = parse_json(read_file(path, _MOST_BYTES), path)
    except InputError:
        return ""
    if misfit(owner, _Owner) or not _HOST.fullmatch(owner["host"]):
        return ""
    return f": process {owner['pid']} on {owner['host']}"
