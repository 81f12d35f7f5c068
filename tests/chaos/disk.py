"""A layer below Python's file functions: it notes, cuts short or refuses what is done to a disk."""

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

CHANGES = ("create", "clear", "write", "sync", "rename", "unlink", "mkdir")
"""Kinds of operations that change a disk; those that read are open, read and list."""


@dataclass(frozen=True)
class Operation:
    """Something that was done to a file or directory."""

    kind: str
    path: str
    data: bytes = b""
    """What was written at the end of the file."""
    target: str = ""
    """The new name."""


Hook = Callable[[Operation], None]
"""Called before an operation; an `OSError` that it raises is that of the disk."""


class CutShortError(Exception):
    """Raised by a hook to let a part of a write be done, and then fail.

    Args:
        error: How it fails.
        share: The part of the bytes that are written.
    """

    def __init__(self, error: Callable[[], OSError], share: float = 0.5):
        self.error, self.share = error, share


class _File(io.FileIO):
    """A file whose operations are seen by a hook."""

    def __init__(self, path: str, mode: str, hook: Hook):
        self._hook, self._path = hook, path
        if mode[0] == "r":
            hook(Operation("open", path))
        elif not os.path.exists(path):
            hook(Operation("create", path))
        else:
            hook(Operation("clear" if mode[0] == "w" else "open", path))
        super().__init__(path, mode)

    def write(self, data: Any) -> int:
        content = bytes(data)
        try:
            self._hook(Operation("write", self._path, content))
        except CutShortError as cut:
            super().write(content[: int(len(content) * cut.share)])
            raise cut.error() from None
        return super().write(content)

    def readall(self) -> bytes:
        self._hook(Operation("read", self._path))
        return super().readall()

    def readinto(self, buffer: Any) -> int:
        self._hook(Operation("read", self._path))
        return super().readinto(buffer)


@contextmanager
def watched(root: Path, hook: Hook) -> Iterator[None]:
    """Call a hook before everything that is done to files below a directory.

    Args:
        root: The directory.
        hook: The hook.
    """
    start = f"{root}{os.sep}"

    def below(path: Any) -> str | None:
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        return text if isinstance(text, str) and text.startswith(start) else None

    real = {name: getattr(os, name) for name in ("open", "replace", "unlink", "mkdir", "listdir")}
    real_open, real_sync = io.open, os.fsync

    def opened(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **more: Any) -> Any:
        path = below(file)
        if path is None:
            return real_open(file, mode, buffering, *rest, **more)
        raw = _File(path, mode.replace("b", "").replace("t", ""), hook)
        binary = io.BufferedReader(raw) if mode[0] == "r" else io.BufferedWriter(raw)
        return binary if "b" in mode else io.TextIOWrapper(binary, *rest, **more)

    def handle(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        known = below(path)
        if known is not None:
            new = flags & os.O_CREAT and not os.path.exists(known)
            hook(Operation("create" if new else "open", known))
        return real["open"](path, flags, *rest, **more)

    def sync(number: int) -> None:
        path = os.readlink(f"/proc/self/fd/{number}")
        if below(path) or path == str(root):
            hook(Operation("sync", path))
        real_sync(number)

    def renamed(one: Any, two: Any, **more: Any) -> None:
        if below(one):
            hook(Operation("rename", str(one), target=str(two)))
        real["replace"](one, two, **more)

    def simple(name: str, kind: str) -> Callable[..., Any]:
        def call(path: Any = ".", *rest: Any, **more: Any) -> Any:
            # Without the checks, a file that is not there would count as removed.
            if (known := below(path)) and (kind == "mkdir") != os.path.lexists(known):
                hook(Operation(kind, known))
            return real[name](path, *rest, **more)

        return call

    patches: dict[tuple[Any, str], Any] = {
        (io, "open"): opened,
        (builtins, "open"): opened,
        (os, "open"): handle,
        (os, "fsync"): sync,
        (os, "replace"): renamed,
        (os, "rename"): renamed,
        (os, "unlink"): simple("unlink", "unlink"),
        (os, "mkdir"): simple("mkdir", "mkdir"),
        (os, "listdir"): simple("listdir", "list"),
    }
    with ExitStack() as stack:
        for (module, name), replacement in patches.items():
            stack.enter_context(mock.patch.object(module, name, replacement))
        yield


@dataclass
class Journal:
    """A hook that notes all operations."""

    operations: list[Operation] = field(default_factory=list)

    def __call__(self, operation: Operation) -> None:
        self.operations.append(operation)


_REFUSED = {
    errno.ENOSPC: ("create", "write", "mkdir", "rename", "sync"),
    errno.EROFS: CHANGES,
}
"""What errors refuse that last."""


@dataclass
class Fault:
    """A hook that lets the disk fail at one operation.

    Args:
        at: The number of the operation, from 0 on.
        error: The error: a full disk refuses all that comes later and needs room, one that can only
            be read all that changes it; others happen once.
    """

    at: int
    error: int
    count: int = 0
    happened: bool = False

    def __call__(self, operation: Operation) -> None:
        number, self.count = self.count, self.count + 1
        full, refused = self.error == errno.ENOSPC, _REFUSED.get(self.error)
        over = self.happened if refused is None else operation.kind not in refused
        if number < self.at or over:
            return
        self.happened = True
        at_open_file = operation.kind in ("write", "read", "sync")
        if operation.kind == "write" and full:
            raise CutShortError(lambda: OSError(self.error, os.strerror(self.error)))
        where = () if at_open_file else (operation.path,)
        raise OSError(self.error, os.strerror(self.error), *where)
