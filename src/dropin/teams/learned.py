"""Weights of learned teammates and prey: files beside the types, read when they are needed.

They are made by the recipes of the zoo, see `dropin zoo list`.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import equinox as eqx

from dropin.errors import InputError
from dropin.files import read_arrays
from dropin.weights import from_arrays

Tree = TypeVar("Tree")


def weights_path(name: str) -> Path:
    """Where the weights called `game/name` are."""
    game, _, which = name.partition("/")
    return Path(__file__).parent / game / "weights" / f"{which}.safetensors"


@cache
def learned(name: str, build: Callable[[], Tree]) -> Tree:
    """A network with the weights called `game/name`; `build` makes one like it."""
    path = weights_path(name)
    try:
        arrays, about = read_arrays(path)
        if about.get("name") != name:
            raise InputError(f"{path} holds something else than {name}.")
        return from_arrays(eqx.filter_eval_shape(build), arrays, path)
    except InputError as error:
        raise InputError(
            f"The weights of {name} are missing or damaged ({str(error).rstrip('.')}): make them"
            f" again with: dropin zoo train {name} --install"
        ) from None
