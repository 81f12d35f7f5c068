"""QL and QL-AM: Q-learning on an input of fixed length (paper: section 5.2, appendix E.2).

All agents' features stand side by side, those of the absent replaced, and one type network reads
them as if they were one agent's. QL-AM adds what the others are predicted to do.
"""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from dropin.adhoc import Interface, Observation
from dropin.learners import base
from dropin.learners.base import (
    AgentPart,
    BaselineConfig,
    Learner,
    Memory,
    Outlook,
    Sight,
    type_network,
)
from dropin.learners.seats import NOWHERE, flat_size, flatten, take_seats
from dropin.models.layers import MLP
from dropin.models.type_inference import Recall


@dataclass(frozen=True)
class QLConfig(BaselineConfig):
    """The networks. Sizes are those of LBF and Wolfpack; `SIZES` has others."""

    places: int = 5
    """The most agents of a side that the input has room for (paper: 5)."""


class ValuePart(base.ValuePart):
    """One type vector for everything that is seen, and a network from it to action values."""

    values: MLP
    config: QLConfig = eqx.field(static=True)
    meets: Interface = eqx.field(static=True)

    def start(self, slots: int) -> Recall:
        """A single row."""
        del slots
        return self.types.start(1)

    def read(self, memory: Recall, sight: Sight) -> tuple[Float[Array, "1 type"], Recall]:
        """The type vector of the whole; the memory is cleared when an episode starts."""
        flat, seen = flatten(sight, self.meets, self.config.places), sight.seen
        return self.types(memory, flat[None], seen.shared, seen.arrived[:1])

    def judge(self, types: Float[Array, "1 type"], sight: Sight, key: PRNGKeyArray) -> Outlook:
        """The value of each action."""
        del key
        return Outlook(self.values(types[0]), sight.logits)


class QL(Learner[ValuePart, QLConfig]):
    """The networks of QL and QL-AM."""

    def __init__(self, meets: Interface, config: QLConfig, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        flat = flat_size(meets, config.places, config.agent_model) + len(meets.shared)
        sizes = [config.type_size, config.first_units, config.second_units, len(meets.actions)]
        self.value = ValuePart(
            type_network(config, flat, keys[0]), MLP(sizes, key=keys[1]), config, meets
        )
        self.agent = AgentPart.of(meets, config, *keys[2:]) if config.agent_model else None
        self.config, self.meets = config, meets

    def start(self, slots: int) -> Memory:
        """Nobody has a place yet."""
        return replace(super().start(slots), seats=jnp.full(slots, NOWHERE))

    def greet(self, memory: Memory, seen: Observation, key: PRNGKeyArray) -> Memory:
        """Newcomers get a place."""
        assert memory.seats is not None
        own = jax.random.fold_in(key, 1)
        return replace(memory, seats=take_seats(memory.seats, seen, self.config.places, own))


CONFIG, LEARNER = QLConfig, QL
"""For the catalogue of learners."""
SIZES = base.BASELINE_SIZES
