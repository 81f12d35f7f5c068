"""A cooperative matrix game of one step for two agents, which get the same reward."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dropin._xla.random import StepRNG
from dropin.env import AdHocEnv, Team
from dropin.games.base import CooperativeGame, Feature, StepOutcome
from dropin.teams.openness import Closed
from dropin.teams.pool import Pool

PAYOFF = ((1.0, 0.0, 0.0), (0.0, 0.0, 2.0), (5.0, 0.0, 0.0))
BEST = (2, 0)
"""The joint action with the largest payoff."""


class State(eqx.Module):
    present: Bool[Array, " slot"]


class Matrix(CooperativeGame):
    """The first agent chooses a row, the second one a column."""

    name: str = eqx.field(static=True, default="matrix")
    actions: tuple[str, ...] = eqx.field(static=True, default=("a", "b", "c"))

    @property
    def horizon(self) -> Int[Array, ""]:
        return jnp.int32(1)

    def validate(self, slots: int) -> None:
        assert slots == 2

    def features(self, slots: int) -> tuple[Sequence[Feature], Sequence[Feature]]:
        return [Feature("role", "who it is", 0.0, 1.0, -1.0)], [Feature("one", "one", 0.0, 1.0, 1)]

    def reset(self, rng: StepRNG, present: Bool[Array, " slot"]) -> State:
        return State(present)

    def spawn(self, rng: StepRNG, state: State, entering: Bool[Array, " slot"]) -> State:
        return state

    def despawn(self, state: State, leaving: Bool[Array, " slot"]) -> State:
        return state

    def step(
        self, rng: StepRNG, state: State, actions: Int[Array, " slot"]
    ) -> tuple[State, StepOutcome]:
        reward = jnp.full(2, jnp.array(PAYOFF)[actions[0], actions[1]])
        zeros = jnp.zeros(2)
        return state, StepOutcome(reward, zeros, jnp.array(True), jnp.array(False), zeros)

    def observe(self, state: State) -> tuple[Float[Array, "slot feature"], Float[Array, " shared"]]:
        return jnp.arange(2.0)[:, None], jnp.ones(1)


def first(view: Int[Array, ""]) -> Int[Array, ""]:
    """Always takes the first action."""
    return jnp.int32(0) + 0 * view


def no_view(
    game: Any, rng: StepRNG, state: State, agent_seed: UInt32[Array, " slot"]
) -> Int[Array, " slot"]:
    """Show the agents nothing."""
    return jnp.zeros(2, jnp.int32)


def matrix_game() -> AdHocEnv[State]:
    """Return an environment with two agents that stay; the second one acts by the type `first`."""
    return AdHocEnv(Matrix(), Team(Pool([first], no_view), Closed(), 2, 2))
