"""What every game provides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int

from dropin.dice import Dice

State = TypeVar("State")


@dataclass(frozen=True)
class Feature:
    """One number that the learner observes."""

    name: str
    meaning: str
    low: float
    high: float
    absent: float
    """What stands there when the agent or object is not."""


class Outcome(eqx.Module):
    """What a joint step led to."""

    rewards: Float[Array, " slot"]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    happened: Any
    """The game's own account of the step, a pytree."""


@runtime_checkable
class Game(Protocol[State]):
    """The rules alone: states, joint actions, rewards. Everything `jit`s and `vmap`s.

    A state has a boolean `present` [slot]; the content of an absent slot is always the same.
    """

    @property
    def name(self) -> str:
        """The name in the catalogue."""
        ...

    @property
    def horizon(self) -> Int[Array, ""]:
        """Steps after which an episode is cut."""
        ...

    @property
    def actions(self) -> Sequence[str]:
        """The names of the actions, in the order of their numbers."""
        ...

    def features(self, slots: int) -> tuple[Sequence[Feature], Sequence[Feature]]:
        """The columns of the agent features x, and the entries of the shared features u."""
        ...

    def check(self, slots: int) -> None:
        """Raise `InputError` when so many agents do not fit into the game."""
        ...

    def start(self, dice: Dice, present: Bool[Array, " slot"]) -> State:
        """The first state of an episode for those present."""
        ...

    def enter(self, dice: Dice, state: State, entering: Bool[Array, " slot"]) -> State:
        """Place newcomers in slots that are free."""
        ...

    def leave(self, state: State, leaving: Bool[Array, " slot"]) -> State:
        """Take leavers out."""
        ...

    def step(self, state: State, actions: Int[Array, " slot"]) -> tuple[State, Outcome]:
        """Let everybody present act at once."""
        ...

    def observe(self, state: State) -> tuple[Float[Array, "slot feature"], Float[Array, " shared"]]:
        """Agent features x and shared features u."""
        ...
