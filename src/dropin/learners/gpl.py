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

from dropin.adhoc import Interface, Observation
from dropin.config import Checked
from dropin.models.agent_model import AgentModel, action_chances
from dropin.models.coordination import (
    CoordinationGraph,
    PairInput,
    Utilities,
    best_values,
    joint_value,
    marginal_values,
)
from dropin.models.layers import LSTMState
from dropin.models.type_inference import TypeNetwork


@dataclass(frozen=True)
class GPLConfig(Checked):
    """The networks and the algorithm. Sizes are those of LBF and Wolfpack; `SIZES` has others."""

    policy: Literal["q", "spi"] = "q"
    """GPL-Q: epsilon-greedy, the target is the maximum. GPL-SPI: a Boltzmann policy, the target is
    its mean."""
    type_units: int = 100
    """Both layers before the LSTM (paper: 100)."""
    type_memory: int = 100
    """The LSTM (paper: 100)."""
    type_size: int = 70
    """The type vector (the paper's figure: 70)."""
    graph_units: int = 60
    """Both hidden layers of the utility networks (the authors' program: 60; paper: 70 and 60)."""
    rank: int = 5
    """K of the low-rank pair utilities (paper: 5)."""
    pair_input: PairInput = "pair"
    """See `CoordinationGraph`."""
    message_units: int = 30
    """First layer of the agent model's edge and node networks (paper: 30)."""
    embedding: int = 70
    """Second layer of the same (paper: 70)."""
    readout_units: int = 20
    """Hidden layer before the action logits (paper: 20)."""
    discount: float = 0.99
    """gamma (the authors' program)."""
    teammates: Literal["expected", "sampled", "optimistic"] = "expected"
    """What the value of the learner's action makes of what the teammates may do (paper: section
    4.4): the exact expectation, the mean over sampled joint actions, or the best one for the
    learner."""
    samples: int = 10
    """Joint actions drawn if the teammates' are sampled."""
    target: Literal["policy", "sarsa"] = "policy"
    """What follows a transition: the value of the next state under the policy, or the joint value
    of what everybody did in it."""


def infer(
    network: TypeNetwork, memory: LSTMState, seen: Observation
) -> tuple[Float[Array, "slot type"], LSTMState]:
    """The type vectors of those who are seen, and the memory afterwards."""
    return network(memory, seen.agents, seen.shared, seen.arrived)


class ValuePart(eqx.Module):
    """Type vectors for values, and the coordination graph over them."""

    types: TypeNetwork
    graph: CoordinationGraph

    def __call__(self, memory: LSTMState, seen: Observation) -> tuple[Utilities, LSTMState]:
        """All utilities in the state seen, and the memory afterwards."""
        types, memory = infer(self.types, memory, seen)
        return self.graph(types), memory


class AgentPart(eqx.Module):
    """Type vectors for predictions, and the agent model over them."""

    types: TypeNetwork
    model: AgentModel

    def __call__(
        self, memory: LSTMState, seen: Observation
    ) -> tuple[Float[Array, "slot action"], LSTMState]:
        """Logits of everybody's next action, and the memory afterwards."""
        types, memory = infer(self.types, memory, seen)
        return self.model(types, seen.present), memory


class Memory(eqx.Module):
    """What the learner remembers of each agent, for either part."""

    value: LSTMState
    agent: LSTMState


class Outlook(eqx.Module):
    """What the learner makes of an observation."""

    utilities: Utilities
    logits: Float[Array, "*n slot action"]
    values: Float[Array, "*n action"]
    """Of each action of the learner. No gradient reaches the agent part through them."""


class GPL(eqx.Module):
    """The networks of GPL."""

    value: ValuePart
    agent: AgentPart
    config: GPLConfig = eqx.field(static=True)
    meets: Interface = eqx.field(static=True)

    def __init__(self, meets: Interface, config: GPLConfig, *, key: PRNGKeyArray):
        features = len(meets.agents) + len(meets.shared)
        actions = len(meets.actions)
        keys = jax.random.split(key, 4)
        types = [
            TypeNetwork(features, config.type_units, config.type_memory, config.type_size, key=k)
            for k in keys[:2]
        ]
        graph = CoordinationGraph(
            config.type_size,
            config.graph_units,
            actions,
            config.rank,
            config.pair_input,
            key=keys[2],
        )
        model = AgentModel(
            config.type_size,
            config.message_units,
            config.embedding,
            config.readout_units,
            actions,
            key=keys[3],
        )
        self.value, self.agent = ValuePart(types[0], graph), AgentPart(types[1], model)
        self.config, self.meets = config, meets

    def start(self, slots: int) -> Memory:
        """The memory at the start of an episode."""
        return Memory(self.value.types.start(slots), self.agent.types.start(slots))

    def __call__(
        self, memory: Memory, seen: Observation, key: PRNGKeyArray
    ) -> tuple[Outlook, Memory]:
        """What to make of an observation, and the memory afterwards."""
        utilities, value_memory = self.value(memory.value, seen)
        logits, agent_memory = self.agent(memory.agent, seen)
        values = action_values(self.config, utilities, logits, seen.present, key)
        return Outlook(utilities, logits, values), Memory(value_memory, agent_memory)


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


def choose(
    policy: Literal["q", "spi"],
    values: Float[Array, " action"],
    epsilon: Float[Array, ""],
    temperature: Float[Array, ""],
    key: PRNGKeyArray,
) -> Int[Array, ""]:
    """An epsilon-greedy action (GPL-Q) or one drawn from the Boltzmann policy (GPL-SPI, Eq. 12)."""
    if policy == "spi":
        return jax.random.categorical(key, values / temperature).astype(jnp.int32)
    chance = jax.random.uniform(key, (2,))
    anything = (chance[0] * values.shape[0]).astype(jnp.int32)
    return jnp.where(chance[1] < epsilon, anything, jnp.argmax(values).astype(jnp.int32))


def state_value(
    values: Float[Array, " action"], policy: Literal["q", "spi"], temperature: Float[Array, ""]
) -> Float[Array, ""]:
    """What the target says of the next state: the maximum (GPL-Q) or the Boltzmann mean (GPL-SPI).

    The policy of GPL-SPI is p(a) ~ exp(Q(s, a) / temperature) (Eq. 12).
    """
    if policy == "q":
        return jnp.max(values)
    return jnp.sum(jax.nn.softmax(values / temperature) * values)


def value_error(
    outlook: Outlook,
    actions: Int[Array, " slot"],
    acted: Bool[Array, " slot"],
    target: Float[Array, ""],
) -> Float[Array, ""]:
    """The squared error of the joint value of what everybody did (Eq. 11, without the half)."""
    return (joint_value(outlook.utilities, actions, acted) - jax.lax.stop_gradient(target)) ** 2


def prediction_error(
    outlook: Outlook, actions: Int[Array, " slot"], acted: Bool[Array, " slot"]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """The negative log-likelihood of what the teammates did (Eq. 10), and how often it was guessed.

    Sums over the teammates that acted, and their number: the mean is over all of an update.
    """
    mates = acted & (jnp.arange(acted.shape[0]) > 0)
    number = outlook.logits.shape[1]
    chosen = jax.nn.one_hot(actions, number, dtype=outlook.logits.dtype)
    likelihood = jnp.sum(jax.nn.log_softmax(outlook.logits) * chosen, axis=1)
    right = jnp.argmax(outlook.logits, axis=1) == actions
    return (
        -jnp.sum(jnp.where(mates, likelihood, 0.0)),
        jnp.sum(mates & right).astype(jnp.float32),
        jnp.sum(mates).astype(jnp.float32),
    )


CONFIG, LEARNER = GPLConfig, GPL
"""For the catalogue of learners."""
SIZES = {
    "fortattack": {
        "type_units": 64,
        "type_memory": 128,
        "type_size": 128,
        "graph_units": 128,
        "rank": 6,
        "message_units": 40,
        "embedding": 70,
        "readout_units": 128,
    }
}
"""The settings in which the paper differs for a game (the LSTM and the type vector of FortAttack
are those of the authors' program; paper: 64 and none)."""
