"""The layout of arrays over ordered pairs of agents."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

__all__ = ["other_rows", "pairs_by_slots", "swap_pairs"]


def other_rows(rows: Float[Array, "slot *n"]) -> Float[Array, "other slot *n"]:
    """Return, for each slot, the rows of all other slots.

    This is the layout of all arrays over ordered pairs: with n slots there are n - 1 others, so
    that no agent is paired with itself.

    Args:
        rows: One row per slot.

    Returns:
        An array whose entry [o, j] is the row of slot (j + o + 1) mod n.

    >>> other_rows(jnp.array([0.0, 1.0, 2.0])).tolist()
    [[1.0, 2.0, 0.0], [2.0, 0.0, 1.0]]
    """
    slots = rows.shape[0]
    # The rows over and over again, cut into pieces that are one longer than a round.
    repeated = jnp.broadcast_to(rows[None], (slots + 1, *rows.shape))
    return repeated.reshape(slots, slots + 1, *rows.shape[1:])[1:, :slots]


def swap_pairs(pairs: Float[Array, "other slot *n"]) -> Float[Array, "other slot *n"]:
    """Swap the two agents of every ordered pair.

    Args:
        pairs: Entries of ordered pairs (j, k), in the layout of `other_rows`.

    Returns:
        An array in the same layout with the entry of (k, j) at the place of (j, k).
    """
    others, slots, *rest = pairs.shape
    swapped = pairs[::-1]
    # Entry [o, j] is swapped[o, (j + o + 1) mod n]: rows of two rounds, of which each piece starts
    # one entry later.
    rounds = jnp.concatenate([swapped, swapped], axis=1).reshape(2 * others * slots, *rest)
    padding = [(0, slots)] + [(0, 0)] * len(rest)
    return jnp.pad(rounds[1:], padding).reshape(others, 2 * slots + 1, *rest)[:, :slots]


def pairs_by_slots(pairs: Float[Array, "other slot *n"]) -> Float[Array, "slot slot *n"]:
    """Return the entries of ordered pairs (j, k) at [j, k], with zeros where j is k.

    Args:
        pairs: Entries in the layout of `other_rows`.
    """
    slots, rest = pairs.shape[1], pairs.shape[2:]
    if slots == 1:
        return jnp.zeros((1, 1, *rest), pairs.dtype)
    rows = np.arange(slots)
    other = (rows[None] - rows[:, None]) % slots - 1
    distinct = (other >= 0).reshape(slots, slots, *(1 for _ in rest))
    return jnp.where(distinct, pairs[np.maximum(other, 0), rows[:, None]], 0.0)
