"""Types: the policies of teammates."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt32


class Scene(eqx.Module):
    """What the types have to go by in one step, for all actors at once.

    Actors are the agents that types have to answer for: as a rule the teammates, slots 1 on, and
    the opponents apart from them.
    """

    key: PRNGKeyArray
    state: Any
    """The state of the game."""
    arrived: Bool[Array, " slot"]
    """Who has just arrived."""
    sides: tuple[int, ...] = eqx.field(static=True)
    """The side of each slot."""
    first: int = eqx.field(static=True)
    """The slot of the first actor; the others follow it."""
    character: UInt32[Array, " actor"]
    """Random bits drawn at each actor's entry; a type takes from them what is individual."""
    views: Any
    """The same scene seen by each actor, a pytree with a leading actor axis."""
    asked: Bool[Array, " actor"]
    """Who is there and of the type that is asked: what it says of others is not used."""


class Type(eqx.Module):
    """A teammate's policy, fixed while that agent is present.

    A type plans, then the plan is carried out. Here a plan is the action itself. Types that share
    `carry_out` make other plans, and the pool carries out only those of the types that are there.
    """

    name: str = eqx.field(static=True)
    about: str = eqx.field(static=True)
    """One line that says what the type does."""
    side: int = eqx.field(static=True, default=0, kw_only=True)
    """The side that it plays for: 0 is the learner's, 1 is against it."""

    def start(self, slots: int) -> Any:
        """The memory of somebody who has just arrived, for every slot; none by default."""
        del slots
        return ()

    @abstractmethod
    def plan(self, scene: Scene, memory: Any) -> tuple[Any, Any]:
        """What each actor would do if it were of this type, and its memory afterwards."""

    @property
    def carry_out(self) -> "CarryOut":
        """How plans become actions; types with the same one have theirs carried out together."""
        return _at_once


CarryOut = Callable[[Scene, Any], Int[Array, " actor"]]
"""(scene, plan of each actor) -> actions"""


def _at_once(scene: Scene, plan: Int[Array, " actor"]) -> Int[Array, " actor"]:
    """The plan is the action."""
    del scene
    return plan


@runtime_checkable
class Recruit(Protocol):
    """Somebody who can be made a teammate, as a trained agent can."""

    def as_type(self, game: Any) -> Type:
        """The type of teammate that plays like this in a game."""
        ...


class ViewType(Type):
    """A type given by a function from one agent's view to its action."""

    decide: Callable[[Any], Int[Array, ""]]

    def plan(self, scene: Scene, memory: Any) -> tuple[Int[Array, " actor"], Any]:
        """The function's answer for each actor."""
        return jax.vmap(self.decide)(scene.views).astype(jnp.int32), memory


def as_type(given: "Type | Callable[[Any], Int[Array, '']]") -> Type:
    """A type as it is, or a function made one; its name and first line of help are kept."""
    if isinstance(given, Type):
        return given
    name = getattr(given, "__name__", type(given).__name__)
    about = (given.__doc__ or "").strip().partition("\n")[0]
    return ViewType(name=name, about=about, decide=given)
