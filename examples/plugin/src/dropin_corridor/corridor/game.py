"""The rules of the corridor."""

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin.core.errors import InputError
from dropin.core.metrics import Mean
from dropin.games.base import (
    CooperativeGame,
    Feature,
    StepOutcome,
    StepRNG,
    as_int,
    make_preset,
)

__all__ = ["ABSENT", "EAST", "STAY", "WEST", "Corridor", "State", "StepEvents", "make_game"]

STAY, WEST, EAST = range(3)
ABSENT = -1
"""The cell of an absent agent."""


class State(eqx.Module):
    """Where the agents are, and which gates are open."""

    cell: Int[Array, " slot"]
    """The cell of each agent, 0 is the western end; `ABSENT` for an absent one."""
    is_open: Bool[Array, " gate"]
    time: Int[Array, ""]
    """Steps taken in this episode."""

    @property
    def present(self) -> Bool[Array, " slot"]:
        """Which slots hold an agent."""
        return self.cell >= 0


class StepEvents(eqx.Module):
    """What happened in a step."""

    opened_by: Bool[Array, "slot gate"]
    """Which agents stood at which gate when it opened."""


class Corridor(CooperativeGame):
    """Agents walk along a corridor and open its gates, which takes several of them at once.

    A gate opens, and stays open, when at least `agents_per_gate` agents are on its cell after a
    step. Any number of agents fit on a cell, and nobody is in anybody's way.

    | | dtype and shape | content |
    |---|---|---|
    | observation, `agents` | float32 [slot, 1] | cell of each agent, -1 for an absent one |
    | observation, `shared` | float32 [gate] | 1 for each gate that is open, otherwise 0 |
    | actions | int32 [slot] | 0 stay, 1 west, 2 east; a step into a wall is a stay |
    | rewards | float32 [slot] | number of gates that the agent helped to open in this step |
    | terminated | bool [] | all gates are open |
    | truncated | bool [] | `horizon` steps have been taken and a gate is closed |
    """

    length: int = eqx.field(static=True, default=9)
    """Number of cells."""
    gates: int = eqx.field(static=True, default=3)
    """Number of gates, spread evenly from one end to the other."""
    horizon: Int[Array, ""] = eqx.field(converter=as_int, default=30)
    """Number of steps after which an episode is cut."""
    agents_per_gate: Int[Array, ""] = eqx.field(converter=as_int, default=2)
    """Number of agents that a gate takes to open."""

    def __check_init__(self) -> None:
        for name in ("length", "gates", "horizon", "agents_per_gate"):
            if int(getattr(self, name)) < 1:
                raise InputError(f"The corridor's {name} has to be at least 1.")
        if self.gates > self.length:
            raise InputError(
                f"A corridor of {self.length} cells has no room for {self.gates} gates."
            )

    @property
    def name(self) -> str:
        """The name by which the game is registered."""
        return "corridor"

    @property
    def actions(self) -> Sequence[str]:
        """The names of the actions, in the order of their numbers."""
        return ("stay", "west", "east")

    @property
    def gate_cells(self) -> Int[Array, " gate"]:
        """The cell of each gate."""
        return as_int(np.round(np.linspace(0, self.length - 1, self.gates)))

    def features(self, slots: int) -> tuple[Sequence[Feature], Sequence[Feature]]:
        """Return the columns of the agent features x and the entries of the shared features u."""
        del slots
        cell = Feature("cell", "cell of the agent, 0 is west", 0, self.length - 1, ABSENT)
        return [cell], [
            Feature(f"gate {k + 1}", "whether the gate is open", 0, 1, 0) for k in range(self.gates)
        ]

    def validate(self, slots: int) -> None:
        """Raise `InputError` if this many agents can never open a gate."""
        if slots < int(self.agents_per_gate):
            raise InputError(
                f"A gate takes {int(self.agents_per_gate)} agents, but a team has only {slots}."
            )

    def reset(self, rng: StepRNG, present: Bool[Array, " slot"]) -> State:
        """Close all gates and place the agents."""
        nobody = jnp.full(present.shape, ABSENT, jnp.int32)
        return self.spawn(rng, State(nobody, jnp.zeros(self.gates, bool), jnp.int32(0)), present)

    def spawn(self, rng: StepRNG, state: State, entering: Bool[Array, " slot"]) -> State:
        """Place each newcomer on a random cell."""
        cell = rng.integers(0, self.length - 1, entering.shape[0])
        return State(jnp.where(entering, cell, state.cell), state.is_open, state.time)

    def despawn(self, state: State, leaving: Bool[Array, " slot"]) -> State:
        """Remove agents that leave."""
        return State(jnp.where(leaving, ABSENT, state.cell), state.is_open, state.time)

    def step(
        self, rng: StepRNG, state: State, actions: Int[Array, " slot"]
    ) -> tuple[State, StepOutcome]:
        """Move all agents at once, then open the gates at which enough of them stand."""
        del rng
        move = jnp.where(actions == WEST, -1, jnp.where(actions == EAST, 1, 0))
        cell = jnp.clip(state.cell + move, 0, self.length - 1)
        cell = jnp.where(state.present, cell, ABSENT)
        at_gate = cell[:, None] == self.gate_cells[None]
        opening = (jnp.sum(at_gate, axis=0) >= self.agents_per_gate) & ~state.is_open
        opened_by = at_gate & opening[None]
        following = State(cell, state.is_open | opening, state.time + 1)
        terminated = jnp.all(following.is_open)
        return following, StepOutcome(
            rewards=jnp.sum(opened_by, axis=1).astype(jnp.float32),
            shaping=jnp.zeros(cell.shape),
            terminated=terminated,
            truncated=(following.time >= self.horizon) & ~terminated,
            events=StepEvents(opened_by),
        )

    def observe(self, state: State) -> tuple[Float[Array, "slot 1"], Float[Array, " gate"]]:
        """Return the agent features x and the shared features u, unscaled."""
        return state.cell[:, None].astype(jnp.float32), state.is_open.astype(jnp.float32)

    def metrics(self, events: StepEvents) -> Mapping[str, Mean]:
        """Return the share of the opened gates that the learner helped to open."""
        opened = jnp.sum(jnp.any(events.opened_by, axis=0)).astype(jnp.float32)
        return {"gates_joined": Mean(jnp.sum(events.opened_by[0]).astype(jnp.float32), opened)}


def make_game(rules: str, **settings: object) -> Corridor:
    """Make the game under a set of rules.

    Args:
        rules: `standard` or `long`.
        **settings: Fields of `Corridor` that differ from the rules.
    """
    preset = {"length": 17, "gates": 5, "horizon": 60} if rules == "long" else {}
    return make_preset(Corridor, preset, settings)
