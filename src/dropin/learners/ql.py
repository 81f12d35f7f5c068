"""QL and QL-AM: Q-learning on an input of fixed length (paper: section 5.2, appendix E.2).

The features of all agents are concatenated, with fixed values for absent agents, and one type
network processes them as if they were one agent's. QL-AM adds the predicted action probabilities of
the other agents.
"""

from dataclasses import dataclass, replace
from functools import partial

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from dropin._xla.random import subkeys
from dropin.core.observation import Interface, Observation
from dropin.core.specs import LearnerSpec
from dropin.learners.base import (
    LearnerInput,
    LearnerNetwork,
    Memory,
    Prediction,
    TeammateModel,
    TypeInputs,
    ValueNetwork,
    make_type_network,
)
from dropin.learners.config import BASELINE_FORTATTACK_SIZES, BaselineConfig
from dropin.learners.positions import (
    UNASSIGNED,
    assign_positions,
    flat_input_size,
    flatten_input,
)
from dropin.learners.value_based import ValueLearner
from dropin.models.layers import MLP
from dropin.models.type_inference import TypeMemory

__all__ = ["SPECS", "QLConfig", "QLNetwork", "QLValueNetwork"]


@dataclass(frozen=True)
class QLConfig(BaselineConfig):
    """Settings of QL, with the sizes of LBF and Wolfpack."""

    max_agents_per_side: int = 5
    """Most agents of a side that the input has room for (paper: 5)."""


class QLValueNetwork(ValueNetwork):
    """One type vector for everything that is observed, and a network from it to action values."""

    values: MLP
    config: QLConfig = eqx.field(static=True)
    interface: Interface = eqx.field(static=True)

    def init_memory(self, slots: int) -> TypeMemory:
        """Return a memory with a single row."""
        del slots
        return self.type_network.init_memory(1)

    def type_inputs(self, inputs: LearnerInput) -> TypeInputs:
        """Return the whole input as one node; an episode starts with empty memory."""
        flat = flatten_input(inputs, self.interface, self.config.max_agents_per_side)
        return flat[None], inputs.observation.shared, inputs.observation.arrived[:1]

    def predict_values(
        self, types: Float[Array, "1 type"], inputs: LearnerInput, key: PRNGKeyArray
    ) -> Prediction:
        """Return the value of each action of the learner."""
        del key
        return Prediction(self.values(types[0]), inputs.teammate_logits)


class QLNetwork(LearnerNetwork[QLValueNetwork, QLConfig]):
    """The networks of QL and QL-AM.

    Args:
        interface: The names of what the learner observes and can do.
        config: The settings.
        key: A random key for the initial weights.
    """

    def __init__(self, interface: Interface, config: QLConfig, *, key: PRNGKeyArray):
        keys = subkeys(key, 4)
        input_size = flat_input_size(interface, config.max_agents_per_side, config.agent_model)
        input_size += len(interface.shared_features)
        sizes = [
            config.type_vector_size,
            config.first_hidden_size,
            config.second_hidden_size,
            len(interface.actions),
        ]
        self.value = QLValueNetwork(
            make_type_network(config, input_size, keys[0]),
            MLP(sizes, key=keys[1]),
            config,
            interface,
        )
        self.agent = None
        if config.agent_model:
            self.agent = TeammateModel.create(interface, config, *keys[2:])
        self.config, self.interface = config, interface

    def init_memory(self, slots: int) -> Memory:
        """Return the memory at the start of an episode, in which nobody has a position."""
        return replace(super().init_memory(slots), positions=jnp.full(slots, UNASSIGNED))

    def on_arrival(self, memory: Memory, observation: Observation, key: PRNGKeyArray) -> Memory:
        """Assign positions to newcomers."""
        assert memory.positions is not None
        positions = assign_positions(
            memory.positions, observation, self.config.max_agents_per_side, key
        )
        return replace(memory, positions=positions)


SPECS = (
    LearnerSpec(
        name="ql",
        summary="Q-learning on the concatenated features of all agents",
        settings=QLConfig,
        make=partial(ValueLearner, QLNetwork),
        defaults={"fortattack": BASELINE_FORTATTACK_SIZES},
        fixed={"agent_model": False},
        steps_per_second=116_800,
    ),
    LearnerSpec(
        name="ql-am",
        summary="QL with the predicted actions of the other agents as additional input",
        settings=QLConfig,
        make=partial(ValueLearner, QLNetwork),
        defaults={"fortattack": BASELINE_FORTATTACK_SIZES},
        fixed={"agent_model": True},
        steps_per_second=40_600,
    ),
)
