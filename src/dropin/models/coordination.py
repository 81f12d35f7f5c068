"""The coordination graph: the joint action value as a sum over agents and pairs of agents.

Slot 0 is the learner i. Absent slots take no part, whatever they hold.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.models.layers import MLP

PairInput = Literal["pair", "agent"]


def partners(rows: Float[Array, "slot *n"]) -> Float[Array, "other slot *n"]:
    """For each slot j the rows of all other slots: [o, j] is that of slot j + o + 1, in a circle.

    With n slots there are n - 1 others, so no pair of an agent with itself is worked out.
    """
    return jnp.stack([jnp.roll(rows, -o, axis=0) for o in range(1, rows.shape[0])])


def turned(pairs: Float[Array, "other slot *n"]) -> Float[Array, "other slot *n"]:
    """The same pairs from the partner's side: [o, j] is what j + o + 1 has with j."""
    others = pairs.shape[0]
    return jnp.stack([jnp.roll(pairs[others - o], -o, axis=0) for o in range(1, others + 1)])


class PairFactors(eqx.Module):
    """Factors U_jk that belong to pairs: Q^jk(a, b) = U_jk[a] . U_kj[b]."""

    values: Float[Array, "other slot action rank"]

    def weigh(self, chances: Float[Array, "slot action"]) -> Float[Array, "other slot rank"]:
        """Each factor summed over its agent's actions with these weights."""
        return jnp.sum(self.values * chances[None, :, :, None], axis=2)

    def among(
        self, weighed: Float[Array, "other slot rank"], who: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """The sum over the unordered pairs of those who take part."""
        if weighed.shape[0] == 0:
            return jnp.zeros((), weighed.dtype)
        members = who.astype(weighed.dtype)
        both = members[None] * partners(members)
        return jnp.sum(both * jnp.sum(weighed * turned(weighed), axis=-1)) / 2

    def with_learner(
        self, weighed: Float[Array, "other slot rank"], who: Bool[Array, " slot"]
    ) -> Float[Array, " action"]:
        """The sum over the learner's pairs, for each of its actions."""
        actions = self.values.shape[2]
        if weighed.shape[0] == 0:
            return jnp.zeros(actions, weighed.dtype)
        theirs = turned(weighed)[:, 0] * who[1:, None].astype(weighed.dtype)
        return jnp.sum(self.values[:, 0] * theirs[:, None, :], axis=(0, 2))

    def utility(self, j: int, k: int) -> Float[Array, "action action"]:
        """Q^jk for all pairs of actions (Eq. 7)."""
        slots = self.values.shape[1]
        mine = self.values[(k - j) % slots - 1, j]
        return mine @ self.values[(j - k) % slots - 1, k].T


class AgentFactors(eqx.Module):
    """Factors U_j that belong to agents: Q^jk(a, b) = U_j[a] . U_k[b].

    Sums over pairs need no pairs: (|sum of f|^2 - sum of |f|^2) / 2.
    """

    values: Float[Array, "slot action rank"]

    def weigh(self, chances: Float[Array, "slot action"]) -> Float[Array, "slot rank"]:
        """Each factor summed over its agent's actions with these weights."""
        return jnp.sum(self.values * chances[:, :, None], axis=1)

    def among(
        self, weighed: Float[Array, "slot rank"], who: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """The sum over the unordered pairs of those who take part."""
        weighed = jnp.where(who[:, None], weighed, 0.0)
        return (jnp.sum(jnp.sum(weighed, axis=0) ** 2) - jnp.sum(weighed**2)) / 2

    def with_learner(
        self, weighed: Float[Array, "slot rank"], who: Bool[Array, " slot"]
    ) -> Float[Array, " action"]:
        """The sum over the learner's pairs, for each of its actions."""
        theirs = jnp.sum(jnp.where(who[1:, None], weighed[1:], 0.0), axis=0)
        return self.values[0] @ theirs

    def utility(self, j: int, k: int) -> Float[Array, "action action"]:
        """Q^jk for all pairs of actions (Eq. 7)."""
        return self.values[j] @ self.values[k].T


class Utilities(eqx.Module):
    """What the graph says in one state: all terms of the joint action value."""

    individual: Float[Array, "slot action"]
    """Q^j(a) (Eq. 6)."""
    factors: PairFactors | AgentFactors
    """Of the pair utilities Q^jk(a, b) (Eq. 7)."""


class CoordinationGraph(eqx.Module):
    """The networks behind the utilities."""

    individual: MLP
    pair: MLP
    rank: int = eqx.field(static=True)
    pair_input: PairInput = eqx.field(static=True)
    """Whose type vectors a factor depends on: "pair" (agent, partner, learner), as in the paper's
    pseudo-code and the authors' program, or "agent" (agent, learner), as in the main text."""

    def __init__(
        self,
        types: int,
        units: int,
        actions: int,
        rank: int,
        pair_input: PairInput = "pair",
        *,
        key: PRNGKeyArray,
    ):
        one, two = jax.random.split(key)
        self.individual = MLP([2 * types, units, units, actions], key=one)
        inputs = (3 if pair_input == "pair" else 2) * types
        self.pair = MLP([inputs, units, units, actions * rank], key=two)
        self.rank, self.pair_input = rank, pair_input

    def __call__(self, types: Float[Array, "slot type"]) -> Utilities:
        """All utilities, given the type vectors; the learner's own enters every one."""
        learner = types[:1]
        individual = self.individual.of_parts([types, learner])
        slots, actions = individual.shape
        if self.pair_input == "agent":
            values = self.pair.of_parts([types, learner])
            factors = AgentFactors(values.reshape(slots, actions, self.rank))
            return Utilities(individual, factors)
        return Utilities(individual, PairFactors(self._pair_values(types, actions)))

    def _pair_values(
        self, types: Float[Array, "slot type"], actions: int
    ) -> Float[Array, "other slot action rank"]:
        slots, width = types.shape
        if slots == 1:
            return jnp.zeros((0, 1, actions, self.rank), types.dtype)
        first = self.pair.layers[0]
        own, other, learner = (first.weight[k * width : (k + 1) * width] for k in range(3))
        hidden = (types @ own + types[:1] @ learner + first.bias[None])[None]
        values = self.pair.after_first(hidden + partners(types @ other))
        return values.reshape(slots - 1, slots, actions, self.rank)


def joint_value(
    utilities: Utilities, actions: Int[Array, " slot"], present: Bool[Array, " slot"]
) -> Float[Array, ""]:
    """Q(s, a): the sum of everybody's and every pair's utility for a joint action (Eq. 5).

    Each unordered pair counts once.
    """
    number = utilities.individual.shape[1]
    chosen = jax.nn.one_hot(actions, number, dtype=utilities.individual.dtype)
    weighed = utilities.factors.weigh(chosen)
    alone = jnp.sum(jnp.where(present[:, None], chosen * utilities.individual, 0.0))
    return alone + utilities.factors.among(weighed, present)


def marginal_values(
    utilities: Utilities, chances: Float[Array, "slot action"], present: Bool[Array, " slot"]
) -> Float[Array, " action"]:
    """Q(s, a^i): the expected joint value of each action of the learner (Eq. 9).

    `chances` are the teammates' action probabilities; the learner's row is not used.
    """
    mates = present & (jnp.arange(present.shape[0]) > 0)
    weighed = utilities.factors.weigh(chances)
    alone = jnp.sum(jnp.where(mates[:, None], chances * utilities.individual, 0.0))
    among = utilities.factors.among(weighed, mates)
    return utilities.individual[0] + utilities.factors.with_learner(weighed, mates) + alone + among


def best_values(utilities: Utilities, present: Bool[Array, " slot"]) -> Float[Array, " action"]:
    """The joint value of each action of the learner if the teammates did what suits it best.

    All their joint actions are tried, so this is for small teams.
    """
    slots, actions = utilities.individual.shape
    choices = jnp.indices((actions,) * (slots - 1)).reshape(slots - 1, -1).T.astype(jnp.int32)
    chances = jax.nn.one_hot(choices, actions, dtype=utilities.individual.dtype)
    learner = jnp.zeros((chances.shape[0], 1, actions), chances.dtype)
    chances = jnp.concatenate([learner, chances], axis=1)
    each = jax.vmap(marginal_values, in_axes=(None, 0, None))(utilities, chances, present)
    return jnp.max(each, axis=0)
