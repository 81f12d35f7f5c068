"""What can be chosen for a room of the arena."""

from dataclasses import dataclass, field
from typing import Literal

from dropin.agents import MODES, Agent, agent_policy
from dropin.core import registry
from dropin.core.config import Checked
from dropin.core.errors import InputError, unknown
from dropin.core.specs import check_rules
from dropin.env import AnyEnv, make
from dropin.policies import RANDOM, Policy, make_policy
from dropin.teams.openness import Closed, Openness
from dropin.teams.scripted import Scripted

__all__ = [
    "CLOSED",
    "MAX_TEAM",
    "RULES_OPENNESS",
    "SCRIPTED",
    "TICK_MS",
    "Clock",
    "RoomConfig",
    "is_own_policy",
]

RULES_OPENNESS, CLOSED, SCRIPTED = "rules", "closed", "scripted"
"""Openness of a room: as the rules of the game say, a fixed team, or a schedule."""
TICK_MS = (150, 500)
"""Shortest and longest tick of real time, in milliseconds."""
MAX_TEAM = 9
"""Largest team limit."""
MAX_LIMIT_MS = 600_000
MAX_SEED = 2**31 - 1
MAX_STEP = 10**6
"""Latest step of a schedule."""
MAX_SCHEDULE = 200
"""Most entries of a schedule."""


@dataclass(frozen=True)
class Clock(Checked):
    """When a room takes its steps.

    Raises:
        InputError: If a time is out of its range.
    """

    kind: Literal["watch", "real_time", "turns"] = "watch"
    """Nobody plays; a step every tick; or a step when all people have chosen."""
    tick_ms: int = 250
    """Real time: milliseconds of a tick."""
    limit_ms: int = 10_000
    """Turns: how long to wait for people before their default action is taken."""

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = TICK_MS
        if not low <= self.tick_ms <= high:
            raise InputError(f"A tick of {self.tick_ms} ms is not within {low} to {high} ms.")
        if self.limit_ms > MAX_LIMIT_MS:
            raise InputError(
                f"A time limit of {self.limit_ms} ms is too long: it is at most {MAX_LIMIT_MS} ms."
            )


@dataclass(frozen=True)
class RoomConfig(Checked):
    """A room: its team, who plays the learner, and its clock.

    Raises:
        InputError: If a value cannot be used. What depends on the game is checked by `make_env`.
    """

    game: str
    """Name of a registered game."""
    rules: str | None = None
    """Name of a preset of the game; None for its first one."""
    team_limit: int = field(default=3, metadata={"least": 2})
    """Most agents of the learner's side at a time, the learner included."""
    types: tuple[str, ...] | None = None
    """Names of the types that teammates are drawn from; None for the whole pool."""
    openness: str = RULES_OPENNESS
    """`rules`, `closed`, `scripted`, or the name of a registered openness."""
    initial_slots: tuple[int, ...] = ()
    """Scripted: the slots of the teammates at the start; all if there are none here."""
    schedule: tuple[tuple[int, str, int], ...] = ()
    """Scripted: entries (step, "leaves" or "enters", slot), see `dropin.Scripted`."""
    agent: str = RANDOM
    """Who plays the learner: `random`, the name of a type, or the id of a trained agent."""
    mode: str = "greedy"
    """How a trained agent chooses actions."""
    seed: int = field(default=0, metadata={"least": 0})
    """Of the first episode."""
    clock: Clock = field(default_factory=Clock)
    """When steps are taken."""
    on_leave: Literal["type", "leave"] = "type"
    """What becomes of the place of a person who leaves: a type takes it over, or the agent leaves
    the team."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "schedule", tuple(map(tuple, self.schedule)))
        if self.team_limit > MAX_TEAM:
            raise InputError(
                f"The team limit {self.team_limit} is too large: it is at most {MAX_TEAM}."
            )
        for step, _, slot in self.schedule:
            if max(step, abs(slot)) > MAX_STEP:
                raise InputError(f"The schedule has a number above {MAX_STEP}.")
        if self.mode not in MODES:
            raise unknown("mode", self.mode, MODES)
        if self.seed > MAX_SEED:
            raise InputError(f"The seed {self.seed} is too large: it is at most {MAX_SEED}.")
        if len(self.schedule) > MAX_SCHEDULE:
            raise InputError(
                f"The schedule has {len(self.schedule)} entries, but at most {MAX_SCHEDULE}."
            )
        scripted = self.openness == SCRIPTED
        if not scripted and (self.schedule or self.initial_slots):
            raise InputError("Only a scripted openness has a schedule.")

    def make_env(self) -> AnyEnv:
        """Make the environment of the room.

        Raises:
            InputError: If something is unknown or does not fit.
        """
        spec = registry.games[self.game]
        if self.rules is not None:
            check_rules(self.rules, spec.rules)
        return make(
            self.game,
            rules=self.rules,
            team_limit=self.team_limit,
            types=self.types,
            openness=self._openness(),
        )

    def _openness(self) -> Openness | str | None:
        """Return the openness as `dropin.make` takes it."""
        if self.openness == RULES_OPENNESS:
            return None
        if self.openness == CLOSED:
            return Closed()
        if self.openness == SCRIPTED:
            initial = self.initial_slots or tuple(range(1, self.team_limit))
            return Scripted(initial, self.schedule)
        if self.openness not in registry.openness:
            names = (RULES_OPENNESS, CLOSED, SCRIPTED, *registry.openness)
            raise unknown("openness", self.openness, names)
        return self.openness

    def make_policy(self, env: AnyEnv, agent: Agent | None = None) -> Policy:
        """Make the policy of the learner's place.

        Args:
            env: The environment of the room.
            agent: The trained agent, if `agent` is the id of one.

        Raises:
            InputError: If the agent does not fit, or there is no such type.
        """
        if agent is None:
            return make_policy(env, self.agent)
        return agent_policy(agent, env, self.mode)


def is_own_policy(env: AnyEnv, agent: str) -> bool:
    """Return whether an id is `random` or a type of the learner's side in an environment's pool.

    Args:
        env: The environment.
        agent: The id of whoever plays the learner.
    """
    own = (each.name for each in env.team.pool.types if each.side == env.sides[0])
    return agent == RANDOM or agent in own
