"""One episode, step by step, for showing it."""

from collections.abc import Iterator
from dataclasses import dataclass

import equinox as eqx
import jax

from dropin.adhoc import AdHoc, EnvState, TimeStep
from dropin.players import Player


@dataclass(frozen=True)
class Moment:
    """A state and, but for the last one, the step that follows it."""

    state: EnvState
    step: TimeStep | None
    score: float
    """The learner's return so far."""


def record(env: AdHoc, player: Player, seed: int) -> Iterator[Moment]:
    """The moments of one episode with `player` in slot 0, the last state included."""
    key = jax.random.key(seed)
    choose, advance = eqx.filter_jit(player.act), eqx.filter_jit(env.step)
    key, first = jax.random.split(key)
    state, seen = eqx.filter_jit(env.reset)(first)
    memory = player.start(env.slots)
    score, done = 0.0, False
    while not done:
        key, choosing, stepping = jax.random.split(key, 3)
        action, memory = choose(choosing, state, seen, memory)
        following, step = advance(stepping, state, action, restart=False)
        yield Moment(state, step, score)
        state, seen = following, step.final
        score, done = score + float(step.reward), bool(step.done)
    yield Moment(state, None, score)
