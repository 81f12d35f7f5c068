"""How much is explored, and when."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dropin.config import Checked


@dataclass(frozen=True)
class Linear(Checked):
    """From one value to another in a straight line, then constant.

    The value changes every `every` steps only, as in the authors' program.
    """

    first: float
    last: float
    steps: int
    every: int = 3200

    def __call__(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """The value at a step."""
        whole = max(self.steps // self.every, 1)
        share = jnp.minimum((step // self.every).astype(jnp.float32) / whole, 1.0)
        return self.first + (self.last - self.first) * share
