"""GNN and GNN-AM: Q-learning by attention over type vectors (paper: section 5.2, appendix E.3).

Every agent has a type vector, as in GPL. The learner attends to all of them and computes the values
of its actions from its own node and the result. GNN-AM adds the predicted action probabilities of
each agent to its features.
"""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from dropin._xla.random import subkeys
from dropin.core.observation import Interface
from dropin.core.specs import LearnerSpec
from dropin.learners.base import (
    LearnerInput,
    LearnerNetwork,
    Prediction,
    TeammateModel,
    TypeInputs,
    ValueNetwork,
    make_type_network,
    num_features,
)
from dropin.learners.common import teammate_action_probs
from dropin.learners.config import BASELINE_FORTATTACK_SIZES, BaselineConfig
from dropin.learners.value_based import ValueLearner
from dropin.models.attention import Attention
from dropin.models.layers import MLP, Linear

__all__ = ["SPECS", "GNNConfig", "GNNNetwork", "GNNValueNetwork"]


@dataclass(frozen=True)
class GNNConfig(BaselineConfig):
    """Settings of GNN, with the sizes of LBF and Wolfpack."""

    num_heads: int = 8
    """Of the attention, whose networks for keys, queries and values have the layers of the value
    network, the second one for each head (paper: 8)."""


class GNNValueNetwork(ValueNetwork):
    """Type inference, a network over each type vector, attention, and a layer over the result."""

    node: MLP
    attention: Attention
    last: Linear
    config: GNNConfig = eqx.field(static=True)

    def type_inputs(self, inputs: LearnerInput) -> TypeInputs:
        """Return the features of each agent and, in GNN-AM, its predicted action probabilities."""
        agents, shared, arrived = super().type_inputs(inputs)
        if self.config.agent_model:
            agents = jnp.concatenate([agents, teammate_action_probs(inputs)], axis=1)
        return agents, shared, arrived

    def predict_values(
        self, types: Float[Array, "slot type"], inputs: LearnerInput, key: PRNGKeyArray
    ) -> Prediction:
        """Return the value of each action of the learner."""
        del key
        q_values, _ = self.attend(1, types, inputs.observation.present)
        return Prediction(q_values[0], inputs.teammate_logits)

    def attend(
        self, number: int, types: Float[Array, "slot type"], present: Bool[Array, " slot"]
    ) -> tuple[Float[Array, "asker action"], Float[Array, "head asker slot"]]:
        """Return the action values of the agents in the first slots.

        Args:
            number: Number of slots.
            types: The type vectors.
            present: Which agents are present.

        Returns:
            The values of each action of each of these agents, and their attention weights.
        """
        nodes = jax.nn.relu(self.node(types))
        attended, weights = self.attention(nodes[:number], nodes, present)
        # The agent's own node is concatenated, so that it is known besides its query.
        return self.last(jnp.concatenate([nodes[:number], attended], axis=1)), weights


class GNNNetwork(LearnerNetwork[GNNValueNetwork, GNNConfig]):
    """The networks of GNN and GNN-AM.

    Args:
        interface: The names of what the learner observes and can do.
        config: The settings.
        key: A random key for the initial weights.
    """

    def __init__(self, interface: Interface, config: GNNConfig, *, key: PRNGKeyArray):
        keys = subkeys(key, 6)
        actions = len(interface.actions)
        hidden_size, size = config.first_hidden_size, config.second_hidden_size
        input_size = num_features(interface) + config.agent_model * actions
        self.value = GNNValueNetwork(
            type_network=make_type_network(config, input_size, keys[0]),
            node=MLP([config.type_vector_size, hidden_size, size], key=keys[1]),
            attention=Attention(size, hidden_size, size, config.num_heads, key=keys[2]),
            last=Linear((1 + config.num_heads) * size, actions, key=keys[3]),
            config=config,
        )
        self.agent = None
        if config.agent_model:
            self.agent = TeammateModel.create(interface, config, *keys[4:])
        self.config, self.interface = config, interface


SPECS = (
    LearnerSpec(
        name="gnn",
        summary="Q-learning by attention over type vectors",
        settings=GNNConfig,
        make=partial(ValueLearner, GNNNetwork),
        defaults={"fortattack": BASELINE_FORTATTACK_SIZES},
        fixed={"agent_model": False},
        steps_per_second=26_700,
    ),
    LearnerSpec(
        name="gnn-am",
        summary="GNN with the predicted actions of the other agents as additional input",
        settings=GNNConfig,
        make=partial(ValueLearner, GNNNetwork),
        defaults={"fortattack": BASELINE_FORTATTACK_SIZES},
        fixed={"agent_model": True},
        steps_per_second=18_400,
    ),
)
