"""Graph-based policy learning, GPL-Q and GPL-SPI (paper: section 4, appendix D).

The value part (type inference and coordination graph) is trained on the joint action value of what
everybody did, the agent part (type inference and agent model) on what the teammates did. Acting
and targets use the learner's marginal action values, in which the second weighs the first.
"""

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.adhoc import Interface
from dropin.learners import base
from dropin.learners.base import AgentPart, Learner, LearnerConfig, Outlook, Sight, type_network
from dropin.models.agent_model import action_chances
from dropin.models.coordination import (
    CoordinationGraph,
    PairInput,
    Utilities,
    best_values,
    joint_value,
    marginal_values,
)
from dropin.models.type_inference import Recall


@dataclass(frozen=True)
class GPLConfig(LearnerConfig):
    """The networks and the algorithm. Sizes are those of LBF and Wolfpack; `SIZES` has others."""

    policy: Literal["q", "spi"] = "q"
    """GPL-Q: epsilon-greedy, the target is the maximum. GPL-SPI: a Boltzmann policy, the target is
    its mean."""
    graph_units: int = 60
    """Both hidden layers of the utility networks (the authors' program: 60; paper: 70 and 60)."""
    rank: int = 5
    """K of the low-rank pair utilities (paper: 5)."""
    pair_input: PairInput = "pair"
    """See `CoordinationGraph`."""
    teammates: Literal["expected", "sampled", "optimistic"] = "expected"
    """What the value of the learner's action makes of what the teammates may do (paper: section
    4.4): the exact expectation, the mean over sampled joint actions, or the best one for the
    learner."""
    samples: int = 10
    """Joint actions drawn if the teammates' are sampled."""

    @property
    def soft(self) -> bool:
        """GPL-SPI's policy is Boltzmann's."""
        return self.policy == "spi"


class ValuePart(base.ValuePart):
    """Type vectors for values, and the coordination graph over them."""

    graph: CoordinationGraph
    config: GPLConfig = eqx.field(static=True)

    def read(self, memory: Recall, sight: Sight) -> tuple[Float[Array, "slot type"], Recall]:
        """The type vectors of those who are seen, and the memory afterwards."""
        seen = sight.seen
        return self.types(memory, seen.agents, seen.shared, seen.arrived)

    def judge(self, types: Float[Array, "slot type"], sight: Sight, key: PRNGKeyArray) -> Outlook:
        """All utilities, and the value of each action of the learner."""
        utilities = self.graph(types)
        assert sight.logits is not None
        values = action_values(self.config, utilities, sight.logits, sight.seen.present, key)
        return Outlook(values, sight.logits, utilities)

    def taken(
        self, outlook: Outlook, actions: Int[Array, " slot"], acted: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """The joint value of what everybody did (Eq. 5)."""
        return joint_value(outlook.utilities, actions, acted)


class GPL(Learner[ValuePart, GPLConfig]):
    """The networks of GPL."""

    def __init__(self, meets: Interface, config: GPLConfig, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        graph = CoordinationGraph(
            config.type_size,
            config.graph_units,
            len(meets.actions),
            config.rank,
            config.pair_input,
            key=keys[2],
        )
        types = type_network(config, len(meets.agents) + len(meets.shared), keys[0])
        self.value = ValuePart(types, graph, config)
        self.agent = AgentPart.of(meets, config, keys[1], keys[3])
        self.config, self.meets = config, meets


def action_values(
    config: GPLConfig,
    utilities: Utilities,
    logits: Float[Array, "slot action"],
    present: Bool[Array, " slot"],
    key: PRNGKeyArray,
) -> Float[Array, " action"]:
    """The value of each action of the learner, whatever the teammates do.

    By default Eq. 9 with the agent model's predictions, which get no gradient from values. The key
    is for sampled teammates alone.
    """
    logits = jax.lax.stop_gradient(logits)
    if config.teammates == "optimistic":
        return best_values(utilities, present)
    if config.teammates == "expected":
        return marginal_values(utilities, action_chances(logits), present)
    drawn = jax.random.categorical(key, logits, shape=(config.samples, logits.shape[0]))
    chances = jax.nn.one_hot(drawn, logits.shape[1], dtype=logits.dtype)
    each = jax.vmap(marginal_values, in_axes=(None, 0, None))(utilities, chances, present)
    return jnp.mean(each, axis=0)


CONFIG, LEARNER = GPLConfig, GPL
"""For the catalogue of learners."""
SIZES = {"fortattack": {**base.SIZES["fortattack"], "graph_units": 128, "rank": 6}}
"""The settings in which the paper differs for a game."""
