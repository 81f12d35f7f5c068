"""Graph-based policy learning: GPL-Q and GPL-SPI (paper: section 4, appendix D).

The value network (type inference and coordination graph) is trained on the joint action value of
what everybody did, the teammate model (type inference and agent model) on what the teammates did.
Acting and targets use the learner's marginal action values, in which the second weighs the first.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin._xla.random import subkeys
from dropin.core.observation import Interface
from dropin.core.specs import LearnerSpec
from dropin.learners.base import (
    LearnerInput,
    LearnerNetwork,
    Prediction,
    TeammateModel,
    ValueNetwork,
    make_type_network,
    num_features,
)
from dropin.learners.config import FORTATTACK_SIZES, LearnerConfig
from dropin.learners.value_based import ValueLearner
from dropin.models.agent_model import action_probs
from dropin.models.coordination import (
    CoordinationGraph,
    PairInput,
    Utilities,
    joint_action_value,
    marginal_action_values,
    optimistic_values,
)

__all__ = ["GPL_SIZES", "SPECS", "GPLConfig", "GPLNetwork", "GPLValueNetwork", "action_values"]


@dataclass(frozen=True)
class GPLConfig(LearnerConfig):
    """Settings of GPL, with the sizes of LBF and Wolfpack."""

    policy: Literal["q", "spi"] = "q"
    """GPL-Q: epsilon-greedy, the target is the maximum. GPL-SPI: a Boltzmann policy, the target is
    its mean."""
    utility_hidden_size: int = 60
    """Both hidden layers of the utility networks (the authors' program: 60; paper: 70 and 60)."""
    rank: int = 5
    """K of the low-rank pairwise utilities (paper: 5)."""
    pair_input: PairInput = "pair"
    """See `CoordinationGraph`."""
    teammate_actions: Literal["expected", "sampled", "optimistic"] = "expected"
    """How the value of the learner's action depends on what the teammates may do (paper: section
    4.4): the exact expectation, the mean over sampled joint actions, or the best joint action."""
    num_samples: int = 10
    """Number of joint actions if they are sampled."""

    @property
    def is_boltzmann(self) -> bool:
        """Whether the policy is a Boltzmann policy, as in GPL-SPI."""
        return self.policy == "spi"


class GPLValueNetwork(ValueNetwork):
    """Type inference for values, and the coordination graph over the type vectors."""

    graph: CoordinationGraph
    config: GPLConfig = eqx.field(static=True)

    def predict_values(
        self, types: Float[Array, "slot type"], inputs: LearnerInput, key: PRNGKeyArray
    ) -> Prediction:
        """Return all utilities, and the value of each action of the learner (Eq. 9)."""
        utilities = self.graph(types)
        assert inputs.teammate_logits is not None
        q_values = action_values(
            self.config, utilities, inputs.teammate_logits, inputs.observation.present, key
        )
        return Prediction(q_values, inputs.teammate_logits, utilities)

    def value_of_taken(
        self, prediction: Prediction, actions: Int[Array, " slot"], acted: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """Return the joint value of what everybody did (Eq. 5)."""
        return joint_action_value(prediction.utilities, actions, acted)


class GPLNetwork(LearnerNetwork[GPLValueNetwork, GPLConfig]):
    """The networks of GPL.

    Args:
        interface: The names of what the learner observes and can do.
        config: The settings.
        key: A random key for the initial weights.
    """

    def __init__(self, interface: Interface, config: GPLConfig, *, key: PRNGKeyArray):
        keys = subkeys(key, 4)
        graph = CoordinationGraph(
            config.type_vector_size,
            config.utility_hidden_size,
            len(interface.actions),
            config.rank,
            config.pair_input,
            key=keys[2],
        )
        types = make_type_network(config, num_features(interface), keys[0])
        self.value = GPLValueNetwork(types, graph, config)
        self.agent = TeammateModel.create(interface, config, keys[1], keys[3])
        self.config, self.interface = config, interface


def action_values(
    config: GPLConfig,
    utilities: Utilities,
    logits: Float[Array, "slot action"],
    present: Bool[Array, " slot"],
    key: PRNGKeyArray,
) -> Float[Array, " action"]:
    """Return the value of each action of the learner, whatever the teammates do.

    By default this is Eq. 9 with the agent model's predictions, which get no gradient from values.

    Args:
        config: Which of the alternatives of section 4.4 to compute.
        utilities: The terms of the coordination graph.
        logits: Predicted logits of every agent's action.
        present: Which agents are present.
        key: A random key, used only if the teammates' actions are sampled.
    """
    logits = jax.lax.stop_gradient(logits)
    if config.teammate_actions == "optimistic":
        return optimistic_values(utilities, present)
    if config.teammate_actions == "expected":
        return marginal_action_values(utilities, action_probs(logits), present)
    sampled = jax.random.categorical(key, logits, shape=(config.num_samples, logits.shape[0]))
    probs = jax.nn.one_hot(sampled, logits.shape[1], dtype=logits.dtype)
    each = jax.vmap(marginal_action_values, in_axes=(None, 0, None))(utilities, probs, present)
    return jnp.mean(each, axis=0)


GPL_SIZES = {"fortattack": {**FORTATTACK_SIZES, "utility_hidden_size": 128, "rank": 6}}

SPECS = (
    LearnerSpec(
        name="gpl-q",
        summary="graph-based policy learning, epsilon-greedy",
        settings=GPLConfig,
        make=partial(ValueLearner, GPLNetwork),
        defaults=GPL_SIZES,
        fixed={"policy": "q"},
        steps_per_second=25_600,
    ),
    LearnerSpec(
        name="gpl-spi",
        summary="graph-based policy learning, Boltzmann policy",
        settings=GPLConfig,
        make=partial(ValueLearner, GPLNetwork),
        defaults=GPL_SIZES,
        fixed={"policy": "spi"},
        steps_per_second=24_500,
    ),
)
