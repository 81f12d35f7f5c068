"""A recipe that takes no time."""

import os
import signal
from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from dropin.games import lbf
from dropin.zoo.recipe import Measurement, Recipe


class Sum(eqx.Module):
    total: jax.Array
    steps: jax.Array


@dataclass(frozen=True)
class Tiny(Recipe):
    """Adds up random numbers; can be interrupted at a step."""

    name: ClassVar[str] = "lbf/tiny"
    summary: ClassVar[str] = "a sum"
    method: ClassVar[str] = "by adding"
    game: ClassVar = lbf

    steps: int = 50
    interrupt_at: ClassVar[int | None] = None

    def init(self, seed):
        return Sum(jax.random.normal(jax.random.key(seed), (3,)), jnp.int32(0))

    def train_chunk(self, state):
        noise = jax.random.normal(jax.random.key(state.steps), (3,))
        after = Sum(state.total + noise, state.steps + 10)
        if int(after.steps) == Tiny.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)
        return after, {"sum": after.total.sum()}

    def policy_params(self, state):
        return {"total": state.total}

    def extra_files(self, state):
        return {"doubled": {"total": 2 * state.total}}

    def measure(self, params):
        return [Measurement.from_values("entries", "sum", params["total"])]
