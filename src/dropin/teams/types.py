"""Types: the policies of teammates."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree, UInt32

from dropin.core.errors import unknown

__all__ = [
    "Execute",
    "PolicyInput",
    "SupportsAsType",
    "Type",
    "TypeLike",
    "ViewType",
    "as_type",
    "requested_types",
]


class PolicyInput(eqx.Module):
    """What the types act on in one step, for all actors at once.

    Actors are the agents that types act for: as a rule the teammates, slots 1 on, and, in a
    separate call, the opponents.
    """

    key: PRNGKeyArray
    game: PyTree
    """The game, with its parameters."""
    state: PyTree
    """The state of the game."""
    arrived: Bool[Array, " slot"]
    """Which agents have just arrived."""
    sides: tuple[int, ...] = eqx.field(static=True)
    """The side of each slot."""
    first: int = eqx.field(static=True)
    """The slot of the first actor; the others follow it."""
    agent_seed: UInt32[Array, " actor"]
    """Random bits drawn when each actor entered. A type derives from them what is individual."""
    views: PyTree
    """The state as each actor sees it, a pytree with a leading actor axis."""
    active: Bool[Array, " actor"]
    """Which actors are present and of the type that is being asked. The plans for all other
    actors are not used."""


class Type(eqx.Module):
    """A teammate's policy, fixed while that agent is present.

    A type makes a plan, then the plan is executed. By default a plan is the action itself. Types
    with the same `execute` have their plans merged and executed together.
    """

    name: str = eqx.field(static=True)
    summary: str = eqx.field(static=True)
    """One line that says what the type does."""
    side: int = eqx.field(static=True, default=0, kw_only=True)
    """The side that it plays for: 0 is the learner's, 1 is against it."""

    def init_memory(self, slots: int) -> PyTree:
        """Return the memory of an agent that has just arrived, for every slot; none by default.

        Returns:
            A pytree whose leaves have a leading slot axis.
        """
        del slots
        return ()

    @abstractmethod
    def plan(self, inputs: PolicyInput, memory: PyTree) -> tuple[PyTree, PyTree]:
        """Return what each actor would do if it were of this type, and its memory afterwards.

        Args:
            inputs: What to act on.
            memory: The memory of each actor, with a leading actor axis.

        Returns:
            A plan with a leading actor axis, and the memory in the same form as it came.
        """

    @property
    def execute(self) -> "Execute":
        """The function that turns plans into actions."""
        return _plan_is_action


Execute = Callable[[PolicyInput, PyTree], Int[Array, " actor"]]
"""(inputs, plan of each actor) -> actions"""


def _plan_is_action(inputs: PolicyInput, plan: Int[Array, " actor"]) -> Int[Array, " actor"]:
    del inputs
    return plan


@runtime_checkable
class SupportsAsType(Protocol):
    """Anything that can become a teammate, as a trained agent can."""

    def as_type(self, game: PyTree) -> Type:
        """Return the type of teammate that plays like this in a game."""
        ...


class ViewType(Type):
    """A type given by a function from one agent's view to its action."""

    decide: Callable[[PyTree], Int[Array, ""]]

    def plan(self, inputs: PolicyInput, memory: PyTree) -> tuple[Int[Array, " actor"], PyTree]:
        """Apply the function to each actor's view."""
        return jax.vmap(self.decide)(inputs.views).astype(jnp.int32), memory


def as_type(given: "Type | Callable[[PyTree], Int[Array, '']]") -> Type:
    """Return a type as it is, or make one from a function.

    Args:
        given: A type, or a function from a view to an action. The function's name and the first
            line of its docstring become those of the type.
    """
    if isinstance(given, Type):
        return given
    name = getattr(given, "__name__", type(given).__name__)
    summary = (given.__doc__ or "").strip().partition("\n")[0]
    return ViewType(name=name, summary=summary, decide=given)


TypeLike = str | Type | SupportsAsType | Callable[..., Any]
"""A type, or what can be made one: a name, a trained agent, a function from a view to an action."""


def requested_types(
    default: Mapping[str, Callable[[], Type]],
    registered: Mapping[str, Callable[[], Type]],
    requested: Sequence[TypeLike] | None,
    game: PyTree,
    num_sides: int,
) -> list[Type]:
    """Return the requested types, plus the default pool of any side for which none is requested.

    Args:
        default: The default pool of the game, by name.
        registered: Further types of the game, by name.
        requested: What is requested; None requests the default pool.
        game: The game.
        num_sides: Number of its sides.

    Raises:
        InputError: If a name is unknown.
    """
    named = {**default, **registered}
    given = [as_type(_resolve(named, game, each)) for each in requested or ()]
    if requested is not None and not requested:
        return []
    missing = set(range(num_sides)) - {each.side for each in given}
    rest = [make_type() for make_type in default.values()] if missing else []
    return given + [each for each in rest if each.side in missing]


def _resolve(
    named: Mapping[str, Callable[[], Type]], game: PyTree, given: TypeLike
) -> Type | Callable[..., Any]:
    if isinstance(given, str):
        if given not in named:
            raise unknown("type", given, named)
        return named[given]()
    return given.as_type(game) if isinstance(given, SupportsAsType) else given
