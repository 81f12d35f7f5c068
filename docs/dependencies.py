"""Write `dependencies.md`: what each extra installs, with versions and licences, from metadata.

Run it in an environment with all extras: `python docs/dependencies.py`.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path(__file__).with_name("dependencies.md")
PERMISSIVE = (
    "Apache", "MIT", "BSD", "ISC", "PSF", "Python Software Foundation", "Unlicense", "CNRI",
    "HPND", "0BSD", "Zlib", "CC0", "MIT-CMU", "BlueOak",
)  # fmt: skip
"""Words of licences that ask for no more than that their text is kept."""
WEAK = ("MPL-2.0", "Mozilla Public License 2.0")
"""Licences that ask for changes to their own files to be published; Dropin changes none."""
KNOWN = {
    "atheris": "Apache-2.0",  # Its metadata has none; the file LICENSE in its wheel says so.
}
_TEXT = """# Dependencies

What `pip install dropin-rl` and each extra install, on Linux with Python 3.11, in the versions of
`constraints.txt`. This page is written from the metadata of the packages by
`python docs/dependencies.py`; a test compares it with them.

Dropin itself is under Apache 2.0. It ships no code of these packages: pip installs them beside it.
Licences are permissive, except for those that are marked with *: the Mozilla Public License asks
that changes to the files of such a package are published, and Dropin changes none.
"""


def requirements(extra: str | None = None) -> list[str]:
    """Return what `pyproject.toml` asks for: always, or for an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project["dependencies"] if extra is None else project["optional-dependencies"][extra]


def extras() -> list[str]:
    """Return the names of the extras."""
    return list(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )


def closure(needs: Iterable[str]) -> set[str]:
    """Return all distributions that requirements lead to here, by their canonical names.

    Args:
        needs: Requirements as `pyproject.toml` has them.
    """
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(each) for each in needs]
    while waiting:
        each = waiting.pop()
        name = canonicalize_name(each.name)
        for extra in ("", *each.extras):
            if (name, extra) in found:
                continue
            found.add((name, extra))
            waiting += _needs(name, extra)
    return {name for name, _ in found if name != "dropin-rl"}


def _needs(name: str, extra: str) -> list[Requirement]:
    if name == "dropin-rl":
        return [Requirement(each) for each in requirements(extra or None)]
    listed = [Requirement(each) for each in distribution(name).requires or ()]
    return [
        each for each in listed if each.marker is None or each.marker.evaluate({"extra": extra})
    ]


@cache
def pinned() -> dict[str, str]:
    """Return the version of each distribution in `constraints.txt`, by its canonical name."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, sign, version = line.partition("==")
        if not sign or not re.fullmatch(r"[A-Za-z0-9._-]+", name + version):
            raise ValueError(f"{line!r} is not of the form name==version.")
        found[canonicalize_name(name)] = version
    return found


def licence(name: str) -> str:
    """Return the licence of a distribution, in a few words."""
    if name in KNOWN:
        return KNOWN[name]
    about = distribution(name).metadata
    (expression,) = about.get_all("License-Expression") or [""]
    (free,) = about.get_all("License") or [""]
    classifiers = [
        each.rpartition(" :: ")[2]
        for each in about.get_all("Classifier") or ()
        if each.startswith("License :: ") and each.count("::") > 1
    ]
    if expression:
        return expression
    if classifiers:
        return ", ".join(classifiers)
    return free.strip().splitlines()[0][:60] if free else "unknown"


def is_compatible(text: str) -> bool:
    """Return whether a package of this licence can be used beside code under Apache 2.0."""
    strong = re.search(r"GPL|SSPL|BUSL|Proprietary|Commons Clause", text)
    return not strong and any(word in text for word in (*PERMISSIVE, *WEAK))


def page() -> str:
    """Return the page."""
    base = closure(requirements())
    parts = [_TEXT, _section("Always", "dropin-rl", base)]
    for extra in extras():
        own = closure(requirements(extra)) - base
        parts.append(_section(extra, f"dropin-rl[{extra}]", own))
    return "\n".join(parts)


def _section(title: str, requirement: str, names: set[str]) -> str:
    rows = ["| package | version | licence |", "|---|---|---|"]
    for name in sorted(names):
        try:
            text = licence(name)
        except PackageNotFoundError:
            text = "not installed here"
        star = " *" if any(word in text for word in WEAK) else ""
        rows.append(f"| {name} | {pinned().get(name, 'not pinned')} | {text}{star} |")
    lead = f"`pip install '{requirement}'`: {len(names)} packages"
    lead += "." if title == "Always" else " more."
    return "\n".join([f"## {title}\n", lead + "\n", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE.name}: {len(pinned())} pinned versions")
    sys.exit(0)
