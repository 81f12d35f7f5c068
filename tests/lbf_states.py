"""States of level-based foraging in both implementations."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from slow_lbf import SlowLBF

from dropin.games.lbf import State


def state_arrays(slow: SlowLBF) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return agents, objects and time of the slow game in the form of the fast game's state."""
    agents = [[-1, -1, 0] if player is None else player for player in slow.players]
    missing = slow.object_count - len(slow.objects)
    objects = slow.objects + [[-1, -1, 0]] * missing
    return np.array(agents, np.int32), np.array(objects, np.int32), np.array(slow.time, np.int32)


def make_state(
    agents: Sequence[list[int] | None], objects: Sequence[list[int]], time: int = 0
) -> State:
    """Return a state of the fast game with three objects; None is an absent agent."""
    rows = [[-1, -1, 0] if agent is None else agent for agent in agents]
    padded = sorted(objects) + [[-1, -1, 0]] * (3 - len(objects))
    return State(jnp.array(rows, jnp.int32), jnp.array(padded, jnp.int32), jnp.int32(time))


def equal_states(a: State, b: State) -> bool:
    """Return whether two states are equal in every field."""
    return all(
        np.array_equal(getattr(a, field), getattr(b, field))
        for field in ("agents", "objects", "time")
    )
