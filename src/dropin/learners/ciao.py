"""CIAO: GPL-Q as a cooperative game (Wang et al., ICML 2024).

The paper reads GPL's joint action value as the value of a coalition of all agents. Conditions under
which the coalition is stable become three changes of GPL-Q:

* **the graph**: pairwise utilities of all pairs (CIAO-C), or of the learner with each other agent
  only (CIAO-S). The agent model passes its messages along the same edges;
* **signs**: individual and pairwise utilities are positive, see `dropin.models.affinity`;
* **a regularizer** R on the individual utilities u_j of the actions taken, weighted by alpha:

      CIAO-C:  R = mean over agents j of all steps of (u_j(a_j) - sg u_0(a_0))^2
      CIAO-S:  R = mean over steps of (u_0(a_0) - sg sum_{j > 0} u_j(a_j))^2

  where sg stops the gradient and 0 is the learner.

Everything else is GPL-Q. With the complete graph, free signs and alpha 0 it *is* GPL-Q.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin._xla.random import subkeys
from dropin.core.metrics import Mean, Metric
from dropin.core.observation import Interface, TimeStep
from dropin.core.specs import LearnerSpec
from dropin.learners.base import LearnerNetwork, Prediction, TeammateModel
from dropin.learners.gpl import GPL_SIZES, GPLConfig, GPLNetwork, GPLValueNetwork
from dropin.learners.value_based import ValueLearner
from dropin.models.affinity import AffinityGraph, Sign, value_of_joint_action
from dropin.models.relational import GraphKind

__all__ = ["SPECS", "VARIANTS", "CIAOConfig", "CIAOLearner", "CIAONetwork", "CIAOValueNetwork"]


@dataclass(frozen=True)
class CIAOConfig(GPLConfig):
    """Settings of CIAO, with the sizes of LBF and Wolfpack."""

    graph: GraphKind = "complete"
    """Which agents are joined: all of them (CIAO-C), or each one with the learner (CIAO-S)."""
    individual_sign: Sign = "positive"
    """The sign of individual utilities: `free`, `positive`, `negative` or `zero`."""
    pair_sign: Sign = "positive"
    """The sign of pairwise utilities."""
    regularization: float = 0.5
    """alpha, the weight of the regularizer R."""
    mask_growth: bool = False
    """Whether steps after which somebody enters count neither in the value loss nor in R."""


VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "zi": {"individual_sign": "zero"},
    "ni": {"individual_sign": "negative"},
    "fi": {"individual_sign": "free"},
    "np": {"pair_sign": "negative"},
    "nr": {"regularization": 0.0},
    "va": {"mask_growth": True},
}
"""The settings of the variants in the CIAO paper, by the ends of their names, as in CIAO-C-ZI."""


class CIAOValueNetwork(GPLValueNetwork):
    """Type inference for values, and the affinity graph over the type vectors."""

    def value_of_taken(
        self, prediction: Prediction, actions: Int[Array, " slot"], acted: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """Return the joint value of what everybody did."""
        return value_of_joint_action(prediction.utilities, actions, acted)


class CIAONetwork(LearnerNetwork[GPLValueNetwork, CIAOConfig]):
    """The networks of CIAO: those of GPL with another graph.

    Args:
        interface: The names of what the learner observes and can do.
        config: The settings.
        key: A random key for the initial weights, which are those of GPL with the same key.
    """

    def __init__(self, interface: Interface, config: CIAOConfig, *, key: PRNGKeyArray):
        value = GPLNetwork(interface, config, key=key).value
        graph = AffinityGraph(value.graph, config.graph, config.individual_sign, config.pair_sign)
        self.value = CIAOValueNetwork(value.type_network, graph, config)
        keys = subkeys(key, 4)
        self.agent = TeammateModel.create(interface, config, keys[1], keys[3], graph=config.graph)
        self.config, self.interface = config, interface


class CIAOLearner(ValueLearner[CIAOConfig]):
    """GPL-Q with a regularizer, and with steps that do not count."""

    def value_loss(
        self, predictions: Prediction, steps: TimeStep, errors: Float[Array, "time env"]
    ) -> tuple[Float[Array, ""], dict[str, Metric]]:
        """Return the loss of the values plus alpha R, and metrics.

        Args:
            predictions: What the networks predicted, with leading axes [time, env].
            steps: The steps, with the same axes.
            errors: The squared error of the value of the actions taken in each step.
        """
        counts = jnp.ones_like(errors)
        metrics: dict[str, Metric]
        loss, metrics = super().value_loss(predictions, steps, errors)
        if self.config.mask_growth:
            grew = jnp.any(steps.final_observation.arrived, axis=-1)
            counts = jnp.where(grew, 0.0, 1.0)
            loss = _mean(errors, counts)
            metrics = {"value_loss": Mean.of(loss)}
        if self.config.regularization == 0:
            return loss, metrics
        regularizer = self._regularizer(predictions, steps, counts)
        metrics["regularizer"] = Mean.of(regularizer)
        return loss + self.config.regularization * regularizer, metrics

    def _regularizer(
        self, predictions: Prediction, steps: TimeStep, counts: Float[Array, "time env"]
    ) -> Float[Array, ""]:
        """Return R over the steps that count."""
        individual = predictions.utilities.individual
        taken = jax.nn.one_hot(steps.actions, individual.shape[-1], dtype=individual.dtype)
        utilities = jnp.where(steps.acted, jnp.sum(individual * taken, axis=-1), 0.0)
        learner, others = utilities[..., :1], utilities[..., 1:]
        if self.config.graph == "star":
            target = jax.lax.stop_gradient(jnp.sum(others, axis=-1))
            return _mean((learner[..., 0] - target) ** 2, counts)
        acted = jnp.where(steps.acted, counts[..., None], 0.0)
        return _mean((utilities - jax.lax.stop_gradient(learner)) ** 2, acted)


def _mean(values: Float[Array, "*n"], weights: Float[Array, "*n"]) -> Float[Array, ""]:
    """Return the mean of those values whose weight is 1; the other weights are 0."""
    return jnp.sum(values * weights) / jnp.maximum(jnp.sum(weights), 1.0)


def _spec(name: str, summary: str, graph: GraphKind, steps_per_second: float) -> LearnerSpec:
    return LearnerSpec(
        name=name,
        summary=summary,
        settings=CIAOConfig,
        make=partial(CIAOLearner, CIAONetwork),
        defaults=GPL_SIZES,
        fixed={"policy": "q", "graph": graph},
        steps_per_second=steps_per_second,
    )


SPECS = (
    _spec("ciao-c", "GPL-Q as a cooperative game, complete graph", "complete", 24_500),
    _spec("ciao-s", "GPL-Q as a cooperative game, star around the learner", "star", 25_600),
)
