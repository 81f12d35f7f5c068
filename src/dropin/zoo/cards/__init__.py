"""The cards of the weights that come with the package."""

from pathlib import Path
from typing import Any

from dropin.files import read_json


def card_path(name: str) -> Path:
    """Where the card of `game/name` is."""
    return Path(__file__).parent / f"{name}.json"


def read_card(name: str) -> dict[str, Any] | None:
    """The card of `game/name`, if there is one."""
    path = card_path(name)
    return read_json(path) if path.exists() else None
