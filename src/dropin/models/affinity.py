"""Affinity graphs: coordination graphs with fewer edges, or with utilities of one sign (CIAO).

The terms of the joint action value are those of `dropin.models.coordination`, with two changes
(Wang et al., "Open Ad Hoc Teamwork with Cooperative Game Theory", ICML 2024):

    Q^j(a)     = f_individual(MLP_beta([theta_j; theta_0]))[a]
    Q^jk(a, b) = f_pair(U_jk[a] . U_kj[b])            for the edges {j, k} of the graph

where f(x) is x, |x|, -|x| or 0. The sign of a pairwise utility is that of the whole product, so
expectations of signed utilities need the table of all pairs of actions. Free ones are computed from
the factors, as in GPL, and so is the value of the actions that were taken, which alone is
differentiated.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dropin._xla.rows import add_row, matmul_rows
from dropin.models import tape
from dropin.models.coordination import (
    AgentFactors,
    CoordinationGraph,
    PairFactors,
    PairTerms,
    Utilities,
    joint_action_value,
)
from dropin.models.layers import Linear
from dropin.models.pairs import other_rows, pairs_by_slots, swap_pairs
from dropin.models.relational import GraphKind

__all__ = [
    "AffinityGraph",
    "PairTables",
    "Sign",
    "SignedTerms",
    "StarFactors",
    "StarTables",
    "apply_sign",
    "value_of_joint_action",
]

Sign = Literal["free", "positive", "negative", "zero"]
"""Which values a utility can have: any, |x|, -|x|, or 0."""


def apply_sign(values: Float[Array, "*n"], sign: Sign) -> Float[Array, "*n"]:
    """Return utilities with the sign that they may have.

    Args:
        values: Any values.
        sign: `free` leaves them as they are, `positive` is |x|, `negative` is -|x|, `zero` is 0.
    """
    match sign:
        case "positive":
            return jnp.abs(values)
        case "negative":
            return -jnp.abs(values)
        case "zero":
            return jnp.zeros_like(values)
    return values


class _Tables(eqx.Module):
    """Pairwise utilities as tables, whose sums need the action probabilities as they are."""

    def expected(self, probs: Float[Array, "slot action"]) -> Float[Array, "slot action"]:
        """Return what the sums need of action probabilities: the probabilities themselves.

        Args:
            probs: Action probabilities of each agent, or one-hot actions.
        """
        return probs


class PairTables(_Tables):
    """Pairwise utilities of all pairs of agents as tables over their actions."""

    values: Float[Array, "other slot action action"]
    """Q^jk(a, b) of ordered pairs, in the layout of `other_rows`: actions of j, then of k."""

    def sum_over_pairs(
        self, expected: Float[Array, "slot action"], members: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """Return the sum of the expected utilities of all unordered pairs of members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included.
        """
        if self.values.shape[0] == 0:
            return jnp.zeros((), expected.dtype)
        probs = jnp.where(members[:, None], expected, 0.0)
        over_partner = jnp.sum(self.values * other_rows(probs)[:, :, None, :], axis=-1)
        return jnp.sum(over_partner * probs[None]) / 2

    def sum_over_learner_pairs(
        self, expected: Float[Array, "slot action"], members: Bool[Array, " slot"]
    ) -> Float[Array, " action"]:
        """Return, for each action of the learner, the sum over its pairs with members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included; the learner's own entry is not used.
        """
        partners = jnp.where(members[1:, None], expected[1:], 0.0)
        return jnp.sum(self.values[:, 0] * partners[:, None, :], axis=(0, 2))

    def pair_utility(self, j: int, k: int) -> Float[Array, "action action"]:
        """Return Q^jk for all pairs of actions.

        Args:
            j: The slot whose actions are the rows.
            k: The slot whose actions are the columns; not `j`.
        """
        return self.values[(k - j) % self.values.shape[1] - 1, j]

    def tables(self) -> Float[Array, "slot slot action action"]:
        """Return Q^jk(a, b) at [j, k, a, b], with zeros where j is k."""
        return pairs_by_slots(self.values)


class StarTables(_Tables):
    """Pairwise utilities of the learner with each other agent; other pairs have none."""

    values: Float[Array, "other action action"]
    """Q^0j(a, b): actions of the learner, then of the agent in slot j = other + 1."""

    def sum_over_pairs(
        self, expected: Float[Array, "slot action"], members: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """Return the sum of the expected utilities of all edges between members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included. Without the learner there is no edge.
        """
        own = jnp.where(members[0], expected[0], 0.0)
        return jnp.sum(own * self.sum_over_learner_pairs(expected, members))

    def sum_over_learner_pairs(
        self, expected: Float[Array, "slot action"], members: Bool[Array, " slot"]
    ) -> Float[Array, " action"]:
        """Return, for each action of the learner, the sum over its pairs with members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included; the learner's own entry is not used.
        """
        partners = jnp.where(members[1:, None], expected[1:], 0.0)
        return jnp.sum(self.values * partners[:, None, :], axis=(0, 2))

    def pair_utility(self, j: int, k: int) -> Float[Array, "action action"]:
        """Return Q^jk for all pairs of actions; zeros for a pair without an edge.

        Args:
            j: The slot whose actions are the rows.
            k: The slot whose actions are the columns; not `j`.
        """
        if j == 0:
            return self.values[k - 1]
        return self.values[j - 1].T if k == 0 else jnp.zeros_like(self.values[0])

    def tables(self) -> Float[Array, "slot slot action action"]:
        """Return Q^jk(a, b) at [j, k, a, b], with zeros where there is no edge."""
        others, *actions = self.values.shape
        empty = jnp.zeros((others + 1, others + 1, *actions), self.values.dtype)
        return empty.at[0, 1:].set(self.values).at[1:, 0].set(jnp.swapaxes(self.values, 1, 2))


class StarFactors(eqx.Module):
    """Factors of the pairwise utilities of the learner with each other agent."""

    own: Float[Array, "other action rank"]
    """U_0j, of the learner."""
    partner: Float[Array, "other action rank"]
    """U_j0, of the agent in slot j = other + 1."""

    def expected(
        self, probs: Float[Array, "slot action"]
    ) -> tuple[Float[Array, "other rank"], Float[Array, "other rank"]]:
        """Return the expectation of each factor over the actions of its own agent.

        Args:
            probs: Action probabilities of each agent, or one-hot actions.

        Returns:
            Those of the learner and those of the other agents.
        """
        own = jnp.sum(self.own * probs[0][None, :, None], axis=1)
        return own, jnp.sum(self.partner * probs[1:, :, None], axis=1)

    def sum_over_pairs(
        self,
        expected: tuple[Float[Array, "other rank"], Float[Array, "other rank"]],
        members: Bool[Array, " slot"],
    ) -> Float[Array, ""]:
        """Return the sum of the expected utilities of all edges between members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included. Without the learner there is no edge.
        """
        own, partner = expected
        edges = members[0] & members[1:]
        return jnp.sum(jnp.where(edges[:, None], own * partner, 0.0))

    def sum_over_learner_pairs(
        self,
        expected: tuple[Float[Array, "other rank"], Float[Array, "other rank"]],
        members: Bool[Array, " slot"],
    ) -> Float[Array, " action"]:
        """Return, for each action of the learner, the sum over its pairs with members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included; the learner's own entry is not used.
        """
        partner = jnp.where(members[1:, None], expected[1], 0.0)
        return jnp.sum(self.own * partner[:, None, :], axis=(0, 2))

    def products(self) -> Float[Array, "other action action"]:
        """Return the products of the factors, with the learner's actions first."""
        return jnp.sum(self.own[:, :, None] * self.partner[:, None], axis=-1)

    def pair_utility(self, j: int, k: int) -> Float[Array, "action action"]:
        """Return Q^jk for all pairs of actions; zeros for a pair without an edge.

        Args:
            j: The slot whose actions are the rows.
            k: The slot whose actions are the columns; not `j`.
        """
        return StarTables(self.products()).pair_utility(j, k)

    def tables(self) -> Float[Array, "slot slot action action"]:
        """Return Q^jk(a, b) at [j, k, a, b], with zeros where there is no edge."""
        return StarTables(self.products()).tables()


class SignedTerms(eqx.Module):
    """Pairwise utilities of one sign: the factors, and the sign of their products."""

    factors: PairFactors | AgentFactors | StarFactors
    sign: Sign = eqx.field(static=True)

    def _tables(self) -> PairTables | StarTables:
        """Return the utilities of all pairs of actions."""
        factors = self.factors
        if isinstance(factors, StarFactors):
            return StarTables(apply_sign(factors.products(), self.sign))
        if isinstance(factors, AgentFactors):
            own, partner = factors.values[None], other_rows(factors.values)
        else:
            own, partner = factors.values, swap_pairs(factors.values)
        tables = jnp.sum(own[:, :, :, None] * partner[:, :, None], axis=-1)
        return PairTables(apply_sign(tables, self.sign))

    def expected(
        self, probs: Float[Array, "slot action"]
    ) -> tuple[PairTables | StarTables, Float[Array, "slot action"]]:
        """Return what the sums need of action probabilities: all tables, and the probabilities.

        Args:
            probs: Action probabilities of each agent, or one-hot actions.
        """
        return self._tables(), probs

    def sum_over_pairs(
        self,
        expected: tuple[PairTables | StarTables, Float[Array, "slot action"]],
        members: Bool[Array, " slot"],
    ) -> Float[Array, ""]:
        """Return the sum of the expected utilities of all unordered pairs of members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included.
        """
        tables, probs = expected
        return tables.sum_over_pairs(probs, members)

    def sum_over_learner_pairs(
        self,
        expected: tuple[PairTables | StarTables, Float[Array, "slot action"]],
        members: Bool[Array, " slot"],
    ) -> Float[Array, " action"]:
        """Return, for each action of the learner, the sum over its pairs with members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included; the learner's own entry is not used.
        """
        tables, probs = expected
        return tables.sum_over_learner_pairs(probs, members)

    def sum_of_taken(
        self, taken: Float[Array, "slot action"], members: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """Return the sum of the utilities of all unordered pairs of members, without any table.

        Args:
            taken: One-hot actions.
            members: Which agents are included.
        """
        mask = members.astype(taken.dtype)
        if isinstance(self.factors, StarFactors):
            own, partner = self.factors.expected(taken)
            values = apply_sign(jnp.sum(own * partner, axis=-1), self.sign)
            return jnp.sum(values * mask[1:]) * mask[0]
        if isinstance(self.factors, AgentFactors):
            factors = self.factors.expected(taken)
            own, partner = factors[None], other_rows(factors)
        else:
            own = self.factors.expected(taken)
            partner = swap_pairs(own)
        values = apply_sign(jnp.sum(own * partner, axis=-1), self.sign)
        return jnp.sum(values * mask[None] * other_rows(mask)) / 2

    def pair_utility(self, j: int, k: int) -> Float[Array, "action action"]:
        """Return Q^jk for all pairs of actions; zeros for a pair without an edge.

        Args:
            j: The slot whose actions are the rows.
            k: The slot whose actions are the columns; not `j`.
        """
        return self._tables().pair_utility(j, k)

    def tables(self) -> Float[Array, "slot slot action action"]:
        """Return Q^jk(a, b) at [j, k, a, b], with zeros where there is no edge."""
        return self._tables().tables()


def value_of_joint_action(
    utilities: Utilities, actions: Int[Array, " slot"], present: Bool[Array, " slot"]
) -> Float[Array, ""]:
    """Return the value Q(s, a) of a joint action, as `joint_action_value` does.

    Args:
        utilities: The utilities in the state s.
        actions: The joint action a, one action per slot.
        present: Which slots hold an agent.
    """
    if not isinstance(utilities.factors, SignedTerms):
        return joint_action_value(utilities, actions, present)
    taken = jax.nn.one_hot(actions, utilities.individual.shape[1], dtype=utilities.individual.dtype)
    individual = jnp.sum(jnp.where(present[:, None], taken * utilities.individual, 0.0))
    return individual + utilities.factors.sum_of_taken(taken, present)


class AffinityGraph(CoordinationGraph):
    """A coordination graph with a choice of edges and signs.

    With the complete graph and free signs it is `CoordinationGraph`, to the bit.

    Args:
        coordination: The networks.
        graph: Which pairs of agents have a utility: all, or those with the learner (`star`).
        individual_sign: The sign of individual utilities.
        pair_sign: The sign of pairwise utilities.
    """

    graph: GraphKind = eqx.field(static=True)
    individual_sign: Sign = eqx.field(static=True)
    pair_sign: Sign = eqx.field(static=True)

    def __init__(
        self,
        coordination: CoordinationGraph,
        graph: GraphKind,
        individual_sign: Sign,
        pair_sign: Sign,
    ):
        self.individual, self.pair = coordination.individual, coordination.pair
        self.rank, self.pair_input = coordination.rank, coordination.pair_input
        self.graph, self.individual_sign, self.pair_sign = graph, individual_sign, pair_sign

    def __call__(self, type_vectors: Float[Array, "slot type"]) -> Utilities:
        """Return the utilities of all agents and edges.

        Args:
            type_vectors: The type vector of each slot. The learner's, in slot 0, is an input of
                every utility.
        """
        if self.graph == "star":
            utilities = self._star(type_vectors)
        else:
            utilities = super().__call__(type_vectors)
        individual = apply_sign(utilities.individual, self.individual_sign)
        return Utilities(individual, self._signed(utilities.factors))

    def _star(self, type_vectors: Float[Array, "slot type"]) -> Utilities:
        """Return the utilities of all agents and of their edges with the learner."""
        learner = type_vectors[:1]
        individual = self.individual.apply_to_parts([type_vectors, learner])
        slots, num_actions = individual.shape
        shape = (slots - 1, num_actions, self.rank)
        if self.pair_input == "agent":
            values = self.pair.apply_to_parts([type_vectors, learner])
            values = values.reshape(slots, num_actions, self.rank)
            own = jnp.broadcast_to(values[:1], shape)
            return Utilities(individual, StarFactors(own, values[1:]))
        hidden = tape.layer(_first_star_layer, type_vectors, self.pair.layers[0])
        own, partner = self.pair.after_first_layer(hidden)
        return Utilities(individual, StarFactors(own.reshape(shape), partner.reshape(shape)))

    def _signed(self, factors: PairTerms) -> PairTerms:
        """Return factors with the sign of their products, if these may not have any."""
        if self.pair_sign == "free":
            return factors
        assert isinstance(factors, PairFactors | AgentFactors | StarFactors)
        return SignedTerms(factors, self.pair_sign)


def _first_star_layer(
    type_vectors: Float[Array, "slot type"], first: Linear
) -> Float[Array, "two other hidden"]:
    """Apply the first layer of the pair network to (learner, j) and to (j, learner), for all j."""
    size = type_vectors.shape[1]
    agent, partner, learner = (first.weight[n * size : (n + 1) * size] for n in range(3))
    of_agent = add_row(matmul_rows(type_vectors, agent), first.bias)
    hidden = of_agent + matmul_rows(type_vectors[:1], learner)
    of_partner = matmul_rows(type_vectors, partner)
    return jnp.stack([hidden[:1] + of_partner[1:], hidden[1:] + of_partner[:1]])
