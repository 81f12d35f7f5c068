"""Whoever can play in the learner's place without having learned anything."""

from collections.abc import Callable

import jax
from jaxtyping import Array, Int, PRNGKeyArray

from dropin.adhoc import AdHoc, EnvState, type_named
from dropin.dice import Dice
from dropin.errors import InputError
from dropin.teams.pool import Pool

Player = Callable[[PRNGKeyArray, EnvState], Int[Array, ""]]
"""Chooses the action of slot 0."""

RANDOM = "random"


def player(env: AdHoc, name: str) -> Player:
    """`random`, or a type of the environment's pool by its name."""
    return random_player(env) if name == RANDOM else type_player(env, name)


def random_player(env: AdHoc) -> Player:
    """Every action with the same chance."""
    number = len(env.game.actions)
    return lambda key, _: jax.random.randint(key, (), 0, number)


def type_player(env: AdHoc, name: str) -> Player:
    """Acts as a teammate of this type would in slot 0."""
    kind = type_named(env.team.pool, name, also=(RANDOM,))
    if jax.tree.leaves(kind.start(env.team.slots)):
        raise InputError(f"Type {name!r} has a memory and cannot take the learner's place.")
    alone = Pool([kind], env.team.pool.look)

    def act(key: PRNGKeyArray, state: EnvState) -> Int[Array, ""]:
        # The learner's character stays what it was at the start of the episode.
        dice = Dice(key)
        cast = alone.start(dice, env.team.slots)
        cast = type(cast)(cast.type, state.cast.character, cast.memory)
        return alone.act(dice, cast, state.game, state.arrived)[0][0]

    return act
