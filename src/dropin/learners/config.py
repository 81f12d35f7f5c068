"""Settings that all learners share: the training loop's part of an algorithm."""

from dataclasses import dataclass, field

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from dropin.core.config import Checked

__all__ = ["LinearSchedule", "TrainConfig"]


@dataclass(frozen=True)
class LinearSchedule(Checked):
    """A value that changes linearly with the environment steps and then stays constant.

    It changes every `update_every` steps only, as in the authors' program.
    """

    initial: float
    final: float
    num_steps: int
    """Environment steps from the initial to the final value."""
    update_every: int = 3200
    """Environment steps between two changes."""

    def __call__(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Return the value at an environment step."""
        changes = max(self.num_steps // self.update_every, 1)
        share = jnp.minimum((step // self.update_every).astype(jnp.float32) / changes, 1.0)
        return self.initial + (self.final - self.initial) * share


@dataclass(frozen=True)
class TrainConfig(Checked):
    """How to train. The defaults are the paper's for LBF and Wolfpack (appendix E.3)."""

    num_envs: int = 16
    """Parallel environments."""
    rollout_length: int = 4
    """Steps of every environment between two updates."""
    learning_rate: float = 2.5e-4
    """Of Adam."""
    target_update_rate: float = 1e-3
    """alpha: how far the target moves towards the online weights at each update."""
    epsilon: LinearSchedule = field(default_factory=lambda: LinearSchedule(1.0, 0.05, 4_800_000))
    """Share of random actions of an epsilon-greedy policy."""
    temperature: LinearSchedule = field(
        default_factory=lambda: LinearSchedule(1.0, 0.01, 4_800_000)
    )
    """Of a Boltzmann policy, GPL-SPI's (the authors' program; the paper gives no value)."""

    @property
    def steps_per_update(self) -> int:
        """Environment steps between two updates, all environments together."""
        return self.num_envs * self.rollout_length

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """Adam with its usual constants, over all weights in one array."""
        return optax.flatten(optax.adam(self.learning_rate))
