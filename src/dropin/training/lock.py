"""The lock of a run's directory: one process trains in it at a time, on whatever machine.

The lock is the kernel's, so it is free again as soon as its process has died; that of a dead node
when the file server has noticed. Some network file systems lock for each node alone, and a
directory can be moved away and made anew. So the file also says who holds the lock, and whoever
trains looks from time to time whether that is still itself.
"""

import errno
import fcntl
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dropin.core.errors import InputError

__all__ = ["LOCK_FILE", "Lock", "hold"]

LOCK_FILE = ".lock"
_POLL_SECONDS = 0.5
_MOST_BYTES = 4096


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
        if moved or self.path.read_bytes() != self._owner:
            raise OSError(
                errno.ESTALE, f"another process trains there{_describe(self.path)}", str(self.path)
            )


@contextmanager
def hold(directory: Path, wait: float = 0.0) -> Iterator[Lock]:
    """Hold the lock of a directory, which has to be there.

    Args:
        directory: The directory.
        wait: Seconds to wait for another process to end.

    Raises:
        InputError: If another process is still training there, or nothing can be locked.
    """
    path, until = directory / LOCK_FILE, time.monotonic() + wait
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR)
    except OSError as error:
        raise InputError(f"{directory} cannot be locked: {error.strerror}.") from None
    try:
        while not _try(handle, directory):
            if time.monotonic() >= until:
                who = _describe(path)
                raise InputError(f"Another process is training in {directory}{who}.")
            time.sleep(_POLL_SECONDS)
        yield Lock(path, handle)
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
        owner = json.loads(path.read_bytes()[:_MOST_BYTES])
        return f": process {int(owner['pid'])} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
