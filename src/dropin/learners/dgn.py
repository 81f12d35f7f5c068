"""DGN: graph convolutional reinforcement learning (Jiang et al., 2020), trained jointly.

The networks are those of GNN without memory. Every controlled agent is a node that attends to all
and computes the values of its own actions from the result. Besides the squared error of these
values, a change of attention from one step to the next is penalised.
"""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.core.observation import Observation
from dropin.core.specs import LearnerSpec
from dropin.learners.base import LearnerInput, Memory
from dropin.learners.common import masked_sum
from dropin.learners.config import BASELINE_FORTATTACK_SIZES
from dropin.learners.gnn import GNNConfig, GNNNetwork
from dropin.learners.replay_based import (
    LossTerms,
    ReplayConfig,
    ReplayLearner,
    Transition,
    epsilon_greedy_all,
    num_controlled,
    td_targets,
)

__all__ = ["SPECS", "DGNConfig", "DGNNetwork", "attention_change"]


@dataclass(frozen=True)
class DGNConfig(GNNConfig, ReplayConfig):
    """Settings of DGN, with the sizes of LBF and Wolfpack."""

    replay_capacity: int = 200_000
    """Number of transitions that are kept (DGN's paper: 200,000)."""
    batch_size: int = 64
    """Transitions sampled at every update (DGN's paper: 10, of twenty or more agents each)."""
    attention_regularization: float = 0.03
    """lambda: weight of the penalty on changes of attention (paper: 0.03)."""

    @property
    def is_recurrent(self) -> bool:
        """There is no memory."""
        return False


class DGNNetwork(GNNNetwork):
    """The networks of DGN."""

    config: DGNConfig = eqx.field(static=True)

    def values_of_all(
        self, inputs: LearnerInput
    ) -> tuple[Float[Array, "controlled action"], Float[Array, "head controlled slot"]]:
        """Return the action values of all controlled agents, and their attention weights."""
        types, _ = self.value.infer_types(None, inputs)
        number = num_controlled(inputs.observation)
        return self.value.attend(number, types, inputs.observation.present)

    def act_all(
        self, memory: Memory, observation: Observation, epsilon: Float[Array, ""], key: PRNGKeyArray
    ) -> Int[Array, " controlled"]:
        """Return an epsilon-greedy action for each controlled agent.

        Args:
            memory: Not used.
            observation: The observation.
            epsilon: Share of random actions.
            key: A random key, used for nothing else.
        """
        del memory
        values, _ = self.values_of_all(LearnerInput(observation))
        return epsilon_greedy_all(values, epsilon, key)

    def loss_terms(
        self, target: "DGNNetwork", transition: Transition, key: PRNGKeyArray
    ) -> LossTerms:
        """Return the squared errors against the best next action, and the changes of attention.

        Args:
            target: The target networks.
            transition: The transition.
            key: Not used.
        """
        del key
        values, weights = self.values_of_all(transition.inputs)
        next_values, _ = target.values_of_all(transition.next_inputs)
        chosen = jax.nn.one_hot(transition.actions, values.shape[1], dtype=values.dtype)
        targets = td_targets(transition, self.config.discount, jnp.max(next_values, axis=1))
        error = jnp.sum(values * chosen, axis=1) - jax.lax.stop_gradient(targets)

        _, next_weights = self.values_of_all(transition.next_inputs)
        # Two attention maps can be compared if they are over the same agents.
        now, later = transition.inputs.observation, transition.next_inputs.observation
        same = ~transition.episode_done & ~jnp.any(later.arrived | (now.present != later.present))
        here = now.present[: len(values)] & same
        change = attention_change(weights, jax.lax.stop_gradient(next_weights), now.present)
        return LossTerms(
            value=masked_sum(transition.has_target, error**2),
            value_count=masked_sum(transition.has_target, jnp.ones_like(error)),
            auxiliary=self.config.attention_regularization * masked_sum(here, change),
            auxiliary_count=masked_sum(here, jnp.ones_like(change)),
        )


def attention_change(
    weights: Float[Array, "head asker node"],
    next_weights: Float[Array, "head asker node"],
    present: Bool[Array, " node"],
) -> Float[Array, " asker"]:
    """Return KL(weights || next_weights) of each agent's attention, averaged over heads.

    Args:
        weights: Attention weights now.
        next_weights: Attention weights one step later.
        present: Which agents are present.
    """
    smallest = 1e-12
    now, later = jnp.maximum(weights, smallest), jnp.maximum(next_weights, smallest)
    each = jnp.where(present[None, None], now * (jnp.log(now) - jnp.log(later)), 0.0)
    return jnp.mean(jnp.sum(each, axis=2), axis=0)


SPECS = (
    LearnerSpec(
        name="dgn",
        summary="graph convolution by attention, trained together with partners like itself",
        settings=DGNConfig,
        make=partial(ReplayLearner, DGNNetwork),
        defaults={"fortattack": BASELINE_FORTATTACK_SIZES},
        fixed={"agent_model": False, "target": "policy"},
        evaluate_with=("strangers", "partners"),
        steps_per_second=14_600,
    ),
)
