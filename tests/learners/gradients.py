"""Which weights the two losses of a learner reach."""

import equinox as eqx
import jax
import jax.numpy as jnp

from dropin.learners.base import prediction_error


def of_both_losses(learner, memory, seen, actions, acted):
    """The gradient of the value loss, and that of the prediction loss."""

    def losses(learner):
        outlook, _ = learner(memory, seen, jax.random.key(0))
        missed, _, count = prediction_error(outlook.logits, actions, acted)
        taken = learner.value.taken(outlook, actions, acted)
        return (taken - 3) ** 2, missed / count

    def gradients(learner):
        return [
            eqx.filter_grad(lambda learner, which=which: losses(learner)[which])(learner)
            for which in (0, 1)
        ]

    return eqx.filter_jit(gradients)(learner)


def nonzero(tree):
    """For each array whether it holds anything but zeros."""
    return [bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def check_separate(value, agent):
    """Each loss reaches all of its own part and nothing of the other."""
    assert not any(nonzero(value.agent))
    assert not any(nonzero(agent.value))
    assert all(nonzero(value.value))
    assert all(nonzero(agent.agent))
