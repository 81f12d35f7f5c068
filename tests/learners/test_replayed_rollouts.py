"""The loss of a recorded rollout, for networks that are replayed and for those that are not."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from dropin.core import registry
from dropin.env import make
from dropin.learners.config import TrainConfig
from dropin.learners.gpl import GPLValueNetwork

KEY = jax.random.key(0)


class OwnInference(GPLValueNetwork):
    """Infers types as GPL does, in a method of its own."""

    def infer_types(self, memory, inputs):
        seen = inputs.observation
        return self.type_network(memory, seen.agents, seen.shared, seen.arrived)


def test_a_network_with_its_own_inference_is_not_replayed_and_learns_the_same():
    env = make("lbf", types=["H6"], size=5, objects=1)
    spec = registry.learners["gpl-q"]
    learner: Any = spec.make(spec.default_settings("lbf"), TrainConfig(num_envs=5))
    state = learner.init(KEY, env)
    gradients = []
    for kind in (GPLValueNetwork, OwnInference):
        value = object.__new__(kind)
        for name, part in vars(state.network.value).items():
            object.__setattr__(value, name, part)
        network = eqx.tree_at(lambda network: network.value, state.network, value)
        changed = eqx.tree_at(lambda state: state.network, state, network)
        assert network.value.has_own_inference == (kind is OwnInference)
        rollout, _ = eqx.filter_jit(learner.collect_rollout)(env, changed, KEY)
        assert bool(rollout.recorded.value_tapes[0]) == (kind is GPLValueNetwork)
        targets, _ = eqx.filter_jit(learner.td_targets)(changed, rollout, KEY)
        differentiate = eqx.filter_jit(eqx.filter_grad(learner.loss, has_aux=True))
        gradients.append(jax.tree.leaves(differentiate(network, rollout, targets)[0]))
    for one, two in zip(*gradients, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)
