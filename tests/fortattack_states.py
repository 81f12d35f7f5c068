"""States of FortAttack for tests."""

import jax.numpy as jnp
import numpy as np

from dropin.games.fortattack import State

FIELDS = ("x", "y", "vx", "vy", "heading")
UP, DOWN = np.pi / 2, 1.5 * np.pi


def state(guards, attackers, time=0, speeds=None, present=None):
    """Everybody as (x, y, heading); speeds as (vx, vy)."""
    rows = np.array([*guards, *attackers], np.float32)
    speeds = np.zeros((len(rows), 2)) if speeds is None else np.array(speeds)
    here = np.ones(len(rows), bool) if present is None else np.array(present)
    numbers = np.concatenate([rows[:, :2], speeds, rows[:, 2:]], axis=1) * here[:, None]
    return State(
        *jnp.asarray(numbers.T, jnp.float32),
        present=jnp.asarray(here),
        time=jnp.int32(time),
        sides=(0,) * len(guards) + (1,) * len(attackers),
    )


def random_states(rules, number, seed, guards=3, attackers=3):
    """Crowded states: all are near one another, at any speed and heading; some are absent."""
    random = np.random.default_rng(seed)
    slots = guards + attackers
    half = (0.8, 1.0) if rules == "paper" else (1.0, 0.8)
    for _ in range(number):
        middle = random.uniform(-1, 1, 2) * half
        size = random.choice([0.1, 0.4, 1.0])
        rows = np.empty((slots, 3))
        rows[:, :2] = np.clip(middle + size * random.uniform(-1, 1, (slots, 2)), *_box(half))
        rows[:, 2] = random.uniform(0, 2 * np.pi, slots)
        present = random.random(slots) < 0.9
        present[0] = True
        yield state(
            rows[:guards],
            rows[guards:],
            time=int(random.choice([0, 50, 99, 199])),
            speeds=random.uniform(-1.5, 1.5, (slots, 2)),
            present=present,
        )


def _box(half):
    return -np.array(half) - 0.1, np.array(half) + 0.1
