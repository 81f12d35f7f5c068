"""MADDPG: an actor per agent and a critic of joint actions (Lowe et al., 2017).

The actor is QL's network without memory; its outputs are the logits of a policy. In training a
critic values the joint action of all controlled agents, each from its own perspective. The actor
follows the critic's gradient through a Gumbel-softmax sample of its action.
"""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin._xla.random import subkeys
from dropin.core.observation import Interface, Observation
from dropin.core.specs import LearnerSpec
from dropin.learners.base import LearnerInput, Memory, make_type_network
from dropin.learners.common import masked_sum
from dropin.learners.config import BASELINE_FORTATTACK_SIZES
from dropin.learners.positions import (
    flat_input_size,
    flatten_input,
    from_perspective_of,
    rows_by_position,
)
from dropin.learners.ql import QLConfig, QLNetwork
from dropin.learners.replay_based import (
    LossTerms,
    ReplayConfig,
    ReplayLearner,
    Transition,
    epsilon_greedy_all,
    num_controlled,
    td_targets,
)
from dropin.models.layers import MLP
from dropin.models.type_inference import FeedforwardTypeNetwork, TypeNetwork

__all__ = ["SPECS", "Critic", "MADDPGConfig", "MADDPGNetwork", "gumbel_softmax"]


@dataclass(frozen=True)
class MADDPGConfig(QLConfig, ReplayConfig):
    """Settings of MADDPG, with the sizes of LBF and Wolfpack."""

    replay_capacity: int = 1_000_000
    """Number of transitions that are kept (MADDPG's paper: a million)."""
    batch_size: int = 256
    """Number of transitions sampled at every update, each used from the perspective of all who
    acted (MADDPG's paper: 1024 for each agent's own networks)."""
    gumbel_temperature: float = 0.1
    """Temperature of the Gumbel-softmax (paper: 0.1)."""
    logit_penalty: float = 1e-3
    """Weight of the penalty on the mean square of the logits, which keeps policies from becoming
    deterministic too soon (the program of MADDPG's authors: 1e-3)."""

    @property
    def is_boltzmann(self) -> bool:
        """Whether actions are sampled from the policy."""
        return True

    @property
    def anneals_temperature(self) -> bool:
        """Whether there is a temperature: the logits are those of the policy itself."""
        return False

    @property
    def is_recurrent(self) -> bool:
        """There is no memory."""
        return False


class Critic(eqx.Module):
    """The value of a joint action for the agent at the first position.

    Args:
        interface: The names of what the learner observes and can do.
        config: The settings.
        key: A random key for the initial weights.
    """

    type_network: TypeNetwork | FeedforwardTypeNetwork
    values: MLP
    config: MADDPGConfig = eqx.field(static=True)
    interface: Interface = eqx.field(static=True)

    def __init__(self, interface: Interface, config: MADDPGConfig, *, key: PRNGKeyArray):
        first, second = subkeys(key)
        flat = flat_input_size(interface, config.max_agents_per_side, False)
        flat += len(interface.shared_features)
        joint = config.max_agents_per_side * len(interface.actions)
        self.type_network = make_type_network(config, flat + joint, first)
        sizes = [config.type_vector_size, config.first_hidden_size, config.second_hidden_size, 1]
        self.values, self.config, self.interface = MLP(sizes, key=second), config, interface

    def __call__(
        self, inputs: LearnerInput, joint_action: Float[Array, "controlled action"]
    ) -> Float[Array, ""]:
        """Return the value of a joint action.

        Args:
            inputs: The observation, with positions.
            joint_action: A one-hot or relaxed action per controlled agent.
        """
        positions, actions = self.config.max_agents_per_side, joint_action.shape[1]
        slots = inputs.observation.present.shape[0]
        rows = jnp.zeros((slots, actions)).at[: len(joint_action)].set(joint_action)
        # The positions of the learner's side come first, and only these agents are controlled.
        by_position = rows_by_position(inputs, positions, rows, jnp.full(actions, -1.0))
        features = flatten_input(inputs, self.interface, positions)
        flat = jnp.concatenate([features, by_position.reshape(-1)])
        seen = inputs.observation
        types, _ = self.type_network(None, flat[None], seen.shared, seen.arrived[:1])
        return self.values(types[0])[0]


class MADDPGNetwork(QLNetwork):
    """The networks of MADDPG: those of QL as the actor, and a critic.

    Args:
        interface: The names of what the learner observes and can do.
        config: The settings.
        key: A random key for the initial weights.
    """

    critic: Critic
    config: MADDPGConfig = eqx.field(static=True)

    def __init__(self, interface: Interface, config: MADDPGConfig, *, key: PRNGKeyArray):
        actor_key, critic_key = subkeys(key)
        super().__init__(interface, config, key=actor_key)
        self.critic = Critic(interface, config, key=critic_key)

    def logits_of_all(self, inputs: LearnerInput) -> Float[Array, "controlled action"]:
        """Return the policy logits of all controlled agents."""

        def one(slot: Int[Array, ""]) -> Float[Array, " action"]:
            view = from_perspective_of(slot, inputs)
            types, _ = self.value.infer_types(None, view)
            return self.value.predict_values(types, view, jax.random.key(0)).q_values

        return jax.vmap(one)(jnp.arange(num_controlled(inputs.observation)))

    def act_all(
        self, memory: Memory, observation: Observation, epsilon: Float[Array, ""], key: PRNGKeyArray
    ) -> Int[Array, " controlled"]:
        """Sample an action from each policy or, with probability epsilon, a uniformly random one.

        Args:
            memory: The memory, for the positions.
            observation: The observation.
            epsilon: Share of random actions.
            key: A random key, used for nothing else.
        """
        logits = self.logits_of_all(LearnerInput(observation, positions=memory.positions))
        gumbel_key, epsilon_key = subkeys(key)
        noisy = logits + jax.random.gumbel(gumbel_key, logits.shape)
        return epsilon_greedy_all(noisy, epsilon, epsilon_key)

    def loss_terms(
        self, target: "MADDPGNetwork", transition: Transition, key: PRNGKeyArray
    ) -> LossTerms:
        """Return the squared errors of the critic, and the actor's loss by the critic.

        Args:
            target: The target networks.
            transition: The transition.
            key: A random key, used for nothing else.
        """
        logits = self.logits_of_all(transition.inputs)
        next_logits = target.logits_of_all(transition.next_inputs)
        number, actions = logits.shape
        slots, noise = jnp.arange(number), jax.random.gumbel(key, (2, number, actions))

        def one_hot(joint: Int[Array, " controlled"]) -> Float[Array, "controlled action"]:
            return jax.nn.one_hot(joint, actions, dtype=logits.dtype)

        next_actions = one_hot(jnp.argmax(next_logits + noise[0], axis=1))
        taken = one_hot(transition.actions)
        relaxed = gumbel_softmax(logits, noise[1], self.config.gumbel_temperature)
        frozen_critic = jax.tree.map(jax.lax.stop_gradient, self.critic)

        def values_of(slot: Int[Array, ""]) -> tuple[Array, Array, Array]:
            """Return the values of what was done, of what follows, and of the actor's action."""
            now = from_perspective_of(slot, transition.inputs)
            later = from_perspective_of(slot, transition.next_inputs)
            next_value = target.critic(later, next_actions)
            own = (slots == slot)[:, None]
            actor_value = frozen_critic(now, jnp.where(own, relaxed, taken))
            return self.critic(now, taken), next_value, actor_value

        values, next_values, actor_values = jax.vmap(values_of)(slots)
        targets = td_targets(transition, self.config.discount, next_values)
        acted = transition.inputs.observation.present[:number]
        penalty = self.config.logit_penalty * jnp.mean(logits**2, axis=1)
        error = values - jax.lax.stop_gradient(targets)
        return LossTerms(
            value=masked_sum(transition.has_target, error**2),
            value_count=masked_sum(transition.has_target, jnp.ones_like(values)),
            auxiliary=masked_sum(acted, penalty - actor_values),
            auxiliary_count=masked_sum(acted, jnp.ones_like(values)),
        )


def gumbel_softmax(
    logits: Float[Array, "*n action"], noise: Float[Array, "*n action"], temperature: float
) -> Float[Array, "*n action"]:
    """Return a differentiable sample: with Gumbel noise and a low temperature, nearly one-hot.

    Args:
        logits: The logits of the policy.
        noise: Gumbel noise.
        temperature: The temperature.
    """
    return jax.nn.softmax((logits + noise) / temperature, axis=-1)


SPECS = (
    LearnerSpec(
        name="maddpg",
        summary="actors with a joint critic, trained together with partners like itself",
        settings=MADDPGConfig,
        make=partial(ReplayLearner, MADDPGNetwork),
        defaults={"fortattack": BASELINE_FORTATTACK_SIZES},
        fixed={"agent_model": False, "target": "policy"},
        evaluate_with=("strangers", "partners"),
        steps_per_second=14_700,
    ),
)
