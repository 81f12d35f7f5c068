"""Errors whose message is one clear sentence for the user."""

import difflib
from collections.abc import Iterable

__all__ = [
    "InputError",
    "MissingExtraError",
    "StoppedError",
    "StorageError",
    "did_you_mean",
    "unknown",
]


class InputError(ValueError):
    """Input that cannot be used. The message names it and says what can be used instead."""


class StoppedError(RuntimeError):
    """Work had to stop. The message says why, what is kept, and how to continue."""


class StorageError(StoppedError):
    """Work had to stop, since files could not be read or written; they may be back later."""


class MissingExtraError(ImportError):
    """A missing optional package. The message says how to install it.

    Args:
        purpose: What the package is needed for, as the start of a sentence.
        extra: The extra of Dropin that installs it.
    """

    def __init__(self, purpose: str, extra: str):
        super().__init__(f"{purpose} needs an optional part: pip install 'dropin-rl[{extra}]'.")


def unknown(kind: str, name: object, allowed: Iterable[str]) -> InputError:
    """Return the error for an unknown name, with the nearest known one.

    Args:
        kind: What the name is of, as "game".
        name: The unknown name.
        allowed: The known names.
    """
    names = [str(each) for each in allowed]
    hint = did_you_mean(name, names)
    return InputError(f"Unknown {kind} {name!r}: it can be {', '.join(names)}{hint}")


def did_you_mean(name: object, allowed: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest known one, or a full stop.

    Args:
        name: The unknown name.
        allowed: The known names.
    """
    names = {each.lower(): each for each in allowed}
    near = difflib.get_close_matches(str(name).lower(), names, n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else "."
