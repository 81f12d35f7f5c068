"""A dueling network over type vectors (Wang et al., 2016: Dueling Network Architectures).

Q(s, a) = V(s) + A(s, a) - mean over a' of A(s, a'), where V and A are computed from the learner's
own type vector and the mean of the type vectors of all agents present. So it fits every team size.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from dropin import Interface, LearnerSpec
from dropin.learners.base import (
    LearnerInput,
    LearnerNetwork,
    Prediction,
    ValueNetwork,
    make_type_network,
)
from dropin.learners.config import LearnerConfig
from dropin.learners.value_based import ValueLearner
from dropin.models.layers import MLP

__all__ = ["SPEC", "DuelingConfig", "DuelingNetwork", "DuelingValueNetwork"]


@dataclass(frozen=True)
class DuelingConfig(LearnerConfig):
    """Settings of the dueling network, besides those of type inference and targets."""

    hidden_size: int = 64
    """The hidden layer of V and of A."""


class DuelingValueNetwork(ValueNetwork):
    """Type inference, and two networks over the result: V and A."""

    state_value: MLP
    advantage: MLP

    def predict_values(
        self, types: Float[Array, "slot type"], inputs: LearnerInput, key: PRNGKeyArray
    ) -> Prediction:
        """Return the value of each action of the learner."""
        del key
        team = jnp.mean(types, axis=0, where=inputs.observation.present[:, None])
        features = jnp.concatenate([types[0], team])
        advantages = self.advantage(features)
        return Prediction(self.state_value(features) + advantages - jnp.mean(advantages))


class DuelingNetwork(LearnerNetwork[DuelingValueNetwork, DuelingConfig]):
    """The value network alone: nothing is predicted about teammates."""

    def __init__(self, interface: Interface, config: DuelingConfig, *, key: PRNGKeyArray):
        type_key, value_key, advantage_key = jax.random.split(key, 3)
        num_features = len(interface.agent_features) + len(interface.shared_features)
        sizes = [2 * config.type_vector_size, config.hidden_size]
        self.value = DuelingValueNetwork(
            make_type_network(config, num_features, type_key),
            state_value=MLP([*sizes, 1], key=value_key),
            advantage=MLP([*sizes, len(interface.actions)], key=advantage_key),
        )
        self.agent = None
        self.config, self.interface = config, interface


SPEC = LearnerSpec(
    name="dueling",
    summary="Q-learning with a dueling network over type vectors",
    settings=DuelingConfig,
    make=partial(ValueLearner, DuelingNetwork),
    steps_per_second=15000,
)
