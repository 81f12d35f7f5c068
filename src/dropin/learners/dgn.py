"""DGN: graph convolutional reinforcement learning (Jiang et al., 2020), trained jointly.

The networks are those of GNN without memory. Everybody under control is a node that attends to all
and finds the values of its own actions in what it gets. Besides the squared error of these values
there is a price on change: whom an agent attends to should be much the same one step later.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.adhoc import Observation
from dropin.learners import gnn
from dropin.learners.base import Memory, Sight
from dropin.learners.gnn import GNN, GNNConfig
from dropin.learners.joint import Errors, JointConfig, Transition, controlled, explore, goals, total


@dataclass(frozen=True)
class DGNConfig(GNNConfig, JointConfig):
    """The networks, and how they learn."""

    replay: int = 200_000
    """Transitions that are kept (DGN's paper: 200,000)."""
    batch: int = 64
    """Transitions drawn at every update (DGN's paper: 10, of twenty and more agents each)."""
    steadiness: float = 0.03
    """lambda: the price on change of attention (paper: 0.03)."""

    @property
    def recurrent(self) -> bool:
        """There is no memory."""
        return False


class DGN(GNN):
    """The networks of DGN."""

    config: DGNConfig = eqx.field(static=True)

    def judge_all(
        self, sight: Sight
    ) -> tuple[Float[Array, "controlled action"], Float[Array, "head controlled slot"]]:
        """The values of the actions of all who are under control, and to whom they attend."""
        types, _ = self.value.read(None, sight)
        return self.value.judge_first(controlled(sight.seen), types, sight.seen.present)

    def act_all(
        self, memory: Memory, seen: Observation, epsilon: Float[Array, ""], key: PRNGKeyArray
    ) -> Int[Array, " controlled"]:
        """Everybody is epsilon-greedy."""
        del memory
        values, _ = self.judge_all(Sight(seen))
        return explore(values, epsilon, key)

    def errors(self, target: "DGN", step: Transition, key: PRNGKeyArray) -> Errors:
        """Squared errors against the best action that follows, and changes of attention."""
        del key
        values, weights = self.judge_all(step.before)
        following, _ = target.judge_all(step.after)
        chosen = jax.nn.one_hot(step.actions, values.shape[1], dtype=values.dtype)
        wanted = goals(step, self.config.discount, jnp.max(following, axis=1))
        error = jnp.sum(values * chosen, axis=1) - jax.lax.stop_gradient(wanted)

        _, later = self.judge_all(step.after)
        # Two maps can be compared if they are over the same agents.
        seen, after = step.before.seen, step.after.seen
        same = ~step.over & ~jnp.any(after.arrived | (seen.present != after.present))
        here = seen.present[: len(values)] & same
        change = attention_change(weights, jax.lax.stop_gradient(later), seen.present)
        return Errors(
            value=total(step.judged, error**2),
            judged=total(step.judged, jnp.ones_like(error)),
            extra=self.config.steadiness * total(here, change),
            concerned=total(here, jnp.ones_like(change)),
        )


def attention_change(
    now: Float[Array, "head asker node"],
    later: Float[Array, "head asker node"],
    present: Bool[Array, " node"],
) -> Float[Array, " asker"]:
    """How far everybody's attention is from what it will be: KL(now || later), over heads."""
    least = 1e-12
    now, later = jnp.maximum(now, least), jnp.maximum(later, least)
    each = jnp.where(present[None, None], now * (jnp.log(now) - jnp.log(later)), 0.0)
    return jnp.mean(jnp.sum(each, axis=2), axis=0)


CONFIG, LEARNER = DGNConfig, DGN
"""For the catalogue of learners."""
SIZES = gnn.SIZES
