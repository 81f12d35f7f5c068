"""What a learner computes from one observation, with everything that can be shown of it."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.random import split
from dropin.core.observation import Observation
from dropin.core.specs import LearnedPolicy
from dropin.learners.network_policy import NetworkPolicy
from dropin.models.agent_model import action_probs
from dropin.models.coordination import Utilities

__all__ = ["Mind", "look_inside", "pair_tables"]


class Mind(eqx.Module):
    """What a learner computes from an observation before it acts.

    A learner without some part has None there: QL has no utilities and no type vector per agent, a
    policy that is no network has only `chosen`. Rows of absent agents have no meaning.
    """

    chosen: Int[Array, ""]
    """The action it chooses."""
    q_values: Float[Array, " action"] | None = None
    """The value of each of its actions; with a coordination graph the marginal values (Eq. 9)."""
    teammate_probs: Float[Array, "slot action"] | None = None
    """Predicted action probabilities of every agent (Eq. 8)."""
    individual: Float[Array, "slot action"] | None = None
    """The individual utilities (Eq. 6)."""
    edges: Float[Array, "slot slot"] | None = None
    """For each pair of agents the mean absolute pairwise utility (Eq. 7) over all pairs of actions;
    0 for an agent and itself."""
    type_vectors: Float[Array, "slot type"] | None = None
    """The type vectors that the action values are computed from."""


def look_inside(
    policy: LearnedPolicy,
    key: PRNGKeyArray,
    observation: Observation,
    memory: PyTree,
    mode: str = "greedy",
) -> tuple[Int[Array, ""], Mind, PyTree]:
    """Choose an action as the policy does; also return what it was chosen from.

    Args:
        policy: The policy of a learner. Only a `NetworkPolicy` can be looked into.
        key: A random key, used for nothing else.
        observation: What the learner observes.
        memory: The memory after the previous observation.
        mode: `greedy` or `sampled`.

    Returns:
        The action, what it was chosen from, and the memory afterwards.
    """
    if not isinstance(policy, NetworkPolicy):
        action, memory = policy.act(key, observation, memory, mode)
        return action, Mind(action), memory
    action, prediction, after = policy.act_with_prediction(key, observation, memory, mode)
    individual = edges = probs = None
    if isinstance(prediction.utilities, Utilities):
        individual = prediction.utilities.individual
        edges = jnp.mean(jnp.abs(prediction.utilities.factors.tables()), axis=(2, 3))
    if prediction.teammate_logits is not None:
        probs = action_probs(prediction.teammate_logits)
    mind = Mind(
        chosen=action,
        q_values=prediction.q_values,
        teammate_probs=probs,
        individual=individual,
        edges=edges,
        type_vectors=_type_vectors(policy, key, observation, memory),
    )
    return action, mind, after


def _type_vectors(
    policy: NetworkPolicy, key: PRNGKeyArray, observation: Observation, memory: PyTree
) -> Float[Array, "slot type"] | None:
    """Return the type vectors if there is one per agent.

    They are computed a second time; a compiled program computes them once.
    """
    # The same key as in `act_with_prediction`, for the same memory.
    arriving = split(key, 3)[0]
    memory = policy.network.on_arrival(memory, observation, arriving)
    types = policy.network.infer_types(memory, observation)
    return types if types.shape[0] == observation.present.shape[0] else None


def pair_tables(
    policy: LearnedPolicy, key: PRNGKeyArray, observation: Observation, memory: PyTree
) -> Float[Array, "slot slot action action"] | None:
    """Return the pairwise utilities of all pairs of agents and actions (Eq. 7).

    Args:
        policy: The policy of a learner.
        key: The key that the policy acts with.
        observation: What the learner observes.
        memory: The memory after the previous observation.

    Returns:
        Q^jk(a, b) at [j, k, a, b]; None for a learner without a coordination graph.
    """
    if not isinstance(policy, NetworkPolicy):
        return None
    utilities = policy.act_with_prediction(key, observation, memory)[1].utilities
    return utilities.factors.tables() if isinstance(utilities, Utilities) else None
