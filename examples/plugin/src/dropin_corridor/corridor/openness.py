"""The relay: every few steps, one teammate is replaced by another."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from dropin.core.errors import InputError
from dropin.games.base import StepRNG, as_int
from dropin.teams.openness import require_one_side

__all__ = ["Relay", "make_relay"]


class Relay(eqx.Module):
    """A full team in which teammates are replaced one after another, slot by slot."""

    every: Int[Array, ""] = eqx.field(converter=as_int, default=8)
    """Steps between two replacements."""

    def __check_init__(self) -> None:
        if int(self.every) < 1:
            raise InputError(f"A relay every {int(self.every)} steps is too often: at least 1.")

    def validate(self, sides: tuple[int, ...], limit: int) -> None:
        """Raise `InputError` if there are opponents."""
        del limit
        require_one_side("The relay", sides)

    def max_agents_per_episode(self, slots: int, horizon: int) -> int:
        """Count the first team and every replacement."""
        return slots + horizon // int(self.every)

    def reset(
        self, rng: StepRNG, usable_slots: Bool[Array, " slot"]
    ) -> tuple[Int[Array, ""], Bool[Array, " slot"]]:
        """Fill the team; the state is the number of steps taken."""
        del rng
        return jnp.int32(0), usable_slots

    def step(
        self,
        rng: StepRNG,
        state: Int[Array, ""],
        present: Bool[Array, " slot"],
        usable_slots: Bool[Array, " slot"],
        events: Any,
    ) -> tuple[Int[Array, ""], Bool[Array, " slot"], Bool[Array, " slot"]]:
        """Every few steps, replace the teammate whose turn it is."""
        del rng, events
        time = state + 1
        teammates = jnp.sum(usable_slots) - 1
        turn = 1 + (time // self.every - 1) % teammates
        due = (time % self.every == 0) & (jnp.arange(len(present)) == turn)
        return time, due & present, due


def make_relay(rules: str, game: Any, slots: int) -> Relay:
    """Return the relay, which is the same under all rules, in all games and for all teams."""
    del rules, game, slots
    return Relay()
