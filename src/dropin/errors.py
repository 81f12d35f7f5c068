"""Wrong input, said in one sentence."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave cannot be used; the message names it and says what can."""


class StoppedError(RuntimeError):
    """Work had to stop; the message says why, what is kept, and how to go on."""


class MissingExtraError(ImportError):
    """An optional package is needed; the message says how to install it."""

    def __init__(self, purpose: str, extra: str):
        super().__init__(f"{purpose} needs an optional part: pip install 'dropin-rl[{extra}]'.")


def unknown(kind: str, name: object, allowed: Iterable[str]) -> InputError:
    """The error for a name that is not one of `allowed`, with the nearest one that is."""
    names = [str(each) for each in allowed]
    near = difflib.get_close_matches(str(name).lower(), [each.lower() for each in names], n=1)
    hint = ""
    if near:
        hint = f"; did you mean {next(each for each in names if each.lower() == near[0])!r}?"
    return InputError(f"Unknown {kind} {name!r}: it can be {', '.join(names)}{hint or '.'}")
