"""Weights of learned types: files in the game's folder, read when they are needed.

The recipes of the zoo make them, see `dropin zoo list`.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from dropin.core.arrays import from_arrays, shapes_of
from dropin.core.errors import InputError
from dropin.core.files import read_arrays

__all__ = ["load_weights"]

Tree = TypeVar("Tree")


@cache
def load_weights(path: Path, name: str, build: Callable[[], Tree]) -> Tree:
    """Load a network.

    Args:
        path: The safetensors file.
        name: What the file has to hold, as `lbf/H5`.
        build: Makes a network of the same shapes.

    Raises:
        InputError: If the file is missing, damaged or holds something else.
    """
    try:
        arrays, about = read_arrays(path)
        if about.get("name") != name:
            raise InputError(f"{path} holds something else than {name}.")
        return from_arrays(shapes_of(build), arrays, path)
    except InputError as error:
        raise InputError(
            f"The weights of {name} are missing or damaged ({str(error).rstrip('.')}): make them"
            f" again with: dropin zoo train {name} --install"
        ) from None
