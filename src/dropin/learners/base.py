"""The networks of a learner: what it remembers, predicts and values.

A learner has a value network, which estimates what its actions are worth, and it may have a
teammate model, which predicts what the other agents will do. The two have separate weights. To add
a value-based learner, write a `ValueNetwork`: how it computes action values from type vectors and,
if these are to be inferred from something else than the features of each agent, from what.

What the networks compute while acting is recorded, and replayed for the gradient
(`models/tape.py`).
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from dropin.core.observation import Interface, Observation
from dropin.learners.config import LearnerConfig
from dropin.models import tape
from dropin.models.agent_model import AgentModel
from dropin.models.relational import GraphKind
from dropin.models.tape import Tape
from dropin.models.type_inference import FeedforwardTypeNetwork, TypeMemory, TypeNetwork

__all__ = [
    "LearnerInput",
    "LearnerNetwork",
    "Memory",
    "Prediction",
    "RecordedStep",
    "TeammateModel",
    "ValueNetwork",
    "make_type_network",
    "num_features",
]


class LearnerInput(eqx.Module):
    """An observation, with what the learner adds to it."""

    observation: Observation
    teammate_logits: Float[Array, "*n slot action"] | None = None
    """Predicted logits of every agent's next action; None without a teammate model."""
    positions: Int[Array, "*n slot"] | None = None
    """The position of every agent in an input of fixed length; None if there is no such input."""


class Memory(eqx.Module):
    """What the learner remembers, one row per slot."""

    value: TypeMemory
    """Of the value network."""
    agent: TypeMemory = None
    """Of the teammate model."""
    positions: Int[Array, "*n slot"] | None = None
    """The position of every agent in an input of fixed length."""


class Prediction(eqx.Module):
    """What the learner computes from an observation."""

    q_values: Float[Array, "*n action"]
    """The value of each action of the learner. No gradient reaches the teammate model from them."""
    teammate_logits: Float[Array, "*n slot action"] | None = None
    """Predicted logits of every agent's next action; None without a teammate model."""
    utilities: PyTree = None
    """The terms of GPL's coordination graph (`dropin.models.coordination.Utilities`)."""


class RecordedStep(eqx.Module):
    """A step of the networks that can be replayed."""

    inputs: LearnerInput
    key: PRNGKeyArray
    value_tapes: tuple[Tape, Tape]
    """Of type inference and of the rest of the value network."""
    agent_tapes: tuple[Tape, Tape]
    """Of type inference and of the rest of the teammate model; empty without one."""


TypeInputs = tuple[Float[Array, "node feature"], Float[Array, " shared"], Bool[Array, " node"]]
"""Features of each node, shared features, and which nodes have just arrived."""


class ValueNetwork(eqx.Module):
    """Computes action values. Type inference is recurrent, the rest is not."""

    type_network: TypeNetwork | FeedforwardTypeNetwork

    def init_memory(self, slots: int) -> TypeMemory:
        """Return the memory at the start of an episode, one row per slot."""
        return self.type_network.init_memory(slots)

    def type_inputs(self, inputs: LearnerInput) -> TypeInputs:
        """Return what the type network gets: by default the features of each agent.

        Returns:
            The features of each node, the features that all nodes share, and which nodes have just
            arrived.
        """
        seen = inputs.observation
        return seen.agents, seen.shared, seen.arrived

    def infer_types(
        self, memory: TypeMemory, inputs: LearnerInput
    ) -> tuple[Float[Array, "node type"], TypeMemory]:
        """Return the type vectors, and the memory afterwards.

        Args:
            memory: The memory after the previous observation.
            inputs: The observation, with predictions.
        """
        return self.type_network(memory, *self.type_inputs(inputs))

    def infer_types_over_time(
        self, memory: TypeMemory, inputs: LearnerInput
    ) -> tuple[Float[Array, "time env node type"], TypeMemory]:
        """Return the type vectors of several steps, and the memory afterwards.

        Args:
            memory: The memory before the first step, with a leading axis [env].
            inputs: The inputs, with leading axes [time, env].
        """
        if self.has_own_inference:
            return _scan_over_time(jax.vmap(self.infer_types), memory, inputs)
        return self.type_network.over_time(memory, *jax.vmap(jax.vmap(self.type_inputs))(inputs))

    @property
    def has_own_inference(self) -> bool:
        """Whether a subclass has replaced `infer_types`; then steps are not replayed."""
        return type(self).infer_types is not ValueNetwork.infer_types

    @abstractmethod
    def predict_values(
        self, types: Float[Array, "node type"], inputs: LearnerInput, key: PRNGKeyArray
    ) -> Prediction:
        """Return the action values.

        Args:
            types: The type vectors.
            inputs: The observation they were inferred from.
            key: A random key for learners that sample, used for nothing else.
        """

    def value_of_taken(
        self, prediction: Prediction, actions: Int[Array, " slot"], acted: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """Return the value of what was done: by default of the learner's own action.

        Args:
            prediction: The prediction for the state.
            actions: The joint action.
            acted: Which agents acted.
        """
        del acted
        chosen = jnp.arange(prediction.q_values.shape[0]) == actions[0]
        return jnp.sum(jnp.where(chosen, prediction.q_values, 0.0))


class TeammateModel(eqx.Module):
    """Type inference for predictions, and the agent model over the type vectors."""

    type_network: TypeNetwork | FeedforwardTypeNetwork
    model: AgentModel

    @classmethod
    def create(
        cls,
        interface: Interface,
        config: LearnerConfig,
        *keys: PRNGKeyArray,
        graph: GraphKind = "complete",
    ) -> "TeammateModel":
        """Make a model with new weights.

        Args:
            interface: The features and actions of the game.
            config: The sizes.
            *keys: Two random keys.
            graph: Which agents send messages to one another.
        """
        model = AgentModel(
            config.type_vector_size,
            config.message_hidden_size,
            config.embedding_size,
            config.readout_hidden_size,
            len(interface.actions),
            graph,
            key=keys[1],
        )
        return cls(make_type_network(config, num_features(interface), keys[0]), model)

    def __call__(
        self, memory: TypeMemory, observation: Observation
    ) -> tuple[Float[Array, "slot action"], TypeMemory]:
        """Return the logits of every agent's next action, and the memory afterwards."""
        logits, memory, _ = self.forward(memory, observation)
        return logits, memory

    def forward(
        self, memory: TypeMemory, observation: Observation
    ) -> tuple[Float[Array, "slot action"], TypeMemory, tuple[Tape, Tape]]:
        """Return the logits, the memory afterwards, and the tapes of the two networks.

        Args:
            memory: The memory after the previous observation.
            observation: What the learner observes.
        """
        seen = observation
        (types, memory), types_tape = tape.record(
            self.type_network, memory, seen.agents, seen.shared, seen.arrived
        )
        logits, model_tape = tape.record(self.model, types, seen.present)
        return logits, memory, (types_tape, model_tape)

    def replay(
        self, memory: TypeMemory, observation: Observation, tapes: tuple[Tape, Tape]
    ) -> Float[Array, "time env slot action"]:
        """Return the logits of recorded steps, differentiable with respect to the weights.

        Args:
            memory: The memory before the first step, with a leading axis [env].
            observation: The observations, with leading axes [time, env].
            tapes: The tapes of the steps, with leading axes [time, env].
        """
        seen, (types_tape, model_tape) = observation, tapes
        types, _ = tape.replay(
            types_tape, self.type_network.over_time, memory, seen.agents, seen.shared, seen.arrived
        )
        return _replay_each(model_tape, self.model, types, seen.present)


def num_features(interface: Interface) -> int:
    """Return the number of features of one agent, the shared ones included."""
    return len(interface.agent_features) + len(interface.shared_features)


def make_type_network(
    config: LearnerConfig, input_size: int, key: PRNGKeyArray
) -> TypeNetwork | FeedforwardTypeNetwork:
    """Make a type network of the sizes in the settings.

    Args:
        config: The sizes, and whether it is recurrent.
        input_size: Number of input features.
        key: A random key for the weights.
    """
    kind = TypeNetwork if config.is_recurrent else FeedforwardTypeNetwork
    return kind(
        input_size,
        config.type_hidden_size,
        config.type_lstm_size,
        config.type_vector_size,
        key=key,
    )


Values = TypeVar("Values", bound=ValueNetwork)
Config = TypeVar("Config", bound=LearnerConfig)


class LearnerNetwork(eqx.Module, Generic[Values, Config]):
    """All networks of a learner."""

    value: Values
    agent: TeammateModel | None
    """None if the learner predicts nothing."""
    config: Config = eqx.field(static=True)
    interface: Interface = eqx.field(static=True)

    def init_memory(self, slots: int) -> Memory:
        """Return the memory at the start of an episode."""
        agent = None if self.agent is None else self.agent.type_network.init_memory(slots)
        return Memory(self.value.init_memory(slots), agent)

    def on_arrival(self, memory: Memory, observation: Observation, key: PRNGKeyArray) -> Memory:
        """Update the memory for agents that have just arrived, before the observation is used.

        Args:
            memory: The memory after the last observation.
            observation: The new observation.
            key: A random key, used for nothing else.
        """
        del observation, key
        return memory

    def predict_teammates(
        self, memory: Memory, observation: Observation
    ) -> tuple[LearnerInput, TypeMemory]:
        """Add predictions to an observation; also return the teammate model's memory afterwards.

        Args:
            memory: The memory after the previous observation.
            observation: What the learner observes.
        """
        inputs, after, _ = self._predict_teammates(memory, observation)
        return inputs, after

    def _predict_teammates(
        self, memory: Memory, observation: Observation
    ) -> tuple[LearnerInput, TypeMemory, tuple[Tape, Tape]]:
        """Return the same as `predict_teammates`, and the tapes of the teammate model."""
        if self.agent is None:
            return LearnerInput(observation, positions=memory.positions), None, ((), ())
        logits, after, tapes = self.agent.forward(memory.agent, observation)
        return LearnerInput(observation, logits, memory.positions), after, tapes

    def infer_types(self, memory: Memory, observation: Observation) -> Float[Array, "node type"]:
        """Return the type vectors that the action values are computed from.

        Args:
            memory: The memory, up to date with who has arrived.
            observation: The observation.
        """
        inputs, _ = self.predict_teammates(memory, observation)
        return self.value.infer_types(memory.value, inputs)[0]

    def __call__(
        self, memory: Memory, observation: Observation, key: PRNGKeyArray
    ) -> tuple[Prediction, Memory]:
        """Compute action values from an observation.

        Args:
            memory: The memory, up to date with who has arrived.
            observation: The observation.
            key: A random key, used for nothing else.

        Returns:
            The prediction, and the memory afterwards.
        """
        prediction, memory, _ = self.forward(memory, observation, key)
        return prediction, memory

    def forward(
        self, memory: Memory, observation: Observation, key: PRNGKeyArray
    ) -> tuple[Prediction, Memory, RecordedStep]:
        """Compute action values as a call does; also return what `replay` needs.

        Args:
            memory: The memory after the previous observation.
            observation: What the learner observes.
            key: A random key, used for nothing else.
        """
        inputs, agent, agent_tapes = self._predict_teammates(memory, observation)
        (types, value), types_tape = tape.record(self.value.infer_types, memory.value, inputs)
        prediction, values_tape = tape.record(self.value.predict_values, types, inputs, key)
        if self.value.has_own_inference:
            types_tape = ()
        recorded = RecordedStep(inputs, key, (types_tape, values_tape), agent_tapes)
        return prediction, Memory(value, agent, memory.positions), recorded

    def replay(self, memory: Memory, steps: RecordedStep) -> Prediction:
        """Return the predictions of recorded steps, differentiable with respect to the weights.

        Args:
            memory: The memory before the first step, with a leading axis [env].
            steps: The steps, with leading axes [time, env].
        """
        types_tape, values_tape = steps.value_tapes
        types, _ = tape.replay(
            types_tape, self.value.infer_types_over_time, memory.value, steps.inputs
        )
        prediction = _replay_each(
            values_tape, self.value.predict_values, types, steps.inputs, steps.key
        )
        if self.agent is None:
            return prediction
        logits = self.agent.replay(memory.agent, steps.inputs.observation, steps.agent_tapes)
        return replace(prediction, teammate_logits=logits)


def _replay_each(tapes: Tape, function: Callable[..., Any], *args: PyTree) -> Any:
    """Replay a function of one step for all steps; arguments have leading axes [time, env]."""
    one = lambda tapes, *args: tape.replay(tapes, function, *args)  # noqa: E731
    return jax.vmap(jax.vmap(one))(tapes, *args)


def _scan_over_time(
    infer: Callable[..., Any], memory: TypeMemory, inputs: LearnerInput
) -> tuple[Float[Array, "time env node type"], TypeMemory]:
    """Infer types step by step."""

    def step(memory: TypeMemory, inputs: LearnerInput) -> tuple[TypeMemory, Any]:
        types, memory = infer(memory, inputs)
        return memory, types

    memory, types = jax.lax.scan(step, memory, inputs)
    return types, memory
