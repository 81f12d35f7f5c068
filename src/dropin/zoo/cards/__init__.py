"""The cards of the types and prey that come with the package: how they were made and measured."""

from pathlib import Path

from dropin.core.config import PlainDict
from dropin.core.files import read_json

__all__ = ["card_path", "read_card"]


def card_path(name: str) -> Path:
    """Return the path of a card in the package.

    Args:
        name: `game/name`, as `lbf/H5`.
    """
    return Path(__file__).parent / f"{name}.json"


def read_card(name: str) -> PlainDict | None:
    """Read a card of the package; None if there is none.

    Args:
        name: `game/name`, as `lbf/H5`.
    """
    path = card_path(name)
    return read_json(path) if path.exists() else None
