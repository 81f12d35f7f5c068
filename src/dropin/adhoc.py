"""The ad hoc environment: a game and a team, seen by the learner alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.dice import Dice
from dropin.errors import InputError, unknown
from dropin.games import check_rules, find
from dropin.games.base import Game, Outcome
from dropin.sparse import where_needed
from dropin.teams.openness import LEAST, Openness
from dropin.teams.pool import Cast, Pool, select
from dropin.teams.types import Recruit, Type, as_type


class Observation(eqx.Module):
    """What the learner sees. Slot 0 is the learner itself."""

    agents: Float[Array, "*env slot feature"]
    """The agent features x."""
    shared: Float[Array, "*env shared"]
    """The shared features u."""
    present: Bool[Array, "*env slot"]
    arrived: Bool[Array, "*env slot"]
    """Who was not there one step ago: the only sign by which memory is cleared. True for all who
    are present at the start of an episode."""
    sides: tuple[int, ...] = eqx.field(static=True)
    """The side of each slot: 0 is the learner's, 1 is against it."""


class TimeStep(eqx.Module):
    """What a step led to."""

    observation: Observation
    """What to act on next: after the end of an episode, the first of the next one."""
    final: Observation
    """The observation before the automatic reset; the same as `observation` within an episode."""
    rewards: Float[Array, "*env slot"]
    """The game's reward for the agent in each slot."""
    shaping: Float[Array, "*env slot"]
    """The part of the rewards that only guides learning."""
    terminated: Bool[Array, "*env"]
    truncated: Bool[Array, "*env"]
    actions: Int[Array, "*env slot"]
    """The joint action, as chosen."""
    acted: Bool[Array, "*env slot"]
    """Who acted: those present before the step."""
    out: Bool[Array, "*env slot"]
    """Whom the game took out in the step; all others who leave do so by openness."""
    happened: Any
    """The game's own account of the step."""

    @property
    def reward(self) -> Float[Array, "*env"]:
        """The learner's reward."""
        return self.rewards[..., 0]

    @property
    def done(self) -> Bool[Array, "*env"]:
        """Whether the episode ended."""
        return self.terminated | self.truncated


class EnvState(eqx.Module):
    """Everything that changes."""

    game: Any
    openness: Any
    cast: Cast
    arrived: Bool[Array, " slot"]


class Team(eqx.Module):
    """Pool, openness and a limit on the size, the learner included.

    In a game with two sides pool and openness are for both of them.
    """

    pool: Pool
    openness: Openness
    limit: Int[Array, ""] = eqx.field(converter=lambda limit: jnp.asarray(limit, jnp.int32))
    slots: int = eqx.field(static=True)
    """Of the learner's side."""

    def __check_init__(self) -> None:
        limit = int(self.limit)
        if limit < LEAST:
            raise InputError(
                f"Team limit {limit} is too small: a team has at least {LEAST} agents, the"
                " learner and a teammate."
            )
        if limit > self.slots:
            raise InputError(f"Team limit {limit} is above the number of slots, {self.slots}.")


@dataclass(frozen=True)
class Interface:
    """What a learner meets in a game: the names of what it sees of each agent and of all, and of
    what it can do. A learner that was trained in one environment fits all with the same."""

    game: str
    agents: tuple[str, ...]
    shared: tuple[str, ...]
    actions: tuple[str, ...]
    absent: tuple[float, ...] = field(default=(), compare=False)
    """What stands for each number of an agent that is not there."""
    sides: int = field(default=1, compare=False)
    """How many sides there are."""

    @classmethod
    def of(cls, game: Game[Any], slots: int = LEAST) -> "Interface":
        """What a learner meets in a game; the names do not depend on the number of slots."""
        agents, shared = game.features(slots)
        return cls(
            game=game.name,
            agents=tuple(each.name for each in agents),
            shared=tuple(each.name for each in shared),
            actions=tuple(game.actions),
            absent=tuple(float(each.absent) for each in agents),
            sides=len(game.members),
        )


class AdHoc(eqx.Module):
    """A game played by the learner in slot 0 with a team of others.

    `reset` and `step` are pure functions of one environment: `jit` and `vmap` them. An episode
    that ends is followed by the next one at once, see `TimeStep`.
    """

    game: Game[Any]
    team: Team

    def __check_init__(self) -> None:
        self.game.check(self.team.slots)
        self.team.pool.check(self.sides)
        self.team.openness.check(self.sides, int(self.team.limit))
        taken = {self.sides[slot] for slot in np.flatnonzero(np.asarray(self._seats))}
        for side in set(self.sides) - taken:
            raise InputError(
                f"A team limit of {int(self.team.limit)} leaves no {self.game.members[side]}."
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
        """What a learner meets here."""
        return Interface.of(self.game, self.team.slots)

    def with_limit(self, limit: int) -> "AdHoc":
        """The same with another team limit, for which there must be slots."""
        team = Team(self.team.pool, self.team.openness, limit, self.team.slots)  # pyright: ignore[reportArgumentType]
        return AdHoc(self.game, team)

    def among(self, types: Sequence[Type]) -> "AdHoc":
        """The same with other types on the learner's side."""
        pool = self.team.pool
        against = [each for each in pool.types if each.side != self.sides[0]]
        pool = Pool([*types, *against], pool.look, alike=pool.alike)
        team = Team(pool, self.team.openness, self.team.limit, self.team.slots)
        return AdHoc(self.game, team)

    def reset(self, key: PRNGKeyArray) -> tuple[EnvState, Observation]:
        """The start of an episode."""
        state = self.start(self.dice(key))
        return state, self._observe(state)

    def step(
        self, key: PRNGKeyArray, state: EnvState, action: Int[Array, ""], *, restart: bool = True
    ) -> tuple[EnvState, TimeStep]:
        """The learner's action, with teammates acting by their types.

        Without `restart` an episode that ends stays at its end; the random numbers are the same.
        """
        return self.step_all(key, state, action[None], restart=restart)

    def step_all(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        actions: Int[Array, " controlled"],
        *,
        restart: bool = True,
    ) -> tuple[EnvState, TimeStep]:
        """The same environment with several slots under control: the first ones, or all.

        Those for whom there is no action act by their types.
        """
        dice, controlled = self.dice(key), actions.shape[0]
        if controlled < self.slots:
            others, cast = self.team.pool.act(
                dice, state.cast, state.game, state.arrived, first=controlled
            )
            actions = jnp.concatenate([actions, others])
            state = EnvState(state.game, state.openness, cast, state.arrived)
        return self._step(key, dice, state, actions, restart)

    def _step(
        self,
        key: PRNGKeyArray,
        dice: Dice,
        before: EnvState,
        actions: Int[Array, " slot"],
        restart: bool,
    ) -> tuple[EnvState, TimeStep]:
        # Either the episode goes on or a new one starts, so both may use the same numbers.
        now, outcome, out = self._advance(dice.again(), before, actions)
        final = observation = self._observe(now)
        if restart:
            done = outcome.terminated | outcome.truncated
            # Few environments of a batch are at the end of an episode.
            fresh = where_needed(_Restart(dice.used), done, key, self)
            now = select(done, fresh, now)
            observation = self._observe(now)
        time_step = TimeStep(
            observation=observation,
            final=final,
            rewards=outcome.rewards,
            shaping=outcome.shaping,
            terminated=outcome.terminated,
            truncated=outcome.truncated,
            actions=actions,
            acted=before.game.present,
            out=out,
            happened=outcome.happened,
        )
        return now, time_step

    def _advance(
        self, dice: Dice, state: EnvState, actions: Int[Array, " slot"]
    ) -> tuple[EnvState, Outcome, Bool[Array, " slot"]]:
        """All act, then some leave and others enter; and whom the game took out."""
        game, outcome = self.game.step(dice, state.game, actions)
        out = state.game.present & ~game.present
        openness, leaving, entering = self.team.openness.step(
            dice, state.openness, game.present, self._seats, outcome.happened
        )
        game = self.game.enter(dice, self.game.leave(game, leaving), entering)
        cast = self.team.pool.enter(dice, state.cast, entering)
        return EnvState(game, openness, cast, entering), outcome, out

    def start(self, dice: Dice) -> EnvState:
        """The start of an episode by these dice."""
        openness, present = self.team.openness.start(dice, self._seats)
        return EnvState(
            game=self.game.start(dice, present),
            openness=openness,
            cast=self.team.pool.start(dice, self.sides),
            arrived=present,
        )

    @property
    def _seats(self) -> Bool[Array, " slot"]:
        return self.game.seats(self.team.slots, self.team.limit)

    def dice(self, key: PRNGKeyArray, used: int = 0) -> Dice:
        """The dice of a step."""
        return Dice(key, block=8 * self.slots + 8, used=used)

    def _observe(self, state: EnvState) -> Observation:
        agents, shared = self.game.observe(state.game)
        return Observation(agents, shared, state.game.present, state.arrived, self.sides)


@dataclass(frozen=True)
class _Restart:
    """Starts an episode with the dice of a step, of which some numbers have been used."""

    used: int

    def __call__(self, key: PRNGKeyArray, env: AdHoc) -> EnvState:
        return env.start(env.dice(key, self.used))


def make(
    game: str,
    *,
    rules: str = "paper",
    team_limit: int = 3,
    slots: int | None = None,
    types: Sequence[str | Type | Recruit | Callable[..., Any]] | None = None,
    alike: bool | None = None,
    openness: Openness | None = None,
    **changes: Any,
) -> AdHoc:
    """An ad hoc environment by name.

    `slots` is the number of places for the learner's team in every array (the team limit by
    default; more allow a larger limit later). `types` are names from the game's pool, types,
    trained agents, or functions from a view to an action; a side of which none is named has all
    of its own. With `alike` a side has one type for a whole episode. `changes` are fields of the
    game that differ from its rules.

    >>> env = make("lbf", team_limit=5, types=["H1", "H3"], size=10)
    """
    entry = find(game)
    check_rules(rules)
    slots = team_limit if slots is None else slots
    teammates = import_module(f"dropin.teams.{entry.name}.pool")
    rulebook = teammates.game(rules, **changes)
    makers = teammates.types(rules)
    pool = Pool(
        _chosen(makers, rulebook, types),
        teammates.look(rulebook, rules),
        alike=rules in teammates.ALIKE if alike is None else alike,
    )
    if openness is None:
        openness = teammates.openness(rules, rulebook, slots)
    return AdHoc(rulebook, Team(pool, openness, team_limit, slots))  # pyright: ignore[reportArgumentType]


def _chosen(
    makers: Mapping[str, Callable[[], Type]], game: Game[Any], types: Sequence[Any] | None
) -> list[Type]:
    """The types that are asked for, and all of the sides of which none is."""
    given = [as_type(_as_given(makers, game, each)) for each in types or ()]
    missing = set(range(len(game.members))) - {each.side for each in given}
    if types is not None and not types:
        return []
    own = [maker() for maker in makers.values()] if missing else []
    return given + [each for each in own if each.side in missing]


def _as_given(makers: Mapping[str, Callable[[], Type]], game: Game[Any], given: Any) -> Any:
    if isinstance(given, str):
        if given not in makers:
            raise unknown("type", given, makers)
        return makers[given]()
    return given.as_type(game) if isinstance(given, Recruit) else given
