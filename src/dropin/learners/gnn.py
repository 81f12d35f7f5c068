"""GNN and GNN-AM: Q-learning by attention over type vectors (paper: section 5.2, appendix E.3).

Every agent has a type vector, as in GPL; the learner attends to all of them and finds the values of
its actions in its own and in what it gets. GNN-AM adds to each agent's features what it is
predicted to do.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

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
from dropin.models.layers import MLP, Linear
from dropin.models.type_inference import Recall


@dataclass(frozen=True)
class GNNConfig(BaselineConfig):
    """The networks. Sizes are those of LBF and Wolfpack; `SIZES` has others."""

    heads: int = 8
    """Of the attention, whose networks for keys, queries and values have the layers of the value
    network, the second one for each head (paper: 8)."""


class ValuePart(base.ValuePart):
    """Type vectors, a network over each, attention of the learner to all, and a layer over both."""

    node: MLP
    attention: Attention
    last: Linear
    config: GNNConfig = eqx.field(static=True)

    def read(self, memory: Recall, sight: Sight) -> tuple[Float[Array, "slot type"], Recall]:
        """The type vectors of those who are seen, and the memory afterwards."""
        seen, agents = sight.seen, sight.seen.agents
        if self.config.agent_model:
            agents = jnp.concatenate([agents, known_chances(sight)], axis=1)
        return self.types(memory, agents, seen.shared, seen.arrived)

    def judge(self, types: Float[Array, "slot type"], sight: Sight, key: PRNGKeyArray) -> Outlook:
        """The value of each action."""
        del key
        values, _ = self.judge_first(1, types, sight.seen.present)
        return Outlook(values[0], sight.logits)

    def judge_first(
        self, number: int, types: Float[Array, "slot type"], present: Bool[Array, " slot"]
    ) -> tuple[Float[Array, "asker action"], Float[Array, "head asker slot"]]:
        """The values of each action of those in the first slots, and to whom they attend."""
        nodes = jax.nn.relu(self.node(types))
        heard, weights = self.attention(nodes[:number], nodes, present)
        # With its own node besides, so that it does not know itself by what it asks alone.
        return self.last(jnp.concatenate([nodes[:number], heard], axis=1)), weights


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
            last=Linear((1 + config.heads) * size, actions, key=keys[3]),
            config=config,
        )
        self.agent = AgentPart.of(meets, config, *keys[4:]) if config.agent_model else None
        self.config, self.meets = config, meets


CONFIG, LEARNER = GNNConfig, GNN
"""For the catalogue of learners."""
SIZES = base.BASELINE_SIZES
