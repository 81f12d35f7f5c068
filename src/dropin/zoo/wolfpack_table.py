"""How often hunters capture the prey of Wolfpack, beside what was measured in the authors' program.

The table has ten rows, each a team under the rules `reference`. The learner acts at random or
always stays. The prey of the zoo are chosen by their distance to this table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, PyTree

from dropin._xla.compile import compiled
from dropin._xla.random import StepRNG
from dropin.env import AnyEnv, make
from dropin.games.wolfpack.prey import PreyPolicy, RandomPrey
from dropin.games.wolfpack.state import NUM_ACTIONS, NUM_PREY_ACTIONS, STAY, State

__all__ = [
    "ACTION_SHARES",
    "SCREENED",
    "SHARES_ROW",
    "TABLE",
    "Row",
    "RowResult",
    "distance",
    "is_match",
    "measure_row",
    "share_distance",
]

EPISODE_LENGTH = 200
TOLERANCE = 0.2
"""A row matches if it is this close, as a share of the authors' mean."""


@dataclass(frozen=True)
class Row:
    """A team, and how often it captures the authors' prey in 200 steps."""

    types: tuple[str, ...] | None
    """The types of teammates; None for all."""
    captures: float
    """The mean over 48 episodes in the authors' program."""
    error: float
    """Its standard error."""
    team_limit: int = 3
    learner_stays: bool = False
    """Whether the learner always stays; otherwise it acts at random."""

    @property
    def name(self) -> str:
        """The row in words."""
        types = "all types" if self.types is None else f"only {', '.join(self.types)}"
        stays = ", the learner stays" if self.learner_stays else ""
        return f"limit {self.team_limit}, {types}{stays}"

    @property
    def quantity(self) -> str:
        """What is measured in this row, as cards say it."""
        return f"captures in 200 steps, {self.name}"

    @property
    def tolerance(self) -> float:
        """How far the captures of a match may be from those of the authors' prey."""
        return max(self.error, TOLERANCE * self.captures)


TABLE: Sequence[Row] = (
    Row(("H1",), 0.54, 0.13),
    Row(("H2",), 5.46, 0.40),
    Row(("H2",), 3.44, 0.33, learner_stays=True),
    Row(("H3",), 3.46, 0.31),
    Row(("H4",), 5.60, 0.40),
    Row(("H5",), 5.44, 0.43),
    Row(("H6",), 7.00, 0.39),
    Row(("H7",), 3.65, 0.36),
    Row(None, 3.58, 0.31),
    Row(None, 8.79, 0.66, team_limit=5),
)
"""Captures in 200 steps in the authors' program."""

SHARES_ROW = 8
"""The row in which actions are counted: all types at limit 3."""
SCREENED: Sequence[Row] = tuple(TABLE[index] for index in (0, 2, 4, 7, SHARES_ROW))
"""The rows by which prey are screened: those in which they differ most."""

ACTION_SHARES: Mapping[str, float] = {
    "ahead": 0.19,
    "right": 0.17,
    "back": 0.23,
    "left": 0.16,
    "stay": 0.15,
    "turn left": 0.08,
    "turn right": 0.03,
}
"""Shares of the actions of the authors' prey among all types at limit 3."""


@dataclass(frozen=True)
class RowResult:
    """What was measured for a row."""

    captures: np.ndarray
    """How often each prey was captured [episode, prey]."""
    actions: np.ndarray
    """How often each prey took each action [episode, prey, action]."""


class _Counting(eqx.Module):
    """Prey whose actions are counted; the counts are part of their memory."""

    policy: PreyPolicy

    def init_memory(self, num_prey: int) -> PyTree:
        counts = jnp.zeros((num_prey, NUM_PREY_ACTIONS), jnp.int32)
        return self.policy.init_memory(num_prey), counts

    def act(self, rng: StepRNG, size: int, state: State) -> tuple[Int[Array, " prey"], PyTree]:
        memory, counts = state.memory
        inner = eqx.tree_at(lambda state: state.memory, state, memory, is_leaf=lambda x: x is None)
        actions, memory = self.policy.act(rng, size, inner)
        taken = actions[:, None] == jnp.arange(NUM_PREY_ACTIONS)[None]
        return actions, (memory, counts + taken.astype(jnp.int32))


@cache
def _env(row: Row) -> AnyEnv:
    return make(
        "wolfpack",
        rules="reference",
        team_limit=row.team_limit,
        types=row.types,
        prey_policy=RandomPrey(),
    )


def measure_row(row: Row, policy: PreyPolicy, episodes: int = 128, seed: int = 1) -> RowResult:
    """Play a row of the table.

    Args:
        row: The row.
        policy: The prey.
        episodes: Number of episodes.
        seed: Seed of the episodes.

    Returns:
        Captures and actions of each prey in each episode.
    """
    env = eqx.tree_at(lambda env: env.game.prey_policy, _env(row), _Counting(policy))
    keys = jax.random.split(jax.random.key(seed), episodes)
    captures, actions = _play(env, row.learner_stays, keys)
    return RowResult(np.asarray(captures), np.asarray(actions))


def _play_all(
    env: AnyEnv, stays: bool, keys: Key[Array, " episode"]
) -> tuple[Int[Array, "episode prey"], Int[Array, "episode prey action"]]:
    """Play an episode with each key; return captures and actions of the prey."""

    def episode(key: PRNGKeyArray) -> tuple[Int[Array, " prey"], Int[Array, "prey action"]]:
        reset_key, key = jax.random.split(key)
        first, _ = env.reset(reset_key)

        def step(carry: PyTree, key: PRNGKeyArray) -> tuple[PyTree, None]:
            state, captures = carry
            act_key, step_key = jax.random.split(key)
            action = jax.random.randint(act_key, (), 0, NUM_ACTIONS)
            action = jnp.int32(STAY) if stays else action
            state, time_step = env.step(step_key, state, action, auto_reset=False)
            return (
                state,
                captures + jnp.any(time_step.events.captured, axis=0).astype(jnp.int32),
            ), None

        start = (first, jnp.zeros(len(first.game.prey), jnp.int32))
        (last, captures), _ = jax.lax.scan(step, start, jax.random.split(key, EPISODE_LENGTH))
        return captures, last.game.memory[1]

    return jax.vmap(episode)(keys)


_play = compiled(_play_all, quick=True)


def is_match(row: Row, captures: float) -> bool:
    """Return whether captures are as close to those of the authors' prey as they have to be.

    Args:
        row: The row of the table.
        captures: The mean number of captures in 200 steps.
    """
    return abs(captures - row.captures) <= row.tolerance


def share_distance(shares: Float[np.ndarray, " action"]) -> float:
    """Return the total variation distance between shares of actions and those of the authors."""
    theirs = np.array(list(ACTION_SHARES.values()))
    return float(np.abs(shares - theirs / theirs.sum()).sum() / 2)


def distance(captures: Sequence[float] | np.ndarray | Mapping[Row, float]) -> float:
    """Return the distance to the table: the largest error of a row, in units of its tolerance."""
    pairs = captures.items() if isinstance(captures, Mapping) else zip(TABLE, captures, strict=True)
    return max(abs(value - row.captures) / row.tolerance for row, value in pairs)
