"""The ad hoc environment: a game and a team, seen by the learner alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree

from dropin._xla.compile import check_precision
from dropin._xla.compute_where import compute_where
from dropin._xla.random import StepRNG
from dropin.core import registry
from dropin.core.errors import InputError
from dropin.core.observation import Interface, Observation, TimeStep
from dropin.core.specs import check_rules
from dropin.games.base import Game, GameState
from dropin.teams.changes import TypeChanges, apply_type_changes
from dropin.teams.dynamics import make_openness, make_type_changes
from dropin.teams.openness import MIN_TEAM_SIZE, Openness
from dropin.teams.pool import Pool, Roster, select
from dropin.teams.types import Type, TypeLike, requested_types

__all__ = ["AdHocEnv", "AnyEnv", "AnyEnvState", "EnvState", "Team", "make", "nonfinite_slots"]

State = TypeVar("State", bound=GameState)


class EnvState(eqx.Module, Generic[State]):
    """Everything that changes in an environment."""

    game: State
    """The state of the game."""
    openness: PyTree
    """The state of the openness process."""
    roster: Roster
    """Which agent is of which type."""
    arrived: Bool[Array, " slot"]
    """Which agents have just arrived."""
    type_changes: PyTree = ()
    """The state of the process of type changes; nothing without one."""


class Team(eqx.Module):
    """A pool, an openness and a limit on the size, the learner included.

    In a game with two sides the pool and the openness are for both of them.

    Args:
        pool: The types that newcomers are drawn from.
        openness: The process that decides who leaves and who enters.
        limit: Most agents of the learner's side at a time, the learner included.
        slots: Number of slots of the learner's side.
        type_changes: The process by which teammates change their type; None means that they never
            do.
    """

    pool: Pool
    openness: Openness
    limit: Int[Array, ""]
    slots: int = eqx.field(static=True)
    """Number of slots of the learner's side."""
    type_changes: TypeChanges | None

    def __init__(
        self,
        pool: Pool,
        openness: Openness,
        limit: int | Int[Array, ""],
        slots: int,
        type_changes: TypeChanges | None = None,
    ) -> None:
        self.pool, self.openness, self.slots = pool, openness, slots
        self.type_changes = type_changes
        self.limit = jnp.asarray(limit, jnp.int32)

    def __check_init__(self) -> None:
        limit = int(self.limit)
        if limit < MIN_TEAM_SIZE:
            raise InputError(
                f"Team limit {limit} is too small: a team has at least {MIN_TEAM_SIZE} agents, the"
                " learner and a teammate."
            )
        if limit > self.slots:
            raise InputError(f"Team limit {limit} is above the number of slots, {self.slots}.")


class AdHocEnv(eqx.Module, Generic[State]):
    """A game played by the learner in slot 0 with a team of others.

    `reset` and `step` are pure functions of one environment: apply `jit` and `vmap` to them. An
    episode that ends is followed by the next one at once, see `TimeStep`.
    """

    game: Game[State]
    team: Team

    def __check_init__(self) -> None:
        self.game.validate(self.team.slots)
        self.team.pool.validate(self.sides)
        self.team.openness.validate(self.sides, int(self.team.limit))
        if self.team.type_changes is not None:
            self.team.type_changes.validate(self.team.pool, self.sides)
        limit = np.asarray(self.team.limit)  # By NumPy: no program has to be compiled.
        usable = self.game.usable_slots(self.team.slots, limit)
        used = {self.sides[slot] for slot in np.flatnonzero(np.asarray(usable))}
        for side in set(self.sides) - used:
            raise InputError(
                f"A team limit of {int(self.team.limit)} leaves no {self.game.side_names[side]}."
            )

    @property
    def sides(self) -> tuple[int, ...]:
        """The side of every slot."""
        return self.game.sides(self.team.slots)

    @property
    def slots(self) -> int:
        """The number of slots, those of opponents included."""
        return len(self.sides)

    @property
    def interface(self) -> Interface:
        """The names of what a learner observes and can do here."""
        # Names and numbers of features are needed in Python, also while something is traced.
        with jax.ensure_compile_time_eval():
            return Interface.from_game(self.game, self.team.slots)

    @property
    def _usable_slots(self) -> Bool[Array, " slot"]:
        return jnp.asarray(self.game.usable_slots(self.team.slots, self.team.limit))

    def with_team_limit(self, limit: int) -> "AdHocEnv[State]":
        """Return the same environment with another team limit, for which there must be slots."""
        return AdHocEnv(self.game, replace(self.team, limit=limit))

    def with_types(self, types: Sequence[Type]) -> "AdHocEnv[State]":
        """Return the same environment with other types on the learner's side."""
        pool = self.team.pool
        opponents = [each for each in pool.types if each.side != self.sides[0]]
        pool = Pool([*types, *opponents], pool.observer, shared_type=pool.shared_type)
        return AdHocEnv(self.game, replace(self.team, pool=pool))

    def restricted_to(self, names: Sequence[str]) -> "AdHocEnv[State]":
        """Return the same environment, where teammates are drawn only from some types of the pool.

        The whole pool stays compiled in: one program serves every choice of types.

        Args:
            names: Names of types of the learner's side. Opponents are drawn as before.

        Raises:
            InputError: If there is no name, or the learner's side has no type of a name.
        """
        pool = self.team.pool.restricted_to(names, self.sides[0])
        return AdHocEnv(self.game, replace(self.team, pool=pool))

    def reset(self, key: PRNGKeyArray) -> tuple[EnvState[State], Observation]:
        """Start an episode.

        Args:
            key: A random key, used for nothing else.

        Returns:
            The state, and the learner's first observation.
        """
        state = self._start_episode(self._step_rng(key))
        return state, self._observe(state)

    def step(
        self,
        key: PRNGKeyArray,
        state: EnvState[State],
        action: Int[Array, ""],
        *,
        auto_reset: bool = True,
    ) -> tuple[EnvState[State], TimeStep]:
        """Take the learner's action, with teammates acting by their types.

        Args:
            key: A random key, used for nothing else.
            state: The state of the environment.
            action: The learner's action.
            auto_reset: Whether an episode that ends is followed by the next one. If not, the state
                stays at the end; the random numbers are the same.

        Returns:
            The state after the step, and what the step led to.
        """
        return self.step_all(key, state, action[None], auto_reset=auto_reset)

    def step_all(
        self,
        key: PRNGKeyArray,
        state: EnvState[State],
        actions: Int[Array, " controlled"],
        *,
        auto_reset: bool = True,
        forced: Int[Array, " slot"] | None = None,
    ) -> tuple[EnvState[State], TimeStep]:
        """Take the actions of the first slots, or of all; the others act by their types.

        Args:
            key: A random key, used for nothing else.
            state: The state of the environment.
            actions: The actions of the agents in the first slots.
            auto_reset: As in `step`.
            forced: For each slot an action that replaces the one chosen, or a negative number. The
                random numbers and the memories of all types are the same as without it.

        Returns:
            The state after the step, and what the step led to.
        """
        rng, controlled = self._step_rng(key), actions.shape[0]
        if controlled < self.slots:
            others, roster = self.team.pool.act(
                rng, self.game, state.roster, state.game, state.arrived, first=controlled
            )
            actions = jnp.concatenate([actions, others])
            state = replace(state, roster=roster)
        if forced is not None:
            actions = jnp.where(forced >= 0, forced, actions)
        used = rng.used
        game, outcome = self.game.step(rng, state.game, actions)
        removed = state.game.present & ~game.present
        openness, leaving, entering = self.team.openness.step(
            rng, state.openness, game.present, self._usable_slots, outcome.events
        )
        stays = game.present & ~leaving
        game = self.game.spawn(rng, self.game.despawn(game, leaving), entering)
        type_changes, roster, type_changed = self._draw_types(rng, state, stays, entering)
        following = EnvState(game, openness, roster, entering, type_changes)
        final = observation = self._observe(following)
        if auto_reset:
            done = outcome.terminated | outcome.truncated
            # Few environments of a batch are at the end of an episode. Either the episode goes on
            # or a new one starts, so both may use the same random numbers.
            first = compute_where(_StartEpisode(used), done, key, self)
            following = select(done, first, following)
            observation = self._observe(following)
        return following, TimeStep(
            observation=observation,
            final_observation=final,
            rewards=outcome.rewards,
            shaping=outcome.shaping,
            terminated=outcome.terminated,
            truncated=outcome.truncated,
            actions=actions,
            acted=state.game.present,
            removed=removed,
            type_changed=type_changed,
            events=outcome.events,
        )

    def _start_episode(self, rng: StepRNG) -> EnvState[State]:
        openness, present = self.team.openness.reset(rng, self._usable_slots)
        game, changes = self.game.reset(rng, present), self.team.type_changes
        state, allowed = (), None
        if changes is not None:
            state = changes.reset(rng, self.sides)
            allowed = changes.allowed(state)
        roster = self.team.pool.reset(rng, self.sides, allowed)
        return EnvState(game, openness, roster, present, state)

    def _draw_types(
        self,
        rng: StepRNG,
        state: EnvState[State],
        stays: Bool[Array, " slot"],
        entering: Bool[Array, " slot"],
    ) -> tuple[PyTree, Roster, Bool[Array, " slot"]]:
        """Draw the types of newcomers, and of those who stay and change theirs."""
        pool, changes = self.team.pool, self.team.type_changes
        if changes is None:
            return (), pool.spawn(rng, state.roster, entering), jnp.zeros_like(entering)
        return apply_type_changes(
            changes, pool, rng, state.type_changes, state.roster, stays, entering
        )

    def _step_rng(self, key: PRNGKeyArray, used: int = 0) -> StepRNG:
        return StepRNG(key, block=8 * self.slots + 8, used=used)

    def _observe(self, state: EnvState[State]) -> Observation:
        agents, shared = self.game.observe(state.game)
        return Observation(agents, shared, state.game.present, state.arrived, self.sides)


AnyEnv = AdHocEnv[Any]
"""An environment of any game."""
AnyEnvState = EnvState[Any]
"""The state of an environment of any game."""


@dataclass(frozen=True)
class _StartEpisode:
    """Starts an episode with the random numbers of a step, of which some have been used."""

    used: int

    def __call__(self, key: PRNGKeyArray, env: AnyEnv) -> AnyEnvState:
        return env._start_episode(env._step_rng(key, self.used))


def nonfinite_slots(state: AnyEnvState) -> Bool[Array, " slot"]:
    """Return for which slots a batch of environments holds numbers that are not finite.

    Looks at all floating-point leaves of the game's state that have a slot axis.

    Args:
        state: States of environments, with a leading axis [env].
    """

    def one(game: GameState) -> Bool[Array, " slot"]:
        slots = game.present.shape[0]
        bad = jnp.zeros(slots, bool)
        for leaf in jax.tree.leaves(game):
            if jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.shape[:1] == (slots,):
                bad = bad | jnp.any(~jnp.isfinite(leaf), axis=tuple(range(1, leaf.ndim)))
        return bad

    return jnp.any(jax.vmap(one)(state.game), axis=0)


def make(
    game: str,
    *,
    rules: str | None = None,
    team_limit: int = 3,
    slots: int | None = None,
    types: Sequence[TypeLike] | None = None,
    shared_type: bool | None = None,
    openness: str | Path | Mapping[str, Any] | Openness | None = None,
    type_changes: str | Path | Mapping[str, Any] | TypeChanges | None = None,
    **settings: Any,
) -> AnyEnv:
    """Make an ad hoc environment by the name of its game.

    Args:
        game: Name of a registered game, see `dropin games`.
        rules: Name of a preset of the game; its first one (`paper`) by default.
        team_limit: Most agents at a time, the learner included.
        slots: Number of slots of the learner's team in every array; the team limit by default.
            More slots allow a larger limit later.
        types: What teammates are drawn from: names from the game's pool, types, trained agents, or
            functions from a view to an action. A side for which none is given has its whole pool.
        shared_type: Whether a side has one type for a whole episode; by default as the rules say.
        openness: An openness, the name of a registered one, its kind and parameters, or a TOML file
            with a table `[openness]` of these; by default as the rules say.
        type_changes: A process by which teammates change their type, its kind and parameters, or a
            TOML file with a table `[type_changes]` of these; by default types do not change.
        **settings: Fields of the game that differ from its rules.

    Returns:
        The environment.

    Raises:
        InputError: If something is unknown or does not fit; the message says what can be used.

    >>> env = make("lbf", team_limit=5, types=["H1", "H3"], size=10)
    >>> env.slots
    5
    """
    check_precision()
    spec = registry.games[game]
    rules = next(iter(spec.rules)) if rules is None else rules
    check_rules(rules, spec.rules)
    slots = team_limit if slots is None else slots
    made = spec.make_game(rules, **settings)
    pool = Pool(
        requested_types(
            spec.types(rules), registry.types_of(game), types, made, len(made.side_names)
        ),
        spec.observer(rules),
        shared_type=spec.shared_type(rules) if shared_type is None else shared_type,
    )
    process = make_openness(openness, rules, made, slots, spec.openness)
    changes = make_type_changes(type_changes, pool)
    return AdHocEnv(made, Team(pool, process, team_limit, slots, changes))
