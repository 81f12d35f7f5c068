"""The coordination graph: the joint action value as a sum over agents and pairs of agents.

Slot 0 is the learner i, and j and k are any two agents. Absent slots contribute nothing, whatever
finite numbers they hold.

The pairwise utilities of all actions are never stored. They are products of low-rank factors, so
sums and expectations of them are computed from the factors (Eq. 7).
"""

from typing import Any, Literal, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.random import subkeys
from dropin._xla.rows import add_row, matmul_rows
from dropin.models import tape
from dropin.models.layers import MLP, Linear
from dropin.models.pairs import other_rows, pairs_by_slots, swap_pairs

__all__ = [
    "AgentFactors",
    "CoordinationGraph",
    "PairFactors",
    "PairInput",
    "PairTerms",
    "Utilities",
    "joint_action_value",
    "marginal_action_values",
    "optimistic_values",
]

PairInput = Literal["pair", "agent"]
"""Which type vectors a factor of a pairwise utility depends on, see `CoordinationGraph`."""


class PairFactors(eqx.Module):
    """Factors of the pairwise utilities, one for each ordered pair of agents.

    The utility of a pair is Q^jk(a, b) = U_jk[a] . U_kj[b] (Eq. 7).
    """

    values: Float[Array, "other slot action rank"]
    """U_jk, in the layout of `other_rows`."""

    def expected(self, probs: Float[Array, "slot action"]) -> Float[Array, "other slot rank"]:
        """Return the expectation of each factor over the actions of its own agent.

        Args:
            probs: Action probabilities of each agent, or one-hot actions.
        """
        return jnp.sum(self.values * probs[None, :, :, None], axis=2)

    def sum_over_pairs(
        self, expected: Float[Array, "other slot rank"], members: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """Return the sum of the expected utilities of all unordered pairs of members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included.
        """
        if expected.shape[0] == 0:
            return jnp.zeros((), expected.dtype)
        mask = members.astype(expected.dtype)
        both = mask[None] * other_rows(mask)
        return jnp.sum(both * jnp.sum(expected * swap_pairs(expected), axis=-1)) / 2

    def sum_over_learner_pairs(
        self, expected: Float[Array, "other slot rank"], members: Bool[Array, " slot"]
    ) -> Float[Array, " action"]:
        """Return, for each action of the learner, the sum over its pairs with members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included; the learner's own entry is not used.
        """
        num_actions = self.values.shape[2]
        if expected.shape[0] == 0:
            return jnp.zeros(num_actions, expected.dtype)
        # The other agent of the learner's pair o is in slot o + 1.
        partners = swap_pairs(expected)[:, 0] * members[1:, None].astype(expected.dtype)
        return jnp.sum(self.values[:, 0] * partners[:, None, :], axis=(0, 2))

    def pair_utility(self, j: int, k: int) -> Float[Array, "action action"]:
        """Return Q^jk for all pairs of actions (Eq. 7).

        Args:
            j: The slot whose actions are the rows.
            k: The slot whose actions are the columns; not `j`.
        """
        slots = self.values.shape[1]
        factor_jk = self.values[(k - j) % slots - 1, j]
        return factor_jk @ self.values[(j - k) % slots - 1, k].T

    def tables(self) -> Float[Array, "slot slot action action"]:
        """Return Q^jk(a, b) at [j, k, a, b], with zeros where j is k."""
        factors = pairs_by_slots(self.values)
        return jnp.einsum("jkar,kjbr->jkab", factors, factors)


class AgentFactors(eqx.Module):
    """Factors of the pairwise utilities, one for each agent.

    The utility of a pair is Q^jk(a, b) = U_j[a] . U_k[b] (Eq. 7). The sum over all unordered pairs
    of vectors f needs no loop over pairs: it is (|sum f|^2 - sum |f|^2) / 2.
    """

    values: Float[Array, "slot action rank"]
    """U_j."""

    def expected(self, probs: Float[Array, "slot action"]) -> Float[Array, "slot rank"]:
        """Return the expectation of each factor over the actions of its agent.

        Args:
            probs: Action probabilities of each agent, or one-hot actions.
        """
        return jnp.sum(self.values * probs[:, :, None], axis=1)

    def sum_over_pairs(
        self, expected: Float[Array, "slot rank"], members: Bool[Array, " slot"]
    ) -> Float[Array, ""]:
        """Return the sum of the expected utilities of all unordered pairs of members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included.
        """
        expected = jnp.where(members[:, None], expected, 0.0)
        return (jnp.sum(jnp.sum(expected, axis=0) ** 2) - jnp.sum(expected**2)) / 2

    def sum_over_learner_pairs(
        self, expected: Float[Array, "slot rank"], members: Bool[Array, " slot"]
    ) -> Float[Array, " action"]:
        """Return, for each action of the learner, the sum over its pairs with members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included; the learner's own entry is not used.
        """
        partners = jnp.sum(jnp.where(members[1:, None], expected[1:], 0.0), axis=0)
        return self.values[0] @ partners

    def pair_utility(self, j: int, k: int) -> Float[Array, "action action"]:
        """Return Q^jk for all pairs of actions (Eq. 7).

        Args:
            j: The slot whose actions are the rows.
            k: The slot whose actions are the columns; not `j`.
        """
        return self.values[j] @ self.values[k].T

    def tables(self) -> Float[Array, "slot slot action action"]:
        """Return Q^jk(a, b) at [j, k, a, b], with zeros where j is k."""
        distinct = ~np.eye(self.values.shape[0], dtype=bool)[:, :, None, None]
        return jnp.where(distinct, jnp.einsum("jar,kbr->jkab", self.values, self.values), 0.0)


class PairTerms(Protocol):
    """Pairwise utilities in some form, with what the joint action value needs of them."""

    def expected(self, probs: Float[Array, "slot action"]) -> PyTree:
        """Return what the sums below need of action probabilities, or of one-hot actions."""
        ...

    def sum_over_pairs(self, expected: Any, members: Bool[Array, " slot"]) -> Float[Array, ""]:
        """Return the sum of the expected utilities of all unordered pairs of members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included.
        """
        ...

    def sum_over_learner_pairs(
        self, expected: Any, members: Bool[Array, " slot"]
    ) -> Float[Array, " action"]:
        """Return, for each action of the learner, the sum over its pairs with members.

        Args:
            expected: The result of `expected`.
            members: Which agents are included; the learner's own entry is not used.
        """
        ...

    def pair_utility(self, j: int, k: int) -> Float[Array, "action action"]:
        """Return Q^jk for all pairs of actions (Eq. 7).

        Args:
            j: The slot whose actions are the rows.
            k: The slot whose actions are the columns; not `j`.
        """
        ...

    def tables(self) -> Float[Array, "slot slot action action"]:
        """Return Q^jk(a, b) at [j, k, a, b], with zeros where j is k. It is for showing it."""
        ...


class Utilities(eqx.Module):
    """All terms of the joint action value in one state."""

    individual: Float[Array, "slot action"]
    """The individual utilities Q^j(a) (Eq. 6)."""
    factors: PairTerms
    """The pairwise utilities Q^jk(a, b) (Eq. 7), as a rule by their factors."""


class CoordinationGraph(eqx.Module):
    """The networks that compute individual and pairwise utilities from type vectors.

    Args:
        type_size: Size of a type vector.
        hidden_size: Size of the two hidden layers of both networks.
        num_actions: Number of actions.
        rank: Rank K of the factorisation of pairwise utilities.
        pair_input: Which type vectors a factor depends on: "pair" for the agent, its partner and
            the learner, as in the paper's pseudo-code and the authors' program; "agent" for the
            agent and the learner, as in the main text.
        key: A random key for the initial weights.
    """

    individual: MLP
    pair: MLP
    rank: int = eqx.field(static=True)
    pair_input: PairInput = eqx.field(static=True)

    def __init__(
        self,
        type_size: int,
        hidden_size: int,
        num_actions: int,
        rank: int,
        pair_input: PairInput = "pair",
        *,
        key: PRNGKeyArray,
    ):
        individual_key, pair_key = subkeys(key)
        self.individual = MLP(
            [2 * type_size, hidden_size, hidden_size, num_actions], key=individual_key
        )
        pair_input_size = (3 if pair_input == "pair" else 2) * type_size
        self.pair = MLP(
            [pair_input_size, hidden_size, hidden_size, num_actions * rank], key=pair_key
        )
        self.rank, self.pair_input = rank, pair_input

    def __call__(self, type_vectors: Float[Array, "slot type"]) -> Utilities:
        """Return the utilities of all agents and pairs (Eq. 6 and 7).

        Args:
            type_vectors: The type vector of each slot. The learner's, in slot 0, is an input of
                every utility.
        """
        learner = type_vectors[:1]
        individual = self.individual.apply_to_parts([type_vectors, learner])
        slots, num_actions = individual.shape
        if self.pair_input == "agent":
            values = self.pair.apply_to_parts([type_vectors, learner])
            factors = AgentFactors(values.reshape(slots, num_actions, self.rank))
            return Utilities(individual, factors)
        return Utilities(individual, PairFactors(self._pair_values(type_vectors, num_actions)))

    def _pair_values(
        self, type_vectors: Float[Array, "slot type"], num_actions: int
    ) -> Float[Array, "other slot action rank"]:
        """Return the factors of all ordered pairs.

        The first layer is applied to agents, partners and learner separately, as in
        `MLP.apply_to_parts`, so that each type vector is multiplied once and not once per pair.
        """
        slots = len(type_vectors)
        if slots == 1:
            return jnp.zeros((0, 1, num_actions, self.rank), type_vectors.dtype)
        hidden = tape.layer(_first_pair_layer, type_vectors, self.pair.layers[0])
        values = self.pair.after_first_layer(hidden)
        return values.reshape(slots - 1, slots, num_actions, self.rank)


def _first_pair_layer(
    type_vectors: Float[Array, "slot type"], first: Linear
) -> Float[Array, "other slot hidden"]:
    """Apply the first layer of the pair network to agent, partner and learner of all pairs."""
    size = type_vectors.shape[1]
    agent, partner, learner = (first.weight[n * size : (n + 1) * size] for n in range(3))
    of_agent = add_row(matmul_rows(type_vectors, agent), first.bias)
    hidden = of_agent + matmul_rows(type_vectors[:1], learner)
    return hidden[None] + other_rows(matmul_rows(type_vectors, partner))


def joint_action_value(
    utilities: Utilities, actions: Int[Array, " slot"], present: Bool[Array, " slot"]
) -> Float[Array, ""]:
    """Return the value Q(s, a) of a joint action (Eq. 5).

    It is the sum of the individual utilities of all agents and the pairwise utilities of all
    unordered pairs: each pair counts once.

    Args:
        utilities: The utilities in the state s.
        actions: The joint action a, one action per slot.
        present: Which slots hold an agent.
    """
    num_actions = utilities.individual.shape[1]
    one_hot = jax.nn.one_hot(actions, num_actions, dtype=utilities.individual.dtype)
    factors = utilities.factors.expected(one_hot)
    individual = jnp.sum(jnp.where(present[:, None], one_hot * utilities.individual, 0.0))
    return individual + utilities.factors.sum_over_pairs(factors, present)


def marginal_action_values(
    utilities: Utilities, probs: Float[Array, "slot action"], present: Bool[Array, " slot"]
) -> Float[Array, " action"]:
    """Return the marginal value of each action a^i of the learner (Eq. 9).

    It is the expectation of the joint action value over the actions of the teammates, who choose
    independently. No sum over joint actions is needed.

    Args:
        utilities: The utilities in the state s.
        probs: Action probabilities of each agent; the learner's row is not used.
        present: Which slots hold an agent; the learner's entry is not used.
    """
    teammates = present & (jnp.arange(present.shape[0]) > 0)
    factors = utilities.factors.expected(probs)
    individual = jnp.sum(jnp.where(teammates[:, None], probs * utilities.individual, 0.0))
    pairs = utilities.factors.sum_over_pairs(factors, teammates)
    own = utilities.individual[0] + utilities.factors.sum_over_learner_pairs(factors, teammates)
    return own + individual + pairs


def optimistic_values(
    utilities: Utilities, present: Bool[Array, " slot"]
) -> Float[Array, " action"]:
    """Return the value of each action of the learner if the teammates respond in the best way.

    It is the largest joint action value over all joint actions of the teammates. All of them are
    tried, num_actions ** (slots - 1) in number, so this is for small teams.

    Args:
        utilities: The utilities in the state s, with at least two slots.
        present: Which slots hold an agent.
    """
    slots, num_actions = utilities.individual.shape
    choices = jnp.indices((num_actions,) * (slots - 1)).reshape(slots - 1, -1).T.astype(jnp.int32)
    teammates = jax.nn.one_hot(choices, num_actions, dtype=utilities.individual.dtype)
    learner = jnp.zeros((teammates.shape[0], 1, num_actions), teammates.dtype)
    probs = jnp.concatenate([learner, teammates], axis=1)
    values = jax.vmap(marginal_action_values, in_axes=(None, 0, None))(utilities, probs, present)
    return jnp.max(values, axis=0)
