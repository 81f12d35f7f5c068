"""Errors whose message is one clear sentence for the user."""

import difflib
from collections.abc import Iterable

__all__ = [
    "InputError",
    "MissingExtraError",
    "StoppedError",
    "StorageError",
    "did_you_mean",
    "shown",
    "unknown",
]

_SHOWN = 80
"""Characters of a wrong value that a message repeats."""


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
    return InputError(f"Unknown {kind} {shown(name)}: it can be {', '.join(names)}{hint}")


def shown(value: object, longest: int = _SHOWN) -> str:
    """Return a value as a message repeats it: a long one is cut off.

    Args:
        value: The value.
        longest: Characters that are shown, at most.
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not write numbers of very many digits.
        text = f"{type(value).__name__} with a number of very many digits"
    return text if len(text) <= longest else f"{text[:longest]}…"


def did_you_mean(name: object, allowed: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest known one, or a full stop.

    Args:
        name: The unknown name.
        allowed: The known names.
    """
    names = {each.lower(): each for each in allowed}
    near = difflib.get_close_matches(str(name)[:_SHOWN].lower(), names, n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else "."
