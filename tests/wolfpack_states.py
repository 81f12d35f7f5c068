"""Convert states of Wolfpack between both implementations, and make them by hand."""

import jax.numpy as jnp
import numpy as np
from slow_wolfpack import SlowWolfpack

from dropin.games.wolfpack import State

FIELDS = ("hunters", "prey", "facing", "captured", "time")


def rows_of(slow: SlowWolfpack) -> tuple[np.ndarray, ...]:
    """Return the fields of the slow game as the fast game's state has them."""
    hunters = [(-1, -1) if cell is None else cell for cell in slow.hunters]
    return (
        np.array(hunters, np.int32),
        np.array(slow.prey, np.int32),
        np.array(slow.facing, np.int32),
        np.array(slow.captured),
        np.array(slow.time, np.int32),
    )


def state_of(rows) -> State:
    """Make a state from its fields, as `rows_of` returns them."""
    return State(**dict(zip(FIELDS, rows, strict=True)), memory=())


def state(hunters, prey, facing=None, captured=None, time=0) -> State:
    """Make a state from cells; None is an absent hunter."""
    return State(
        hunters=jnp.array([(-1, -1) if cell is None else cell for cell in hunters], jnp.int32),
        prey=jnp.array(prey, jnp.int32),
        facing=jnp.array(facing or [0] * len(prey), jnp.int32),
        captured=jnp.array(captured or [False] * len(prey)),
        time=jnp.int32(time),
        memory=(),
    )
