"""States of level-based foraging in both implementations."""

import jax.numpy as jnp
import numpy as np
from slow_lbf import SlowLBF

from dropin.games.lbf import State


def rows_of(slow: SlowLBF) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Agents, objects and time of the slow game, as the fast game's state has them."""
    agents = [[-1, -1, 0] if player is None else player for player in slow.players]
    missing = slow.object_count - len(slow.objects)
    objects = slow.objects + [[-1, -1, 0]] * missing
    return np.array(agents, np.int32), np.array(objects, np.int32), np.array(slow.time, np.int32)


def state(agents, objects, time=0) -> State:
    """A position by hand; None is somebody absent."""
    rows = [[-1, -1, 0] if agent is None else agent for agent in agents]
    things = sorted(objects) + [[-1, -1, 0]] * (3 - len(objects))
    return State(jnp.array(rows, jnp.int32), jnp.array(things, jnp.int32), jnp.int32(time))


def same(a: State, b: State) -> bool:
    return all(
        np.array_equal(getattr(a, field), getattr(b, field))
        for field in ("agents", "objects", "time")
    )
