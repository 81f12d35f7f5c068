"""What every game provides."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Protocol, TypeVar, runtime_checkable

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from dropin._xla.random import StepRNG
from dropin.core.arrays import IntScalar, Mask, as_float, as_int
from dropin.core.errors import InputError, unknown
from dropin.core.metrics import Mean
from dropin.core.observation import Feature

__all__ = [
    "CooperativeGame",
    "Feature",
    "Game",
    "GameState",
    "StepOutcome",
    "StepRNG",
    "as_float",
    "as_int",
    "make_preset",
]


@runtime_checkable
class GameState(Protocol):
    """What every state of a game has."""

    @property
    def present(self) -> Bool[Array, " slot"]:
        """Which slots hold an agent."""
        ...


State = TypeVar("State", bound=GameState)


class StepOutcome(eqx.Module):
    """What a joint step led to."""

    rewards: Float[Array, " slot"]
    shaping: Float[Array, " slot"]
    """The part of the rewards that only guides learning; zero in most games."""
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    events: PyTree
    """The game's own record of the step, a pytree."""


@runtime_checkable
class Game(Protocol[State]):
    """The rules alone: states, joint actions, rewards. Every method works under `jit` and `vmap`.

    A state has a boolean `present` [slot]; the content of an absent slot is always the same.
    `CooperativeGame` implements what is the same in all games without opponents.
    """

    @property
    def name(self) -> str:
        """The name by which the game is registered."""
        ...

    @property
    def horizon(self) -> Int[Array, ""]:
        """Number of steps after which an episode is truncated."""
        ...

    @property
    def actions(self) -> Sequence[str]:
        """The names of the actions, in the order of their numbers."""
        ...

    @property
    def has_shaping(self) -> bool:
        """Whether a part of the rewards is shaping."""
        ...

    @property
    def side_names(self) -> Sequence[str]:
        """What to call an agent of the learner's side and, if there is one, of the other side."""
        ...

    def sides(self, slots: int) -> tuple[int, ...]:
        """Return the side of every slot if the learner's team has `slots` slots.

        Returns:
            0 for each slot of the learner's side, then 1 for each slot of the opponents.
        """
        ...

    def usable_slots(self, slots: int, limit: IntScalar) -> Mask:
        """Return which slots may be occupied if the team has this limit.

        Args:
            slots: Number of slots of the learner's team.
            limit: The team limit.
        """
        ...

    def features(self, slots: int) -> tuple[Sequence[Feature], Sequence[Feature]]:
        """Return the columns of the agent features x and the entries of the shared features u."""
        ...

    def validate(self, slots: int) -> None:
        """Raise `InputError` when this many agents do not fit into the game."""
        ...

    def reset(self, rng: StepRNG, present: Bool[Array, " slot"]) -> State:
        """Return the first state of an episode.

        Args:
            rng: Random numbers of this step.
            present: Which slots hold an agent from the start.
        """
        ...

    def spawn(self, rng: StepRNG, state: State, entering: Bool[Array, " slot"]) -> State:
        """Place newcomers.

        Args:
            rng: Random numbers of this step.
            state: The state.
            entering: Which slots get a newcomer; they are free.
        """
        ...

    def despawn(self, state: State, leaving: Bool[Array, " slot"]) -> State:
        """Remove agents that leave.

        Args:
            state: The state.
            leaving: Which slots are left.
        """
        ...

    def step(
        self, rng: StepRNG, state: State, actions: Int[Array, " slot"]
    ) -> tuple[State, StepOutcome]:
        """Let all agents that are present act at once.

        Args:
            rng: Random numbers of this step.
            state: The state.
            actions: An action for each slot; those of empty slots have no effect.

        Returns:
            The state after the step, and what the step led to.
        """
        ...

    def observe(self, state: State) -> tuple[Float[Array, "slot feature"], Float[Array, " shared"]]:
        """Return the agent features x and the shared features u."""
        ...

    def metrics(self, events: PyTree) -> Mapping[str, Mean]:
        """Return what to report of the learner in a step besides its return, by name."""
        ...


class CooperativeGame(eqx.Module):
    """What is the same in all games without opponents."""

    @property
    def has_shaping(self) -> bool:
        """No part of the rewards is shaping."""
        return False

    @property
    def side_names(self) -> Sequence[str]:
        """All others are mates."""
        return ("mate",)

    def sides(self, slots: int) -> tuple[int, ...]:
        """Return the learner's side for every slot."""
        return (0,) * slots

    def usable_slots(self, slots: int, limit: IntScalar) -> Mask:
        """Return the first `limit` slots."""
        return limit > np.arange(slots)

    def metrics(self, events: PyTree) -> Mapping[str, Mean]:
        """Report nothing besides the return."""
        del events
        return {}


GameT = TypeVar("GameT")


def make_preset(
    game: type[GameT], preset: Mapping[str, object], changes: Mapping[str, object]
) -> GameT:
    """Make a game from its defaults, a preset and a user's changes.

    Args:
        game: The class of the game.
        preset: Fields in which the rules differ from the defaults.
        changes: Fields in which the user wants it to differ from the rules.

    Raises:
        InputError: If there is no such field, or a value cannot be used.
    """
    settings = [field.name for field in fields(game)]  # pyright: ignore[reportArgumentType]
    for name in changes:
        if name not in settings:
            raise unknown(f"setting of {game.__name__}", name, settings)
    try:
        return game(**{**preset, **changes})
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        given = ", ".join(f"{name}={value!r}" for name, value in changes.items())
        raise InputError(f"There is no {game.__name__} with {given}: {error}.") from None
