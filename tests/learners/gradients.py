"""Which weights get a gradient from the two losses of a learner."""

import equinox as eqx
import jax
import jax.numpy as jnp

from dropin.learners.value_based import agent_model_loss


def of_both_losses(network, memory, observation, actions, acted):
    """Return the gradients of the value loss and of the prediction loss."""

    def losses(network):
        prediction, _ = network(memory, observation, jax.random.key(0))
        nll, _, count = agent_model_loss(prediction.teammate_logits, actions, acted)
        taken = network.value.value_of_taken(prediction, actions, acted)
        return (taken - 3) ** 2, nll / count

    def gradients(network):
        return [
            eqx.filter_grad(lambda network, which=which: losses(network)[which])(network)
            for which in (0, 1)
        ]

    return eqx.filter_jit(gradients)(network)


def nonzero(tree):
    """Return for each array whether it holds anything but zeros."""
    return [bool(jnp.any(leaf != 0)) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def check_separate(value, agent):
    """Check that each loss reaches all of its own network and nothing of the other."""
    assert not any(nonzero(value.agent))
    assert not any(nonzero(agent.value))
    assert all(nonzero(value.value))
    assert all(nonzero(agent.agent))
