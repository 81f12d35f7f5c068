"""How docstrings are prepared for the reference pages (an extension of Griffe, see mkdocs.yml)."""

from typing import Any

import griffe

HIDDEN = ("__check_init__", "__post_init__")
"""Methods that only check arguments."""


class Prepare(griffe.Extension):
    """Show doctests as code, and hide methods that nobody calls."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Put doctests into code blocks, which Markdown would take for quotations."""
        if obj.docstring is not None:
            obj.docstring.value = _fence_doctests(obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Hide methods that only check arguments."""
        for name in HIDDEN:
            cls.members.pop(name, None)


def _fence_doctests(docstring: str) -> str:
    """Return a docstring with a fence around each doctest, which ends at an empty line."""
    lines: list[str] = []
    inside = False
    for line in [*docstring.splitlines(), ""]:
        if not inside and line.startswith(">>>"):
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join(lines).rstrip()
