"""The files of the web page, read once: no name from a browser reaches the file system."""

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["STATIC", "Asset", "load_assets"]

STATIC = Path(__file__).parent / "static"
"""Where the files of the web page are."""
_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """A file of the web page."""

    content: bytes
    media_type: str
    tag: str
    """Changes with the content."""


def load_assets(directory: Path = STATIC) -> Mapping[str, Asset]:
    """Return the files of the web page by their path within it.

    Args:
        directory: Where they are.
    """
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            guessed = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            name = path.relative_to(directory).as_posix()
            found[name] = Asset(content, guessed or "application/octet-stream", tag)
    return found
