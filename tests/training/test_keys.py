"""Every random key is used once: what asks for randomness in an update never gets the same key."""

from collections import defaultdict

import equinox as eqx
import jax
import pytest

import dropin
from dropin.core import registry
from dropin.env import AdHocEnv
from dropin.learners import value_based
from dropin.learners.config import TrainConfig
from dropin.learners.dgn import DGNNetwork
from dropin.learners.network_policy import NetworkPolicy
from dropin.learners.ql import QLNetwork


@pytest.fixture
def used(monkeypatch):
    """The keys that were passed to functions with random results, with the names of these."""
    keys = defaultdict(set)

    def watch(owner, name, position):
        original = getattr(owner, name)

        def watched(*args, **kwargs):
            data = jax.random.key_data(args[position])
            jax.debug.callback(lambda data: keys[data.tobytes()].add(name), data)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, watched)

    watch(AdHocEnv, "reset", 1)
    watch(AdHocEnv, "step_all", 1)
    watch(QLNetwork, "on_arrival", 3)
    watch(QLNetwork, "forward", 3)
    watch(DGNNetwork, "act_all", 4)
    watch(value_based, "select_action", 4)
    return keys


@pytest.mark.parametrize(
    ("name", "calls"),
    [("ql", 2 * 5 + 4 * 4 * 5), pytest.param("dgn", 5 + 2 * 4 * 5, marks=pytest.mark.slow)],
)
def test_no_key_is_used_twice_in_training(used, name, calls):
    env = dropin.make("lbf", types=["H6"], size=5, objects=1)
    spec = registry.learners[name]
    learner = spec.make(spec.default_settings("lbf"), TrainConfig(num_envs=5))
    state = learner.init(jax.random.key(0), env)
    eqx.filter_jit(learner.update)(env, state)
    jax.effects_barrier()
    assert len(used) == calls
    assert all(len(names) == 1 for names in used.values())


def test_no_key_is_used_twice_in_acting(used):
    env = dropin.make("lbf", types=["H6"], size=5, objects=1)
    spec = registry.learners["ql"]
    learner = spec.make(spec.default_settings("lbf"), TrainConfig())
    policy = learner.policy_template(env.interface)
    assert isinstance(policy, NetworkPolicy)
    key = jax.random.key(0)
    _, observation = env.reset(jax.random.key(1))
    policy.act(key, observation, policy.init_memory(env.slots))
    jax.effects_barrier()
    assert sorted(name for names in used.values() for name in names) == [
        "forward", "on_arrival", "reset"
    ]  # fmt: skip
    assert len(used) == 3
    assert jax.random.key_data(key).tobytes() not in used
