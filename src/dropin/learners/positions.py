"""Inputs of fixed length: a position for each agent that there could be (paper: appendix E.2).

The learner has the first position. Every other agent is assigned a random free position of its side
on entering and keeps it until it leaves, so that all positions are used in training.
"""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin._xla.random import uniform
from dropin.core.errors import InputError
from dropin.core.observation import Interface, Observation
from dropin.learners.base import LearnerInput
from dropin.learners.common import teammate_action_probs

__all__ = [
    "UNASSIGNED",
    "assign_positions",
    "flat_input_size",
    "flatten_input",
    "from_perspective_of",
    "rows_by_position",
]

UNASSIGNED = -1
"""The position of agents that have none yet."""


def assign_positions(
    positions: Int[Array, " slot"],
    observation: Observation,
    max_agents_per_side: int,
    key: PRNGKeyArray,
) -> Int[Array, " slot"]:
    """Assign free positions to newcomers.

    Args:
        positions: The position of every slot before.
        observation: Who is present, and who has just arrived.
        max_agents_per_side: Number of positions of each side.
        key: A random key, used for nothing else.

    Raises:
        InputError: If a side has more slots than positions.
    """
    sides = observation.sides
    for side in set(sides):
        if sides.count(side) > max_agents_per_side:
            raise InputError(
                f"The learner has input for {max_agents_per_side} agents a side, but here can be"
                f" {sides.count(side)}: train it with"
                f" settings.max_agents_per_side={sides.count(side)}."
            )
    total = max_agents_per_side * (max(sides) + 1)
    index = np.arange(total)
    drawn = uniform(key, (len(sides), total))
    # Agents that were there before the learner have no position yet either.
    new = observation.present & (observation.arrived | (positions == UNASSIGNED))
    settled = observation.present & ~new
    taken = jnp.any(settled[:, None] & (positions[:, None] == index[None]), axis=0) | (index == 0)
    assigned = []
    for slot, side in enumerate(sides):
        if slot == 0:
            assigned.append(jnp.int32(0))
            continue
        free = ~taken & (index // max_agents_per_side == side)
        random_free = jnp.argmax(jnp.where(free, drawn[slot], -1.0))
        own = jnp.where(new[slot], random_free, positions[slot])
        taken = taken | (new[slot] & (index == own))
        assigned.append(own.astype(jnp.int32))
    return jnp.stack(assigned)


def flat_input_size(interface: Interface, max_agents_per_side: int, with_probs: bool) -> int:
    """Return the length of the flat input, without shared features.

    Args:
        interface: The features and actions of the game.
        max_agents_per_side: Number of positions of each side.
        with_probs: Whether predicted action probabilities are part of it.
    """
    total = max_agents_per_side * interface.num_sides
    size = total * len(interface.agent_features)
    return size + with_probs * (total - 1) * len(interface.actions)


def flatten_input(
    inputs: LearnerInput, interface: Interface, max_agents_per_side: int
) -> Float[Array, " flat"]:
    """Concatenate the features of all agents by position, and their action probabilities if any.

    Empty positions hold the game's `absent` values, and -1 in place of probabilities.

    Args:
        inputs: The observation, with positions.
        interface: The features and actions of the game.
        max_agents_per_side: Number of positions of each side.
    """
    total = max_agents_per_side * interface.num_sides
    absent = jnp.array(interface.absent_values)
    parts = [rows_by_position(inputs, total, inputs.observation.agents, absent)]
    if inputs.teammate_logits is not None:
        absent = jnp.full(len(interface.actions), -1.0)
        parts.append(rows_by_position(inputs, total, teammate_action_probs(inputs), absent)[1:])
    return jnp.concatenate([part.reshape(-1) for part in parts])


def from_perspective_of(slot: Int[Array, ""], inputs: LearnerInput) -> LearnerInput:
    """Return the same input with the agent in another slot at the first position.

    Args:
        slot: The agent's slot.
        inputs: The observation, with positions.
    """
    assert inputs.positions is not None
    own, positions = inputs.positions[slot], inputs.positions
    positions = jnp.where(positions == own, 0, jnp.where(positions == 0, own, positions))
    return replace(inputs, positions=positions)


def rows_by_position(
    inputs: LearnerInput,
    number: int,
    rows: Float[Array, "slot n"],
    absent: Float[Array, " n"],
) -> Float[Array, "position n"]:
    """Sort the rows of agents by position.

    Args:
        inputs: The observation, with positions.
        number: Number of positions.
        rows: A row per slot.
        absent: The row of an empty position.
    """
    assert inputs.positions is not None
    index = jnp.arange(number)[:, None]
    here = (inputs.positions[None] == index) & inputs.observation.present[None]
    each = jnp.where(here[:, :, None], rows[None], 0.0)
    empty = ~jnp.any(here, axis=1)
    return jnp.where(empty[:, None], absent[None], jnp.sum(each, axis=1))
