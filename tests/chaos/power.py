"""What a disk holds after a loss of power: only what was synced is certain.

A model of what POSIX promises, which is less than most file systems do. The content of a file is
certain up to its last sync, a name up to the last sync of its directory. Of what came later, any
part may be there, in any order.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos.disk import Operation

LOSSES = ("nothing", "names", "torn", "zeros", "random")
"""What is left of all that was not synced: nothing; the names without content; the names with half
of the content, or with zeros in place of it; a random part of everything."""


@dataclass
class _File:
    content: bytes = b""
    synced: bytes = b""


Change = dict[str, "int | None"]
"""Names that a directory gets, or loses (None), at once."""


@dataclass
class _Directory:
    names: dict[str, int] = field(default_factory=dict)
    synced: dict[str, int] = field(default_factory=dict)
    later: list[Change] = field(default_factory=list)
    """The changes since the last sync."""

    def change(self, change: Change) -> None:
        self.later.append(change)
        _apply(self.names, change)


def _apply(names: dict[str, int], change: Change) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class PoweredDisk:
    """A disk to which operations were done, and whose power may fail.

    Args:
        root: The directory of all files; it exists and is synced.
        operations: What was done, in order.
    """

    def __init__(self, root: Path, operations: Sequence[Operation]):
        self._root = root
        self._nodes: dict[int, _File | _Directory] = {0: _Directory()}
        for each in operations:
            self._do(each)

    def _parts(self, path: str) -> tuple[str, ...]:
        return Path(path).relative_to(self._root).parts

    def _node(self, path: str) -> _File | _Directory:
        number = 0
        for part in self._parts(path):
            number = self._directory(number).names[part]
        return self._nodes[number]

    def _directory(self, number: int) -> _Directory:
        found = self._nodes[number]
        assert isinstance(found, _Directory)
        return found

    def _parent(self, path: str) -> tuple[_Directory, str]:
        found = self._node(str(Path(path).parent))
        assert isinstance(found, _Directory)
        return found, Path(path).name

    def _add(self, path: str, node: _File | _Directory) -> None:
        parent, name = self._parent(path)
        number = len(self._nodes)
        self._nodes[number] = node
        parent.change({name: number})

    def _do(self, operation: Operation) -> None:
        path = operation.path
        match operation.kind:
            case "mkdir":
                self._add(path, _Directory())
            case "create":
                self._add(path, _File())
            case "clear":
                self._file(path).content = b""
            case "write":
                self._file(path).content += operation.data
            case "unlink":
                parent, name = self._parent(path)
                parent.change({name: None})
            case "rename":
                parent, old = self._parent(path)
                target, new = self._parent(operation.target)
                assert parent is target
                parent.change({new: parent.names[old], old: None})
            case "sync":
                node = self._node(path)
                if isinstance(node, _File):
                    node.synced = node.content
                else:
                    node.synced, node.later = dict(node.names), []

    def _file(self, path: str) -> _File:
        found = self._node(path)
        assert isinstance(found, _File)
        return found

    def after(self, loss: str, seed: int = 0) -> dict[str, bytes | None]:
        """Return what is there when the power is back.

        Args:
            loss: One of `LOSSES`.
            seed: Decides what is random.

        Returns:
            The content of all files by their path, and None for directories.
        """
        found: dict[str, bytes | None] = {}
        rng = random.Random(seed)

        def walk(number: int, path: str) -> None:
            node = self._nodes[number]
            if isinstance(node, _File):
                found[path] = _content(node, loss, rng)
                return
            found[path] = None
            names = dict(node.synced)
            for change in node.later:
                if loss not in ("nothing", "random") or (loss == "random" and rng.random() < 0.5):
                    _apply(names, change)
            for name, each in sorted(names.items()):
                walk(each, f"{path}/{name}" if path else name)

        walk(0, "")
        del found[""]
        return found


def _content(file: _File, loss: str, rng: random.Random) -> bytes:
    """Return what is left of a file."""
    if not file.content.startswith(file.synced):  # Cleared and written anew.
        return file.content if loss == "torn" else b""
    tail = file.content[len(file.synced) :]
    length = {"nothing": 0, "names": 0, "torn": len(tail) // 2, "zeros": 0}.get(loss)
    if length is None:
        length = rng.randint(0, len(tail))
    rest = bytes(len(tail)) if loss == "zeros" else b""
    return file.synced + tail[:length] + rest


def put(state: dict[str, bytes | None], root: Path) -> None:
    """Write a state of `PoweredDisk.after` to a directory.

    Args:
        state: The state.
        root: An empty directory.
    """
    for name, content in state.items():
        if content is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(content)
