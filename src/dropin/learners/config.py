"""Settings that learners share: how to train, and the sizes of networks."""

from dataclasses import dataclass, field
from typing import Literal

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from dropin.core.config import Checked, PlainDict

__all__ = [
    "BASELINE_FORTATTACK_SIZES",
    "FORTATTACK_SIZES",
    "BaselineConfig",
    "LearnerConfig",
    "LinearSchedule",
    "TrainConfig",
]


@dataclass(frozen=True)
class LinearSchedule(Checked):
    """A value that changes linearly with the environment steps and then stays constant.

    It changes every `update_every` steps only, as in the authors' program.
    """

    initial: float
    final: float
    num_steps: int
    """Environment steps from the initial to the final value."""
    update_every: int = 3200
    """Environment steps between two changes."""

    def __call__(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Return the value at an environment step."""
        changes = max(self.num_steps // self.update_every, 1)
        share = jnp.minimum((step // self.update_every).astype(jnp.float32) / changes, 1.0)
        return self.initial + (self.final - self.initial) * share


@dataclass(frozen=True)
class TrainConfig(Checked):
    """How to train. The defaults are the paper's for LBF and Wolfpack (appendix E.3)."""

    num_envs: int = 16
    """Parallel environments."""
    rollout_length: int = 4
    """Steps of every environment between two updates."""
    learning_rate: float = 2.5e-4
    """Of Adam."""
    target_update_rate: float = 1e-3
    """alpha: how far the target moves towards the online weights at each update."""
    epsilon: LinearSchedule = field(default_factory=lambda: LinearSchedule(1.0, 0.05, 4_800_000))
    """Share of random actions of an epsilon-greedy policy."""
    temperature: LinearSchedule = field(
        default_factory=lambda: LinearSchedule(1.0, 0.01, 4_800_000)
    )
    """Of a Boltzmann policy, GPL-SPI's (the authors' program; the paper gives no value)."""

    @property
    def steps_per_update(self) -> int:
        """Environment steps between two updates, all environments together."""
        return self.num_envs * self.rollout_length

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """Adam with its usual constants, over all weights in one array."""
        return optax.flatten(optax.adam(self.learning_rate))


@dataclass(frozen=True)
class LearnerConfig(Checked):
    """Settings of type inference, agent model and targets, with the sizes of LBF and Wolfpack."""

    type_hidden_size: int = 100
    """Both layers before the LSTM (paper: 100)."""
    type_lstm_size: int = 100
    """The LSTM (paper: 100)."""
    type_vector_size: int = 70
    """The type vector (the paper's figure: 70)."""
    message_hidden_size: int = 30
    """First layer of the agent model's edge and node networks (paper: 30)."""
    embedding_size: int = 70
    """Second layer of the same (paper: 70)."""
    readout_hidden_size: int = 20
    """Hidden layer before the action logits (paper: 20)."""
    discount: float = 0.99
    """gamma (the authors' program)."""
    target: Literal["policy", "sarsa"] = "policy"
    """What a target bootstraps from: the value of the next state under the policy, or the value of
    the joint action that was taken in it."""

    @property
    def is_boltzmann(self) -> bool:
        """Whether the policy is a Boltzmann policy; otherwise it is epsilon-greedy."""
        return False

    @property
    def anneals_temperature(self) -> bool:
        """Whether the temperature of a Boltzmann policy follows the schedule; otherwise it is 1."""
        return True

    @property
    def is_recurrent(self) -> bool:
        """Whether type vectors depend on earlier observations."""
        return True


FORTATTACK_SIZES: PlainDict = {
    "type_hidden_size": 64,
    "type_lstm_size": 128,
    "type_vector_size": 128,
    "message_hidden_size": 40,
    "embedding_size": 70,
    "readout_hidden_size": 128,
}
"""The sizes of FortAttack (the LSTM and the type vector are those of the authors' program; paper:
64 and none)."""


@dataclass(frozen=True)
class BaselineConfig(LearnerConfig):
    """Settings of the learners that only value their own actions."""

    agent_model: bool = False
    """Whether predicted actions are part of the input: QL-AM and GNN-AM."""
    first_hidden_size: int = 70
    """First layer of the value network (paper: 70)."""
    second_hidden_size: int = 60
    """Second layer of the value network (paper: 60)."""


BASELINE_FORTATTACK_SIZES: PlainDict = {
    **FORTATTACK_SIZES,
    "first_hidden_size": 128,
    "second_hidden_size": 128,
}
"""The sizes of FortAttack for the baselines."""
