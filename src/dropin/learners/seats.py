"""Inputs of fixed length: a place for each agent that there could be (paper: appendix E.2).

The learner has the first place. Everybody else gets one of the free places of its side by chance
on entering, and keeps it until leaving, so that all places are used in training.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.adhoc import Interface, Observation
from dropin.errors import InputError
from dropin.learners.base import Sight, known_chances

NOWHERE = -1
"""The place of those who have none yet."""


def take_seats(
    seats: Int[Array, " slot"], seen: Observation, places: int, key: PRNGKeyArray
) -> Int[Array, " slot"]:
    """The place of everybody when newcomers have taken theirs; `places` is for one side."""
    sides = seen.sides
    for side in set(sides):
        if sides.count(side) > places:
            raise InputError(
                f"The learner has places for {places} agents a side, but here can be"
                f" {sides.count(side)}: train it with settings.places={sides.count(side)}."
            )
    total = places * (max(sides) + 1)
    place = np.arange(total)
    chance = jax.random.uniform(key, (len(sides), total))
    # Whoever was there before the learner itself has no place yet either.
    new = seen.present & (seen.arrived | (seats == NOWHERE))
    settled = seen.present & ~new
    taken = jnp.any(settled[:, None] & (seats[:, None] == place[None]), axis=0) | (place == 0)
    found = []
    for slot, side in enumerate(sides):
        if slot == 0:
            found.append(jnp.int32(0))
            continue
        free = ~taken & (place // places == side)
        any_free = jnp.argmax(jnp.where(free, chance[slot], -1.0))
        own = jnp.where(new[slot], any_free, seats[slot])
        taken = taken | (new[slot] & (place == own))
        found.append(own.astype(jnp.int32))
    return jnp.stack(found)


def flat_size(meets: Interface, places: int, with_chances: bool) -> int:
    """The length of the input, without what is shared."""
    total = places * meets.sides
    return total * len(meets.agents) + with_chances * (total - 1) * len(meets.actions)


def flatten(sight: Sight, meets: Interface, places: int) -> Float[Array, " flat"]:
    """The features of all agents, each at its place, and what they will do, if it is predicted.

    Where nobody is stands what stands for the absent: as a rule -1.
    """
    total = places * meets.sides
    parts = [placed(sight, total, sight.seen.agents, jnp.array(meets.absent))]
    if sight.logits is not None:
        nothing = jnp.full(len(meets.actions), -1.0)
        parts.append(placed(sight, total, known_chances(sight), nothing)[1:])
    return jnp.concatenate([part.reshape(-1) for part in parts])


def seen_from(slot: Int[Array, ""], sight: Sight) -> Sight:
    """The same as the agent in another slot sees it: that one has the first place."""
    assert sight.seats is not None
    own, seats = sight.seats[slot], sight.seats
    seats = jnp.where(seats == own, 0, jnp.where(seats == 0, own, seats))
    return replace(sight, seats=seats)


def placed(
    sight: Sight, places: int, rows: Float[Array, "slot n"], nobody: Float[Array, " n"]
) -> Float[Array, "place n"]:
    """For each place the row of whoever is there, or of nobody."""
    assert sight.seats is not None
    there = (sight.seats[None] == jnp.arange(places)[:, None]) & sight.seen.present[None]
    each = jnp.where(there[:, :, None], rows[None], 0.0)
    empty = ~jnp.any(there, axis=1)
    return jnp.where(empty[:, None], nobody[None], jnp.sum(each, axis=1))
