"""A2C beside a plain computation in NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_a2c
from slow_networks import gradient, layers_of, mlp

from dropin.models.layers import MLP
from dropin.zoo import lbf_h5

TIME, ENVS, AGENTS, INPUTS, ACTIONS = 4, 3, 4, 2, 3
CONFIG = lbf_h5.BestOfFour(discount=0.8, entropy_coef=0.3)


def networks(outputs, seed):
    build = eqx.filter_vmap(lambda key: MLP([INPUTS, 3, outputs], key=key))
    return build(jax.random.split(jax.random.key(seed), AGENTS))


class Rollout:
    """A rollout in which some episodes end."""

    def __init__(self):
        random = np.random.default_rng(4)
        shape = (TIME, ENVS, AGENTS)
        self.params = lbf_h5.ActorCritics(networks(ACTIONS, 1), networks(1, 2))
        self.inputs = 2 * random.normal(size=(*shape, INPUTS))
        self.last_inputs = random.normal(size=(*shape[1:], INPUTS))
        self.actions = random.integers(0, ACTIONS, shape)
        self.rewards = random.normal(size=shape)
        self.not_done = np.repeat(random.random((TIME, ENVS, 1)) < 0.7, AGENTS, axis=2)
        assert 0 < self.not_done.mean() < 1

    def transition(self):
        return lbf_h5.Transition(
            jnp.asarray(self.inputs, jnp.float32),
            jnp.asarray(self.actions, jnp.int32),
            jnp.asarray(self.rewards, jnp.float32),
            jnp.asarray(self.not_done, jnp.float32),
        )

    def outputs(self, stacked, inputs):
        """Return what each agent's own network says of what it saw."""
        rows = [
            mlp(layers_of(stacked, place[-1]), inputs[place])
            for place in np.ndindex(inputs.shape[:-1])
        ]
        return np.array(rows).reshape(*inputs.shape[:-1], -1)

    def loss(self, params, advantages, targets):
        logits = self.outputs(params.actors, self.inputs)
        values = self.outputs(params.critics, self.inputs)[..., 0]
        rows = (logits, values, self.actions, advantages, targets)
        return slow_a2c.loss(*rows, CONFIG.entropy_coef)

    def constants(self):
        """Return advantages and targets, which have no gradient."""
        last_values = self.outputs(self.params.critics, self.last_inputs)[..., 0]
        targets = slow_a2c.returns(self.rewards, last_values, self.not_done, CONFIG.discount)
        return targets - self.outputs(self.params.critics, self.inputs)[..., 0], targets


@pytest.fixture(scope="module")
def rollout():
    return Rollout()


def test_returns(rollout):
    last_values = rollout.outputs(rollout.params.critics, rollout.last_inputs)[..., 0]
    last_value = jnp.asarray(last_values, jnp.float32)
    fast = lbf_h5._calculate_returns(CONFIG, rollout.transition(), last_value)
    assert np.asarray(fast) == pytest.approx(rollout.constants()[1], abs=1e-5)


def test_loss_and_gradients(rollout):
    """Neither the targets nor the advantages are differentiated."""
    (loss, _), gradients = eqx.filter_value_and_grad(lbf_h5._loss_fn, has_aux=True)(
        rollout.params,
        CONFIG,
        rollout.transition(),
        jnp.asarray(rollout.last_inputs, jnp.float32),
    )
    constants = rollout.constants()
    assert float(loss) == pytest.approx(rollout.loss(rollout.params, *constants), rel=1e-5)

    leaves, structure = jax.tree.flatten(rollout.params)
    for number, found in enumerate(jax.tree.leaves(gradients)):

        def slow(row, number=number):
            changed = [np.asarray(leaf, np.float64) for leaf in leaves]
            changed[number] = row.reshape(changed[number].shape)
            return rollout.loss(jax.tree.unflatten(structure, changed), *constants)

        expected = gradient(slow, np.asarray(leaves[number], np.float64).ravel())
        assert np.abs(expected).max() > 1e-3
        assert np.asarray(found).ravel() == pytest.approx(expected, abs=1e-4)
