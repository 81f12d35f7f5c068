"""What all value-based learners share: settings, memory, predictions, policies and errors.

A learner has a value part, which says what its actions are worth, and it may have an agent part,
which predicts what the others will do. The two have separate weights. To add a learner, write a
value part: how it reads an observation step by step, and what it makes of what it has read.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.adhoc import Interface, Observation
from dropin.config import Checked
from dropin.models.agent_model import AgentModel
from dropin.models.type_inference import Impression, Recall, TypeNetwork


@dataclass(frozen=True)
class LearnerConfig(Checked):
    """Type inference, agent model and targets. Sizes are those of LBF and Wolfpack."""

    type_units: int = 100
    """Both layers before the LSTM (paper: 100)."""
    type_memory: int = 100
    """The LSTM (paper: 100)."""
    type_size: int = 70
    """The type vector (the paper's figure: 70)."""
    message_units: int = 30
    """First layer of the agent model's edge and node networks (paper: 30)."""
    embedding: int = 70
    """Second layer of the same (paper: 70)."""
    readout_units: int = 20
    """Hidden layer before the action logits (paper: 20)."""
    discount: float = 0.99
    """gamma (the authors' program)."""
    target: Literal["policy", "sarsa"] = "policy"
    """What follows a transition: the value of the next state under the policy, or the value of
    what was done in it."""

    @property
    def soft(self) -> bool:
        """Whether the policy is Boltzmann's; otherwise it is epsilon-greedy."""
        return False

    @property
    def cools(self) -> bool:
        """Whether the temperature of a Boltzmann policy follows the schedule; otherwise it is 1."""
        return True

    @property
    def recurrent(self) -> bool:
        """Whether type vectors depend on what was seen before."""
        return True


SIZES: dict[str, dict[str, Any]] = {
    "fortattack": {
        "type_units": 64,
        "type_memory": 128,
        "type_size": 128,
        "message_units": 40,
        "embedding": 70,
        "readout_units": 128,
    }
}
"""The settings in which the paper differs for a game (the LSTM and the type vector of FortAttack
are those of the authors' program; paper: 64 and none)."""


@dataclass(frozen=True)
class BaselineConfig(LearnerConfig):
    """What the learners that know values of their own actions alone have in common."""

    agent_model: bool = False
    """Whether predicted actions are part of what it sees: QL-AM and GNN-AM."""
    first_units: int = 70
    """First layer of the value network (paper: 70)."""
    second_units: int = 60
    """Second layer of the same (paper: 60)."""


BASELINE_SIZES = {"fortattack": {**SIZES["fortattack"], "first_units": 128, "second_units": 128}}
"""The settings of theirs in which the paper differs for a game."""


class Sight(eqx.Module):
    """An observation, with what the learner adds to it."""

    seen: Observation
    logits: Float[Array, "*n slot action"] | None = None
    """Of everybody's next action, as predicted; None without an agent model."""
    seats: Int[Array, "*n slot"] | None = None
    """The place of everybody in an input of fixed length; None if there is no such input."""


class Memory(eqx.Module):
    """What the learner remembers."""

    value: Recall
    """For the value part."""
    agent: Recall = None
    """For the agent part."""
    seats: Int[Array, "*n slot"] | None = None
    """The place of everybody in an input of fixed length."""


class Outlook(eqx.Module):
    """What the learner makes of an observation."""

    values: Float[Array, "*n action"]
    """Of each action of the learner. No gradient reaches the agent part through them."""
    logits: Float[Array, "*n slot action"] | None = None
    """Of everybody's next action, as predicted; None without an agent model."""
    utilities: Any = None
    """What GPL's coordination graph says (`dropin.models.coordination.Utilities`)."""


class ValuePart(eqx.Module):
    """Says what actions are worth. Reading is recurrent, judging is not."""

    types: TypeNetwork | Impression

    def start(self, slots: int) -> Recall:
        """The memory at the start of an episode: a row for each slot."""
        return self.types.start(slots)

    @abstractmethod
    def read(self, memory: Recall, sight: Sight) -> tuple[Float[Array, "node type"], Recall]:
        """Type vectors, and the memory afterwards."""

    @abstractmethod
    def judge(self, types: Float[Array, "node type"], sight: Sight, key: PRNGKeyArray) -> Outlook:
        """What to make of the type vectors. The key is for learners that leave it to chance."""

    def taken(
        self, outlook: Outlook, actions: Int[Array, " slot"], acted: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """The value of what was done: here of the learner's own action."""
        del acted
        chosen = jnp.arange(outlook.values.shape[0]) == actions[0]
        return jnp.sum(jnp.where(chosen, outlook.values, 0.0))


class AgentPart(eqx.Module):
    """Type vectors for predictions, and the agent model over them."""

    types: TypeNetwork | Impression
    model: AgentModel

    @classmethod
    def of(cls, meets: Interface, config: LearnerConfig, *keys: PRNGKeyArray) -> "AgentPart":
        """With new weights, by two keys."""
        model = AgentModel(
            config.type_size,
            config.message_units,
            config.embedding,
            config.readout_units,
            len(meets.actions),
            key=keys[1],
        )
        return cls(type_network(config, len(meets.agents) + len(meets.shared), keys[0]), model)

    def __call__(
        self, memory: Recall, seen: Observation
    ) -> tuple[Float[Array, "slot action"], Recall]:
        """Logits of everybody's next action, and the memory afterwards."""
        types, memory = self.types(memory, seen.agents, seen.shared, seen.arrived)
        return self.model(types, seen.present), memory


def type_network(config: LearnerConfig, inputs: int, key: PRNGKeyArray) -> TypeNetwork | Impression:
    """A type network of the size that the settings say."""
    kind = TypeNetwork if config.recurrent else Impression
    return kind(inputs, config.type_units, config.type_memory, config.type_size, key=key)


Part = TypeVar("Part", bound=ValuePart)
Config = TypeVar("Config", bound=LearnerConfig)


class Learner(eqx.Module, Generic[Part, Config]):
    """An algorithm with its networks."""

    value: Part
    agent: AgentPart | None
    """None if the learner predicts nothing."""
    config: Config = eqx.field(static=True)
    meets: Interface = eqx.field(static=True)

    def start(self, slots: int) -> Memory:
        """The memory at the start of an episode."""
        agent = None if self.agent is None else self.agent.types.start(slots)
        return Memory(self.value.start(slots), agent)

    def greet(self, memory: Memory, seen: Observation, key: PRNGKeyArray) -> Memory:
        """The memory when it has met those who arrived, before it reads the observation.

        The key is also used elsewhere: draw from one that is folded from it.
        """
        del seen, key
        return memory

    def look(self, memory: Memory, seen: Observation) -> tuple[Sight, Recall]:
        """An observation with predictions, and the agent part's memory afterwards."""
        if self.agent is None or memory.agent is None:
            return Sight(seen, seats=memory.seats), None
        logits, after = self.agent(memory.agent, seen)
        return Sight(seen, logits, memory.seats), after

    def __call__(
        self, memory: Memory, seen: Observation, key: PRNGKeyArray
    ) -> tuple[Outlook, Memory]:
        """What to make of an observation, and the memory afterwards."""
        sight, agent = self.look(memory, seen)
        types, value = self.value.read(memory.value, sight)
        return self.value.judge(types, sight, key), Memory(value, agent, memory.seats)


def known_chances(sight: Sight) -> Float[Array, "slot action"]:
    """What each agent will do, as input of a value network.

    It is predicted, without gradient; -1 in the rows of the learner and of those absent.
    """
    assert sight.logits is not None
    chances = jax.nn.softmax(jax.lax.stop_gradient(sight.logits))
    mates = sight.seen.present & (jnp.arange(chances.shape[0]) > 0)
    return jnp.where(mates[:, None], chances, -1.0)


def choose(
    soft: bool,
    values: Float[Array, " action"],
    epsilon: Float[Array, ""],
    temperature: Float[Array, ""],
    key: PRNGKeyArray,
) -> Int[Array, ""]:
    """An epsilon-greedy action, or one drawn from the Boltzmann policy (Eq. 12)."""
    if soft:
        return jax.random.categorical(key, values / temperature).astype(jnp.int32)
    chance = jax.random.uniform(key, (2,))
    anything = (chance[0] * values.shape[0]).astype(jnp.int32)
    return jnp.where(chance[1] < epsilon, anything, jnp.argmax(values).astype(jnp.int32))


def state_value(
    soft: bool, values: Float[Array, " action"], temperature: Float[Array, ""]
) -> Float[Array, ""]:
    """What the target says of the next state: the maximum, or the mean of the Boltzmann policy.

    That policy is p(a) ~ exp(Q(s, a) / temperature) (Eq. 12).
    """
    if not soft:
        return jnp.max(values)
    return jnp.sum(jax.nn.softmax(values / temperature) * values)


def prediction_error(
    logits: Float[Array, "slot action"], actions: Int[Array, " slot"], acted: Bool[Array, " slot"]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """The negative log-likelihood of what the teammates did (Eq. 10), and how often it was guessed.

    Sums over the teammates that acted, and their number: the mean is over all of an update.
    """
    mates = acted & (jnp.arange(acted.shape[0]) > 0)
    chosen = jax.nn.one_hot(actions, logits.shape[1], dtype=logits.dtype)
    likelihood = jnp.sum(jax.nn.log_softmax(logits) * chosen, axis=1)
    right = jnp.argmax(logits, axis=1) == actions
    return (
        -jnp.sum(jnp.where(mates, likelihood, 0.0)),
        jnp.sum(mates & right).astype(jnp.float32),
        jnp.sum(mates).astype(jnp.float32),
    )
