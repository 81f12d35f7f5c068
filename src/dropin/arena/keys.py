"""Which keys stand for which actions, by the names of the actions."""

from collections.abc import Mapping, Sequence

__all__ = ["default_action", "keys_of"]

_KEYS: Mapping[str, tuple[str, ...]] = {
    "none": (".",),
    "stay": (".",),
    "nothing": (".",),
    "north": ("ArrowUp", "w"),
    "up": ("ArrowUp", "w"),
    "south": ("ArrowDown", "s"),
    "down": ("ArrowDown", "s"),
    "west": ("ArrowLeft", "a"),
    "left": ("ArrowLeft", "a"),
    "east": ("ArrowRight", "d"),
    "right": ("ArrowRight", "d"),
    "load": (" ", "Enter"),
    "shoot": (" ", "Enter"),
    "turn left": ("q",),
    "turn right": ("e",),
}
"""Names of keys as browsers give them."""
_IDLE = ("none", "stay", "nothing", "noop", "wait")


def keys_of(actions: Sequence[str]) -> dict[str, int]:
    """Return the number of the action for each key.

    The number keys stand for the actions in their order, in every game.

    Args:
        actions: The names of the game's actions.
    """
    keys = {str(number): number for number in range(min(len(actions), 10))}
    for number, name in enumerate(actions):
        for key in _KEYS.get(name, ()):
            keys.setdefault(key, number)
    return keys


def default_action(actions: Sequence[str]) -> int:
    """Return the action of somebody who does nothing: the one that is called so, or the first.

    Args:
        actions: The names of the game's actions.
    """
    return next((number for number, name in enumerate(actions) if name in _IDLE), 0)
