"""The cards of the types and prey that come with the package: how they were made and measured."""

from pathlib import Path
from typing import TypedDict

from dropin.core.config import PlainDict, misfit
from dropin.core.errors import InputError
from dropin.core.files import read_json

__all__ = ["card_path", "read_card", "read_card_file"]


class _Measurement(TypedDict):
    quantity: str
    policy: str
    mean: float
    low: float
    high: float
    n: int


class _Settings(TypedDict):
    steps: int


class _Card(TypedDict):
    """What every card has; recipes add more."""

    name: str
    summary: str
    method: str
    seed: int
    sha256: str | None
    settings: _Settings
    measurements: list[_Measurement]


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
    return read_card_file(path) if path.exists() else None


def read_card_file(path: Path) -> PlainDict:
    """Read a card.

    Args:
        path: The file.

    Raises:
        InputError: If it is missing or not a card.
    """
    card = read_json(path, nan=True)
    if expected := misfit(card, _Card):
        raise InputError(f"{path} is not a card: it is not {expected}.")
    return card
