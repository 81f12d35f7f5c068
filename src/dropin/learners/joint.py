"""What learners that are trained together share (paper: section 5.2, "MARL baselines").

In training all agents of the learner's side are under control, use the same weights and get their
own reward of the game. Afterwards one of them is taken as the learner.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.adhoc import Observation
from dropin.config import Checked
from dropin.learners.base import Memory, Sight, choose


@dataclass(frozen=True)
class JointConfig(Checked):
    """How to learn from what was kept."""

    replay: int
    """Transitions that are kept: the newest ones of all parallel environments."""
    batch: int
    """Transitions drawn from them at every update."""


class Transition(eqx.Module):
    """A step of one environment, as those under control lived it: they have the first slots."""

    before: Sight
    actions: Int[Array, "*n controlled"]
    rewards: Float[Array, "*n controlled"]
    ended: Bool[Array, "*n controlled"]
    """For whom nothing follows: the episode is over, or the game took them out."""
    over: Bool[Array, "*n"]
    """Whether the episode is over; then `after` is of the next one."""
    after: Sight

    @property
    def judged(self) -> Bool[Array, " controlled"]:
        """Whose values can be judged: those who acted, and then ended or are still there.

        Of those who left by openness nothing more is known.
        """
        number = self.actions.shape[-1]
        seen, later = self.before.seen, self.after.seen
        stayed = (later.present & ~later.arrived)[:number]
        return seen.present[:number] & (self.ended | stayed)


class Errors(eqx.Module):
    """What is to become small, summed over those under control, and how many they are."""

    value: Float[Array, "*n"]
    """Squared errors of values."""
    judged: Float[Array, "*n"]
    extra: Float[Array, "*n"]
    """What the learner has besides."""
    concerned: Float[Array, "*n"]

    @property
    def means(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Value loss and extra loss of a batch."""
        return (
            jnp.sum(self.value) / jnp.maximum(jnp.sum(self.judged), 1.0),
            jnp.sum(self.extra) / jnp.maximum(jnp.sum(self.concerned), 1.0),
        )


class JointLearner(Protocol):
    """A learner that can be trained so: one that acts for all and says what was wrong."""

    config: Any

    def act_all(
        self, memory: Memory, seen: Observation, epsilon: Float[Array, ""], key: PRNGKeyArray
    ) -> Int[Array, " controlled"]:
        """The actions of all who are under control, some of them at random."""
        ...

    def errors(self, target: Any, step: Transition, key: PRNGKeyArray) -> Errors:
        """What was wrong in a transition, by the slow copy."""
        ...


def controlled(seen: Observation) -> int:
    """How many slots are under control: those of the learner's side."""
    return seen.sides.count(seen.sides[0])


def explore(
    values: Float[Array, "controlled action"], epsilon: Float[Array, ""], key: PRNGKeyArray
) -> Int[Array, " controlled"]:
    """Everybody's best action or, with chance epsilon and each on its own, any."""
    each = jax.vmap(partial(choose, False), in_axes=(0, None, None, 0))
    return each(values, epsilon, jnp.float32(1), jax.random.split(key, len(values)))


def goals(
    step: Transition, discount: float, worths: Float[Array, " controlled"]
) -> Float[Array, " controlled"]:
    """What the values should have been, if those of what follows are `worths`."""
    return step.rewards + discount * jnp.where(step.ended, 0.0, worths)


def total(which: Bool[Array, " controlled"], values: Float[Array, " controlled"]) -> Array:
    """The sum of the values of some."""
    return jnp.sum(jnp.where(which, values, 0.0))
