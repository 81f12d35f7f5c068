"""What the learner sees and what a step returns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, PyTree

from dropin.core.config import misfit
from dropin.core.errors import InputError, shown

__all__ = ["Feature", "Interface", "Observation", "TimeStep"]


class Observation(eqx.Module):
    """What the learner sees. Slot 0 is the learner itself."""

    agents: Float[Array, "*env slot feature"]
    """Agent features x."""
    shared: Float[Array, "*env shared"]
    """Shared features u."""
    present: Bool[Array, "*env slot"]
    """Which slots hold an agent."""
    arrived: Bool[Array, "*env slot"]
    """Which agents were not there one step ago: the only sign by which memory is cleared. At the
    start of an episode this is everybody who is present."""
    sides: tuple[int, ...] = eqx.field(static=True)
    """The side of each slot: 0 is the learner's, 1 is against it."""


class TimeStep(eqx.Module):
    """The result of one environment step."""

    observation: Observation
    """What to act on next. After the end of an episode it is the first of the next episode."""
    final_observation: Observation
    """The observation before the automatic reset; equal to `observation` within an episode."""
    rewards: Float[Array, "*env slot"]
    """The game's reward for the agent in each slot."""
    shaping: Float[Array, "*env slot"]
    """The part of the rewards that only guides learning."""
    terminated: Bool[Array, "*env"]
    truncated: Bool[Array, "*env"]
    actions: Int[Array, "*env slot"]
    """The joint action, as chosen."""
    acted: Bool[Array, "*env slot"]
    """Which agents acted: those present before the step."""
    removed: Bool[Array, "*env slot"]
    """Which agents the game removed in this step. All others who leave do so by openness."""
    type_changed: Bool[Array, "*env slot"]
    """Which agents stay, but are of another type from the next step on. The learner is not told:
    this is for measurements only."""
    events: PyTree
    """The game's own record of the step."""

    @property
    def reward(self) -> Float[Array, "*env"]:
        """The learner's reward."""
        return self.rewards[..., 0]

    @property
    def done(self) -> Bool[Array, "*env"]:
        """Whether the episode ended."""
        return self.terminated | self.truncated


@dataclass(frozen=True)
class Feature:
    """One number that the learner observes."""

    name: str
    description: str
    low: float
    high: float
    absent: float
    """The value it has when the agent or object is not there."""


@runtime_checkable
class _HasFeatures(Protocol):
    """The part of a game that an interface is made from."""

    @property
    def name(self) -> str: ...
    @property
    def actions(self) -> Sequence[str]: ...
    @property
    def side_names(self) -> Sequence[str]: ...
    def features(self, slots: int) -> tuple[Sequence[Feature], Sequence[Feature]]: ...


MAX_SIDES = 100
"""Sides of a game, at most: networks have a part for each."""
_KINDS = {
    "game": str,
    "agent_features": tuple[str, ...],
    "shared_features": tuple[str, ...],
    "actions": tuple[str, ...],
    "absent_values": tuple[float, ...],
    "num_sides": int,
}


@dataclass(frozen=True)
class Interface:
    """The names of everything a learner observes and can do in a game.

    A learner trained in one environment fits every environment with an equal interface.
    """

    game: str
    """Name of the game."""
    agent_features: tuple[str, ...]
    shared_features: tuple[str, ...]
    actions: tuple[str, ...]
    absent_values: tuple[float, ...] = field(default=(), compare=False)
    """The value of each agent feature for an agent that is not there."""
    num_sides: int = field(default=1, compare=False)

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            if expected := misfit(getattr(self, name), kind):
                words = name.replace("_", " ")
                raise InputError(f"The {words} {shown(getattr(self, name))} is not {expected}.")
        if not 1 <= self.num_sides <= MAX_SIDES:
            raise InputError(f"A game has 1 to {MAX_SIDES} sides, not {self.num_sides}.")

    @classmethod
    def from_game(cls, game: _HasFeatures, slots: int = 2) -> "Interface":
        """Return the interface of a game.

        Args:
            game: The game.
            slots: A number of slots of the learner's team; the result is the same for any.
        """
        agents, shared = game.features(slots)
        return cls(
            game=game.name,
            agent_features=tuple(each.name for each in agents),
            shared_features=tuple(each.name for each in shared),
            actions=tuple(game.actions),
            absent_values=tuple(float(each.absent) for each in agents),
            num_sides=len(game.side_names),
        )
