"""GNN and GNN-AM: Q-learning by attention over type vectors (paper: section 5.2, appendix E.3).

Every agent has a type vector, as in GPL; the learner attends to all of them and finds the values of
its actions in what it gets. GNN-AM adds to each agent's features what it is predicted to do.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from dropin.adhoc import Interface
from dropin.learners import base
from dropin.learners.base import (
    AgentPart,
    BaselineConfig,
    Learner,
    Outlook,
    Sight,
    known_chances,
    type_network,
)
from dropin.models.attention import Attention
from dropin.models.layers import MLP, Linear, LSTMState


@dataclass(frozen=True)
class GNNConfig(BaselineConfig):
    """The networks. Sizes are those of LBF and Wolfpack; `SIZES` has others."""

    heads: int = 8
    """Of the attention, whose networks for keys, queries and values have the layers of the value
    network, the second one for each head (paper: 8)."""


class ValuePart(base.ValuePart):
    """Type vectors, a network over each, attention of the learner to all, and a layer."""

    node: MLP
    attention: Attention
    last: Linear
    config: GNNConfig = eqx.field(static=True)

    def read(self, memory: LSTMState, sight: Sight) -> tuple[Float[Array, "slot type"], LSTMState]:
        """The type vectors of those who are seen, and the memory afterwards."""
        seen, agents = sight.seen, sight.seen.agents
        if self.config.agent_model:
            agents = jnp.concatenate([agents, known_chances(sight)], axis=1)
        return self.types(memory, agents, seen.shared, seen.arrived)

    def judge(self, types: Float[Array, "slot type"], sight: Sight, key: PRNGKeyArray) -> Outlook:
        """The value of each action."""
        del key
        nodes = jax.nn.relu(self.node(types))
        heard, _ = self.attention(nodes[:1], nodes, sight.seen.present)
        return Outlook(self.last(heard[0]), sight.logits)


class GNN(Learner[ValuePart, GNNConfig]):
    """The networks of GNN and GNN-AM."""

    def __init__(self, meets: Interface, config: GNNConfig, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 6)
        actions, units, size = len(meets.actions), config.first_units, config.second_units
        inputs = len(meets.agents) + len(meets.shared) + config.agent_model * actions
        self.value = ValuePart(
            types=type_network(config, inputs, keys[0]),
            node=MLP([config.type_size, units, size], key=keys[1]),
            attention=Attention(size, units, size, config.heads, key=keys[2]),
            last=Linear(config.heads * size, actions, key=keys[3]),
            config=config,
        )
        self.agent = AgentPart.of(meets, config, *keys[4:]) if config.agent_model else None
        self.config, self.meets = config, meets


CONFIG, LEARNER = GNNConfig, GNN
"""For the catalogue of learners."""
SIZES = base.BASELINE_SIZES
