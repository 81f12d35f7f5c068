"""Imitation beside a plain computation in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_imitation
from wolfpack_tables import Table, states

from dropin.zoo import wolfpack_h5

ENVS, SLOTS, ACTIONS = 6, 5, 5


def test_loss_and_accuracy():
    random = np.random.default_rng(2)
    logits = random.normal(size=(ENVS, SLOTS, ACTIONS))
    present = random.random((ENVS, SLOTS)) < 0.6
    actions = random.integers(0, ACTIONS, (ENVS, SLOTS))
    actions[::2] = logits[::2].argmax(axis=-1)
    loss, accuracy = wolfpack_h5._loss_fn(
        Table(logits), states(jnp.asarray(present)), jnp.asarray(actions, jnp.int32)
    )
    slow_loss, slow_accuracy = slow_imitation.loss(logits, actions, present)
    assert float(loss) == pytest.approx(slow_loss, rel=1e-5)
    assert float(accuracy) == pytest.approx(slow_accuracy)
    assert 0.3 < slow_accuracy < 1


def test_gradient():
    """The logits of a present agent go towards what it did, those of absent ones nowhere."""
    random = np.random.default_rng(3)
    logits = random.normal(size=(ENVS, SLOTS, ACTIONS))
    present = random.random((ENVS, SLOTS)) < 0.6
    actions = random.integers(0, ACTIONS, (ENVS, SLOTS))
    table = Table(logits)
    slope = jax.grad(
        lambda q: wolfpack_h5._loss_fn(
            Table(q), states(jnp.asarray(present)), jnp.asarray(actions, jnp.int32)
        )[0]
    )(table.outputs)
    for place in np.ndindex(ENVS, SLOTS):
        probs = np.exp(logits[place]) / np.exp(logits[place]).sum()
        expected = (probs - np.eye(ACTIONS)[actions[place]]) / present.sum() * present[place]
        assert np.asarray(slope[place]) == pytest.approx(expected, abs=1e-6)
