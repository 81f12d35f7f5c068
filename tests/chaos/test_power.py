"""The model of a disk without power, by hand-worked cases."""

from pathlib import Path

import pytest

from chaos.disk import Operation
from chaos.power import PoweredDisk

ROOT = Path("/disk")


def operations(*words):
    """`create a`, `write a 12`, `rename a b` and so on, below the root."""
    found = []
    for line in words:
        kind, name, *more = line.split()
        path = str(ROOT / name) if name != "." else str(ROOT)
        if kind == "rename":
            found.append(Operation(kind, path, target=str(ROOT / more[0])))
        else:
            found.append(Operation(kind, path, data="".join(more).encode()))
    return found


SAFE = ("create a", "write a 1234", "sync a", "rename a b", "sync .")


@pytest.mark.parametrize(
    ("words", "loss", "left"),
    [
        (SAFE, "nothing", {"b": b"1234"}),
        (SAFE[:4], "nothing", {}),
        (SAFE[:4], "names", {"b": b"1234"}),
        (SAFE[:3], "names", {"a": b"1234"}),
        (("create a", "write a 1234"), "names", {"a": b""}),
        (("create a", "write a 1234"), "torn", {"a": b"12"}),
        (("create a", "write a 12", "sync a", "sync .", "write a 3456"), "torn", {"a": b"1234"}),
        (("create a", "write a 12", "sync a", "sync .", "write a 34"), "zeros", {"a": b"12\0\0"}),
        ((*SAFE, "unlink b"), "nothing", {"b": b"1234"}),
        ((*SAFE, "unlink b"), "names", {}),
        (("mkdir d", "create d/a", "sync d/a", "sync d"), "nothing", {}),
        (("mkdir d", "create d/a", "sync d", "sync ."), "nothing", {"d": None, "d/a": b""}),
        ((*SAFE, "create c", "write c 9", "sync c", "rename c b"), "nothing", {"b": b"1234"}),
    ],
)  # fmt: skip
def test_only_what_was_synced_is_certain(words, loss, left):
    assert PoweredDisk(ROOT, operations(*words)).after(loss) == left


def test_at_random_every_part_of_what_was_not_synced_comes_up():
    disk = PoweredDisk(ROOT, operations(*SAFE, "create c", "write c 12", "unlink b"))
    states = {tuple(sorted(disk.after("random", seed).items())) for seed in range(200)}
    kept = [(), (("b", b"1234"),)]
    made = [(), *((("c", content),) for content in (b"", b"1", b"12"))]
    assert states == {(*one, *two) for one in kept for two in made}
