"""A game of one step for two, who get the same."""

import equinox as eqx
import jax
import jax.numpy as jnp

from dropin.adhoc import AdHoc, Team
from dropin.games.base import Feature, OneTeam, Outcome
from dropin.teams.openness import Closed
from dropin.teams.pool import Pool

PAYOFF = ((1.0, 0.0, 0.0), (0.0, 0.0, 2.0), (5.0, 0.0, 0.0))
BEST = (2, 0)
"""What the two should do."""


class State(eqx.Module):
    present: jax.Array


class Matrix(OneTeam):
    """The first agent chooses a row, the second one a column."""

    name: str = eqx.field(static=True, default="matrix")
    actions: tuple[str, ...] = eqx.field(static=True, default=("a", "b", "c"))

    @property
    def horizon(self):
        return jnp.int32(1)

    def check(self, slots):
        assert slots == 2

    def features(self, slots):
        return [Feature("role", "who it is", 0.0, 1.0, -1.0)], [Feature("one", "one", 1.0, 1.0, 1)]

    def start(self, dice, present):
        return State(present)

    def enter(self, dice, state, entering):
        return state

    def leave(self, state, leaving):
        return state

    def step(self, dice, state, actions):
        reward = jnp.full(2, jnp.array(PAYOFF)[actions[0], actions[1]])
        nothing = jnp.zeros(2)
        return state, Outcome(reward, nothing, jnp.array(True), jnp.array(False), nothing)

    def observe(self, state):
        return jnp.arange(2.0)[:, None], jnp.ones(1)


def first(view):
    """Always the first action."""
    return jnp.int32(0) + 0 * view


def matrix_game():
    """Two agents for good; a type stands for either if it is not under control."""
    pool = Pool([first], lambda dice, state, character: jnp.zeros(2, jnp.int32))
    return AdHoc(Matrix(), Team(pool, Closed(), 2, 2))
