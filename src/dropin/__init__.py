"""Dropin: open ad hoc teamwork in JAX."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dropin.adhoc import AdHoc, make
    from dropin.errors import InputError
    from dropin.teams.openness import Closed, Durations, Scripted

__version__ = "0.1.0"

_HOMES = {
    "AdHoc": "dropin.adhoc",
    "make": "dropin.adhoc",
    "Closed": "dropin.teams.openness",
    "Durations": "dropin.teams.openness",
    "Scripted": "dropin.teams.openness",
    "InputError": "dropin.errors",
}

__all__ = ["AdHoc", "Closed", "Durations", "InputError", "Scripted", "make"]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are used, so that `import dropin` is quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dropin' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
