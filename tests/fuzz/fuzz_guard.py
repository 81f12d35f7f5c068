"""What an input may do: be read, or be refused in one sentence, soon, and nothing else.

What can be looked at in microseconds is looked at for each input: errors, messages, processor time,
the most memory, and every file, process and socket that Python code asks for. Now and then a closer
look finds what only adds up, or what was done behind Python's back.
"""

import os
import resource
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dropin.core.errors import InputError, MissingExtraError, StoppedError

REFUSED = (InputError, StoppedError, MissingExtraError)
"""How an input may be refused."""
MOST_SECONDS = 2.0
"""Processor time of one input."""
MOST_BYTES = 512 * 2**20
"""How much memory one input may add to the process, and how much may stay behind."""
LONGEST_SENTENCE = 20_000
"""Characters of a message. Long names from the file may stand in it, but not all of the file."""
CLOSER = 1024
"""After so many inputs there is a closer look."""
CLEAR_REFERENCES, RESET_PEAK = Path("/proc/self/clear_refs"), "5"
PAGE = os.sysconf("SC_PAGE_SIZE")

_EXECUTES = frozenset({"exec", "compile", "marshal.loads", "pickle.find_class", "code.__new__"})
_STARTS = frozenset({
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.kill",
    "subprocess.Popen", "pty.spawn", "ctypes.dlopen", "ctypes.dlsym", "webbrowser.open",
    "socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "urllib.Request",
})  # fmt: skip
_CHANGES = frozenset({
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate",
    "os.chmod", "os.chown", "os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile",
})  # fmt: skip
_WATCHED = frozenset({"open", *_EXECUTES, *_STARTS, *_CHANGES})
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Failure:
    """An input that did what it may not."""

    kind: str
    """The class of the error, or `slow`, `memory`, `forbidden` and the like."""
    place: str
    """Where in Dropin, as `core/files.py:120`."""
    detail: str

    @property
    def key(self) -> str:
        """The same for inputs that most likely fail for the same reason."""
        return f"{self.kind} at {self.place}" if self.place else self.kind


class Guard:
    """Reads inputs and notices what they may not do.

    Args:
        directory: Where a reader may write.
    """

    def __init__(self, directory: Path) -> None:
        self.directory, self._inputs = directory, 0
        self._inside, self._armed = f"{directory}{os.sep}", False
        self._found: list[str] = []
        self._world: dict[str, object] = {}
        self._memory_at_first = self._memory_at_reset = 0
        sys.addaudithook(self._hear)

    def check(self, read: Callable[[], object]) -> Failure | None:
        """Read an input; return what it did that it may not, or None.

        Args:
            read: Reads it.
        """
        if self._inputs % CLOSER == 0:
            self._look_around()
        self._inputs += 1
        failure, before = None, resource.getrusage(resource.RUSAGE_SELF)
        self._found.clear()
        self._armed = True
        try:
            with warnings.catch_warnings(action="ignore"):
                read()
        except REFUSED as error:
            failure = _message_failure(error)
        except Exception as error:
            failure = Failure(type(error).__name__, _place(error), f"{error!s:.300}")
        finally:
            self._armed = False
        return failure or self._world_failure(before)

    def _world_failure(self, before: resource.struct_rusage) -> Failure | None:
        """Return what an input did to the world that it may not."""
        if self._found:
            return Failure("forbidden", self._found[0].partition(" ")[0], self._found[0])
        after = resource.getrusage(resource.RUSAGE_SELF)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if seconds > MOST_SECONDS:
            return Failure("slow", "", f"{seconds:.1f} s")
        grown = 1024 * after.ru_maxrss - self._memory_at_reset
        if grown > MOST_BYTES:
            self._reset_memory()
            return Failure("memory", "", f"{grown / 2**20:.0f} MiB")
        if self._inputs % CLOSER == 0:
            return self._look_closer()
        return None

    def _look_around(self) -> None:
        """Note how the world is."""
        self._reset_memory()
        self._memory_at_first = self._memory_at_first or self._memory_at_reset
        self._world = _world()

    def _look_closer(self) -> Failure | None:
        """Return how the world is another one than `CLOSER` inputs before."""
        now = _world()
        for name, value in self._world.items():
            if now[name] != value:
                return Failure("changed", name, f"{value!r:.100} became {now[name]!r:.100}")
        stays = _memory() - self._memory_at_first
        if stays > MOST_BYTES:
            self._memory_at_first = _memory()
            return Failure("memory", "that stays", f"{stays / 2**20:.0f} MiB")
        return None

    def _reset_memory(self) -> None:
        """Forget the most memory that the process has held."""
        CLEAR_REFERENCES.write_text(RESET_PEAK)
        self._memory_at_reset = _memory()

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._armed or event not in _WATCHED:
            return
        if event == "open":
            path, mode, flags = args
            forbidden = isinstance(flags, int) and flags & _WRITES and not self._is_inside(path)
            what = f"{path!r} {mode}"
        elif event in _CHANGES:
            paths = [each for each in args if isinstance(each, str | bytes | os.PathLike)]
            forbidden, what = not all(map(self._is_inside, paths)), repr(args)
        else:
            forbidden, what = event in _STARTS or not _importing(), repr(args)
        if forbidden:
            self._found.append(f"{event} {what:.200}")

    def _is_inside(self, path: object) -> bool:
        if isinstance(path, int):
            return True
        text = os.fsdecode(path)  # pyright: ignore[reportArgumentType]
        if ".." in text or not text.startswith(os.sep):
            text = os.path.realpath(text)
        return text.startswith(self._inside) or text in (self._inside[:-1], os.devnull)


def _importing() -> bool:
    """Return whether code of Dropin imports a module of its own or of a library just now."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _world() -> dict[str, object]:
    """Return what no reader may change, and what it may not leave behind."""
    tasks = Path("/proc/self/task")
    return {
        "working directory": os.getcwd(),
        "environment": dict(os.environ),
        "path of modules": tuple(sys.path),
        "open files": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "processes": [(each / "children").read_text() for each in (tasks / str(os.getpid()),)],
    }


def _memory() -> int:
    """Return the memory that this process holds, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def _message_failure(error: BaseException) -> Failure | None:
    """Return what is wrong with the message of a refusal."""
    text = str(error)
    if not text.strip() or len(text) > LONGEST_SENTENCE:
        return Failure("message", _place(error), f"{len(text)} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        return Failure("unprintable", _place(error), repr(text)[:300])
    return None


def _place(error: BaseException) -> str:
    """Return the innermost line of Dropin in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if f"{os.sep}dropin{os.sep}" in each.filename]
    if not own:
        return "elsewhere"
    name = own[-1].filename.rpartition(f"{os.sep}dropin{os.sep}")[2]
    return f"{name}:{own[-1].name}"
