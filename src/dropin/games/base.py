"""What every game provides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dropin.dice import Dice
from dropin.errors import InputError, unknown

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
    shaping: Float[Array, " slot"]
    """The part of the rewards that only guides learning; zero in most games."""
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    happened: Any
    """The game's own account of the step, a pytree."""


@runtime_checkable
class Game(Protocol[State]):
    """The rules alone: states, joint actions, rewards. Everything `jit`s and `vmap`s.

    A state has a boolean `present` [slot]; the content of an absent slot is always the same.
    `OneTeam` answers what is the same in all games in which nobody plays against the learner.
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

    @property
    def shaped(self) -> bool:
        """Whether a part of the rewards is shaping."""
        ...

    @property
    def members(self) -> Sequence[str]:
        """What to call somebody of the learner's side, and then of the side against it, if any."""
        ...

    def sides(self, slots: int) -> tuple[int, ...]:
        """The side of every slot, if the learner's team has so many: 0, then 1 for opponents."""
        ...

    def seats(self, slots: int, limit: Int[Array, ""]) -> Bool[Array, " slot"]:
        """The slots that can be taken if the team has this limit."""
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

    def step(self, dice: Dice, state: State, actions: Int[Array, " slot"]) -> tuple[State, Outcome]:
        """Let everybody present act at once."""
        ...

    def observe(self, state: State) -> tuple[Float[Array, "slot feature"], Float[Array, " shared"]]:
        """Agent features x and shared features u."""
        ...

    @property
    def ratios(self) -> Sequence[str]:
        """The names of what to report of the learner besides its return."""
        ...

    def counts(self, happened: Any) -> Float[Array, "ratio 2"]:
        """The part and the whole of each ratio in a step; over many steps both are added up."""
        ...

    def flaws(self, state: State) -> Bool[Array, " slot"]:
        """Whose numbers cannot be, such as a position that is not finite."""
        ...


class OneTeam(eqx.Module):
    """What is the same in all games in which nobody plays against the learner."""

    @property
    def shaped(self) -> bool:
        """No part of the rewards is shaping."""
        return False

    @property
    def members(self) -> Sequence[str]:
        """All others are mates."""
        return ("mate",)

    def sides(self, slots: int) -> tuple[int, ...]:
        """All are on the learner's side."""
        return (0,) * slots

    def seats(self, slots: int, limit: Int[Array, ""]) -> Bool[Array, " slot"]:
        """The first slots."""
        return jnp.arange(slots) < limit

    @property
    def ratios(self) -> Sequence[str]:
        """Nothing besides the return."""
        return ()

    def counts(self, happened: Any) -> Float[Array, "ratio 2"]:
        """Nothing."""
        del happened
        return jnp.zeros((0, 2))

    def flaws(self, state: Any) -> Bool[Array, " slot"]:
        """Whole numbers are always fine."""
        return jnp.zeros_like(state.present)


Rulebook = TypeVar("Rulebook")


def with_changes(
    game: type[Rulebook], differing: Mapping[str, object], changes: Mapping[str, object]
) -> Rulebook:
    """A game in which some fields differ from the defaults, and then some as a user wants them."""
    settings = [field.name for field in fields(game)]  # pyright: ignore[reportArgumentType]
    for name in changes:
        if name not in settings:
            raise unknown(f"setting of {game.__name__}", name, settings)
    try:
        return game(**{**differing, **changes})
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        given = ", ".join(f"{name}={value!r}" for name, value in changes.items())
        raise InputError(f"There is no {game.__name__} with {given}: {error}.") from None
