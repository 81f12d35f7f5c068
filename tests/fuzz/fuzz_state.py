"""What is kept of fuzzing between two calls of `make fuzz`, a directory for each target.

counts.json     inputs, seconds and edges so far
corpus/         inputs that reached something new
failures/       inputs that fail
mended/         those that failed once and do so no more: copy them to `tests/fuzz/corpus/TARGET`
log             what the fuzzer printed the last time
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

MOST_KINDS = 100
"""Kinds of failures that are kept of a target."""
DIED = "the process ended"
"""How the kind of a failure begins that killed its process."""


@dataclass
class Counts:
    """What came of a target, over all calls."""

    inputs: int = 0
    """Inputs that were made and read; those of the corpus, read again at each start, are not."""
    seconds: float = 0.0
    edges: int = 0
    """Branches of the watched modules that inputs have reached."""
    failures: dict[str, str] = field(default_factory=dict)
    """The name of an input that fails, by kind and place."""


class State:
    """The files of a target.

    Args:
        directory: The directory of all targets.
        name: The target.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self.directory, self.name = directory / name, name
        self.corpus, self.log = self.directory / "corpus", self.directory / "log"
        self._file, self._failures = self.directory / "counts.json", self.directory / "failures"

    def make(self) -> None:
        """Make the directories."""
        for each in (self.corpus, self._failures):
            each.mkdir(parents=True, exist_ok=True)

    def read(self) -> Counts:
        """Return the counts; all are 0 at first."""
        if not self._file.exists():
            return Counts()
        return Counts(**json.loads(self._file.read_text()))

    def write(self, counts: Counts) -> None:
        """Write the counts, so that they are never half there."""
        unfinished = self._file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(asdict(counts), indent=1))
        unfinished.replace(self._file)

    def add_failure(self, counts: Counts, key: str, data: bytes) -> bool:
        """Keep an input that fails, one of each kind.

        Args:
            counts: Where it is noted.
            key: Its kind and place.
            data: The input.

        Returns:
            Whether the kind is new.
        """
        if key in counts.failures or len(counts.failures) >= MOST_KINDS:
            return False
        name = hashlib.sha256(data).hexdigest()[:12]
        (self._failures / name).write_bytes(data)
        counts.failures[key] = name
        return True

    def failures(self, counts: Counts) -> Iterator[tuple[str, bytes]]:
        """Yield the kind and the input of each failure that a process survives."""
        for key, name in list(counts.failures.items()):
            if not key.startswith(DIED):
                yield key, (self._failures / name).read_bytes()

    def mend(self, counts: Counts, key: str) -> None:
        """Put an input aside that fails no more."""
        name = counts.failures.pop(key)
        mended = self.directory / "mended"
        mended.mkdir(exist_ok=True)
        (self._failures / name).replace(mended / name)
