"""MADDPG: actors of their own, a critic that knows what all do (Lowe et al., 2017).

The actor is QL's network without memory; what it gives are the logits of a policy. In training a
critic tells the value of what all who are under control do, each from its own place. The actor
follows the critic's gradient through a Gumbel-softmax sample of its action.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.adhoc import Interface, Observation
from dropin.learners import ql
from dropin.learners.base import Memory, Sight, type_network
from dropin.learners.joint import Errors, JointConfig, Transition, controlled, explore, goals, total
from dropin.learners.ql import QL, QLConfig
from dropin.learners.seats import flat_size, flatten, placed, seen_from
from dropin.models.layers import MLP
from dropin.models.type_inference import Impression, TypeNetwork


@dataclass(frozen=True)
class MADDPGConfig(QLConfig, JointConfig):
    """The networks, and how they learn."""

    replay: int = 1_000_000
    """Transitions that are kept (MADDPG's paper: a million)."""
    batch: int = 256
    """Transitions drawn at every update, each seen by all who acted (MADDPG's paper: 1024 for each
    agent's own networks)."""
    relaxation: float = 0.1
    """Temperature of the Gumbel-softmax (paper: 0.1)."""
    logit_price: float = 1e-3
    """Price on the mean square of the logits, which keeps policies from becoming certain too soon
    (the program of MADDPG's authors: 1e-3)."""

    @property
    def soft(self) -> bool:
        """The policy is drawn from."""
        return True

    @property
    def cools(self) -> bool:
        """The logits are those of the policy itself."""
        return False

    @property
    def recurrent(self) -> bool:
        """There is no memory."""
        return False


class Critic(eqx.Module):
    """The value of a joint action for whoever has the first place."""

    types: TypeNetwork | Impression
    values: MLP
    config: MADDPGConfig = eqx.field(static=True)
    meets: Interface = eqx.field(static=True)

    def __init__(self, meets: Interface, config: MADDPGConfig, *, key: PRNGKeyArray):
        first, second = jax.random.split(key)
        flat = flat_size(meets, config.places, False) + len(meets.shared)
        joint = config.places * len(meets.actions)
        self.types = type_network(config, flat + joint, first)
        sizes = [config.type_size, config.first_units, config.second_units, 1]
        self.values, self.config, self.meets = MLP(sizes, key=second), config, meets

    def __call__(self, sight: Sight, joint: Float[Array, "controlled action"]) -> Float[Array, ""]:
        """The value if everybody does with certainty, or to a degree, what `joint` says."""
        places, actions = self.config.places, joint.shape[1]
        slots = sight.seen.present.shape[0]
        rows = jnp.zeros((slots, actions)).at[: len(joint)].set(joint)
        # The places of the learner's side come first, and only these are under control.
        done = placed(sight, places, rows, jnp.full(actions, -1.0))
        flat = jnp.concatenate([flatten(sight, self.meets, places), done.reshape(-1)])
        seen = sight.seen
        types, _ = self.types(None, flat[None], seen.shared, seen.arrived[:1])
        return self.values(types[0])[0]


class MADDPG(QL):
    """The networks of MADDPG: those of QL as the actor, and a critic."""

    critic: Critic
    config: MADDPGConfig = eqx.field(static=True)

    def __init__(self, meets: Interface, config: MADDPGConfig, *, key: PRNGKeyArray):
        acting, judging = jax.random.split(key)
        super().__init__(meets, config, key=acting)
        self.critic = Critic(meets, config, key=judging)

    def logits_of_all(self, sight: Sight) -> Float[Array, "controlled action"]:
        """The logits of the policies of all who are under control."""

        def one(slot: Int[Array, ""]) -> Float[Array, " action"]:
            view = seen_from(slot, sight)
            types, _ = self.value.read(None, view)
            return self.value.judge(types, view, jax.random.key(0)).values

        return jax.vmap(one)(jnp.arange(controlled(sight.seen)))

    def act_all(
        self, memory: Memory, seen: Observation, epsilon: Float[Array, ""], key: PRNGKeyArray
    ) -> Int[Array, " controlled"]:
        """Everybody draws from the policy, or takes any action."""
        logits = self.logits_of_all(Sight(seen, seats=memory.seats))
        drawing, choosing = jax.random.split(key)
        noisy = logits + jax.random.gumbel(drawing, logits.shape)
        return explore(noisy, epsilon, choosing)

    def errors(self, target: "MADDPG", step: Transition, key: PRNGKeyArray) -> Errors:
        """Squared errors of the critic, and what the actor's action costs by the critic."""
        logits, later = self.logits_of_all(step.before), target.logits_of_all(step.after)
        number, actions = logits.shape
        slots, noise = jnp.arange(number), jax.random.gumbel(key, (2, number, actions))

        def one_hot(actions_of_all: Int[Array, " controlled"]) -> Float[Array, "controlled action"]:
            return jax.nn.one_hot(actions_of_all, actions, dtype=logits.dtype)

        following = one_hot(jnp.argmax(later + noise[0], axis=1))
        done = one_hot(step.actions)
        relaxed = gumbel_softmax(logits, noise[1], self.config.relaxation)
        frozen = jax.tree.map(jax.lax.stop_gradient, self.critic)

        def judge(slot: Int[Array, ""]) -> tuple[Array, Array, Array]:
            """Values of what was done, of what follows, and of the actor's action instead."""
            before, after = seen_from(slot, step.before), seen_from(slot, step.after)
            worth = target.critic(after, following)
            own = (slots == slot)[:, None]
            instead = frozen(before, jnp.where(own, relaxed, done))
            return self.critic(before, done), worth, instead

        values, worths, instead = jax.vmap(judge)(slots)
        wanted = goals(step, self.config.discount, worths)
        acted = step.before.seen.present[:number]
        price = self.config.logit_price * jnp.mean(logits**2, axis=1)
        return Errors(
            value=total(step.judged, (values - jax.lax.stop_gradient(wanted)) ** 2),
            judged=total(step.judged, jnp.ones_like(values)),
            extra=total(acted, price - instead),
            concerned=total(acted, jnp.ones_like(values)),
        )


def gumbel_softmax(
    logits: Float[Array, "*n action"], noise: Float[Array, "*n action"], temperature: float
) -> Float[Array, "*n action"]:
    """A draw from the policy, made smooth: with Gumbel noise and a low temperature it is nearly
    one action, and it has a gradient."""
    return jax.nn.softmax((logits + noise) / temperature, axis=-1)


CONFIG, LEARNER = MADDPGConfig, MADDPG
"""For the catalogue of learners."""
SIZES = ql.SIZES
