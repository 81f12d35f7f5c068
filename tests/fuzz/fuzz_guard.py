"""What an input may do: be read, or be refused in one sentence, soon, and nothing else."""

import contextlib
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dropin.core.errors import InputError, MissingExtraError, StoppedError

REFUSED = (InputError, StoppedError, MissingExtraError)
"""How an input may be refused."""
MOST_SECONDS = 2.0
"""Processor time of one input."""
CLEAR_REFERENCES, RESET_PEAK = Path("/proc/self/clear_refs"), "5"
MOST_BYTES = 512 * 2**20
"""How much one input may add to the memory of the process."""
LONGEST_SENTENCE = 20_000
"""Characters of a message. Long names from the file may stand in it, but not all of the file."""

_EXECUTES = ("exec", "compile", "marshal.loads", "pickle.find_class", "code.__new__")
_STARTS = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.kill",
    "subprocess.Popen", "pty.spawn", "ctypes.dlopen", "ctypes.dlsym", "webbrowser.open",
    "socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "urllib.Request",
)  # fmt: skip
_CHANGES = (
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate",
    "os.chmod", "os.chown", "os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile",
)  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class ForbiddenError(Exception):
    """An input made the reader run something, or write outside of its directory."""


@dataclass(frozen=True)
class Failure:
    """An input that did what it may not."""

    kind: str
    """The class of the error, or `slow` or `memory`."""
    place: str
    """Where in Dropin, as `core/files.py:120`."""
    detail: str

    @property
    def key(self) -> str:
        """The same for inputs that most likely fail for the same reason."""
        return f"{self.kind} at {self.place}"


class Watch:
    """Notices what a reader does to the world, while it is armed.

    Args:
        directory: Where it may write.
    """

    def __init__(self, directory: Path) -> None:
        self.directory, self.armed = str(directory), False
        self.found: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.armed:
            return
        if event == "open":
            path, mode, flags = args
            writes = isinstance(flags, int) and flags & _WRITES
            if writes and not self._inside(path):
                self.found.append(f"{event} {path!r} {mode}")
        elif event in _STARTS:
            self.found.append(f"{event} {args!r:.200}")
        elif event in _CHANGES:
            if not all(self._inside(each) for each in args if isinstance(each, str | bytes)):
                self.found.append(f"{event} {args!r:.200}")
        elif event in _EXECUTES and not _importing():
            self.found.append(f"{event} {args!r:.200}")

    def _inside(self, path: object) -> bool:
        if isinstance(path, int):
            return True
        text = os.fsdecode(path)  # pyright: ignore[reportArgumentType]
        text = os.path.realpath(text) if ".." in text else os.path.abspath(text)
        return text.startswith(self.directory) or text == os.devnull

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Notice what happens within; raise `ForbiddenError` at the end if it may not."""
        self.found.clear()
        self.armed = True
        try:
            yield
        finally:
            self.armed = False
        if self.found:
            raise ForbiddenError(self.found[0])


def _importing() -> bool:
    """Return whether code of Dropin imports a module of its own or of a library just now."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def check(run: Callable[[], object], watch: Watch) -> Failure | None:
    """Read an input; return what it did that it may not, or None.

    Args:
        run: Reads it.
        watch: Notices what is done meanwhile.
    """
    CLEAR_REFERENCES.write_text(RESET_PEAK)
    memory, start = _peak_memory(), time.process_time()
    try:
        with warnings.catch_warnings(), watch.watching():
            warnings.simplefilter("ignore")
            run()
    except REFUSED as error:
        failure = _sentence_failure(error)
        if failure is not None:
            return failure
    except Exception as error:
        return Failure(type(error).__name__, _place(error), f"{error!s:.300}")
    seconds = time.process_time() - start
    if seconds > MOST_SECONDS:
        return Failure("slow", "", f"{seconds:.1f} s")
    if _peak_memory() - memory > MOST_BYTES:
        return Failure("memory", "", f"{(_peak_memory() - memory) / 2**20:.0f} MiB")
    return None


def _sentence_failure(error: BaseException) -> Failure | None:
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


def _peak_memory() -> int:
    """Return the most memory that this process has held since the peak was reset, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024
