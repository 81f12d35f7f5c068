"""The rules of Wolfpack."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin.dice import Dice, scale
from dropin.errors import InputError
from dropin.games.base import Feature, OneTeam, Outcome, with_changes
from dropin.games.grid import draw_cells, position_of
from dropin.settle import settle

UP, RIGHT, DOWN, LEFT, STAY = range(5)
MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1], [0, 0]], np.int32)
"""What each action of a hunter adds to row and column."""

TURN_LEFT, TURN_RIGHT = 5, 6
PREY_ACTIONS = 7
"""Ahead, right, back, left (of where the prey faces), stay, turn left, turn right."""
DIRECTIONS = ("up", "right", "down", "left")

NOBODY = np.array([[-1, -1]], np.int32)
"""Row and column of a hunter who is not there."""


class State(eqx.Module):
    """Cells are (row, column); no two hunters or prey share one. An absent hunter has (-1, -1)."""

    hunters: Int[Array, "slot 2"]
    prey: Int[Array, "prey 2"]
    facing: Int[Array, " prey"]
    """Where each prey looks: 0 up, 1 right, 2 down, 3 left."""
    captured: Bool[Array, " prey"]
    """Which prey were captured in the step before: they are still shown there, and reappear
    elsewhere in the next step."""
    time: Int[Array, ""]
    memory: Any
    """What the prey remember."""

    @property
    def present(self) -> Bool[Array, " slot"]:
        """Who is there."""
        return self.hunters[..., 0] >= 0


class Happened(eqx.Module):
    """The account of a step: who had a part in capturing which prey."""

    captured: Bool[Array, "slot prey"]


@runtime_checkable
class Instinct(Protocol):
    """How prey choose their actions."""

    def start(self, prey: int) -> Any:
        """What so many prey remember at the start of an episode."""
        ...

    def act(self, dice: Dice, size: int, state: State) -> tuple[Int[Array, " prey"], Any]:
        """The action of each prey on a grid of this size, and what they remember afterwards."""
        ...


class Wandering(eqx.Module):
    """Prey that act at random."""

    def start(self, prey: int) -> tuple[()]:
        """Nothing to remember."""
        del prey
        return ()

    def act(self, dice: Dice, size: int, state: State) -> tuple[Int[Array, " prey"], tuple[()]]:
        """Any action."""
        del size
        chance = dice.uniform(state.prey.shape[0])
        return scale(chance, jnp.full(chance.shape, PREY_ACTIONS)), ()


def _int(value: object) -> Int[Array, "..."]:
    return jnp.asarray(value, jnp.int32)


def _float(value: object) -> Float[Array, "..."]:
    return jnp.asarray(value, jnp.float32)


class Wolfpack(OneTeam):
    """Wolfpack (paper: section 5.1, appendix B.1).

    Actions of hunters: 0 up, 1 right, 2 down, 3 left, 4 stay. Prey move relative to where they
    face, and can turn.

    Step: prey that were captured in the step before reappear on a free cell. Then hunters and
    prey move at once; a move off the grid counts as staying. Whoever would share a cell, goes
    back to where it was, and again until nobody shares one; two may swap. Then the hunters next
    to a prey are its pack: two or more of them capture it, and each is rewarded with twice the
    size of the pack; one alone pays a penalty.

    End: truncated after `horizon` steps.
    """

    name: ClassVar[str] = "wolfpack"

    size: int = eqx.field(static=True, default=10)
    """Rows and columns of the grid."""
    prey: int = eqx.field(static=True, default=2)
    """How many prey there are."""
    instinct: Instinct = eqx.field(default_factory=Wandering)
    """How the prey choose their actions."""
    horizon: Int[Array, ""] = eqx.field(converter=_int, default=200)
    """Steps after which an episode is cut."""
    share: Float[Array, ""] = eqx.field(converter=_float, default=2.0)
    """The reward of each member of a pack that captures, for each member."""
    penalty: Float[Array, ""] = eqx.field(converter=_float, default=0.5)
    """What it costs to stand next to a prey alone, for each such prey and step."""
    shaping: Float[Array, ""] = eqx.field(converter=_float, default=0.0)
    """Part of the reward for each cell that a hunter gets closer to the nearest prey."""

    def __check_init__(self) -> None:
        for name, low in (("size", 2), ("prey", 1), ("horizon", 1)):
            value = int(getattr(self, name))
            if value < low:
                raise InputError(f"Wolfpack's {name} is {value}, but it has to be at least {low}.")
        for name in ("share", "penalty", "shaping"):
            value = float(getattr(self, name))
            if not (np.isfinite(value) and value >= 0):
                raise InputError(f"Wolfpack's {name} is {value:g}, but it has to be at least 0.")

    @property
    def actions(self) -> Sequence[str]:
        """The names of the hunters' actions, in the order of their numbers."""
        return (*DIRECTIONS, "stay")

    @property
    def shaped(self) -> bool:
        """Whether a part of the rewards is shaping."""
        return float(self.shaping) != 0

    def features(self, slots: int) -> tuple[Sequence[Feature], Sequence[Feature]]:
        """The columns of x, and the entries of u: where the prey are, then where they face."""
        del slots
        places = [each for k in range(self.prey) for each in self._cell(f"prey {k + 1}", "it")]
        facing = [
            Feature(f"prey {k + 1}: {where}", f"1 if it faces {where}, else 0", 0, 1, 0)
            for k in range(self.prey)
            for where in DIRECTIONS
        ]
        return self._cell("", "the agent"), places + facing

    def _cell(self, owner: str, what: str) -> list[Feature]:
        before = f"{owner}: " if owner else ""
        last = self.size - 1
        return [
            Feature(f"{before}row", f"row of {what}, 0 is up", 0, last, -1),
            Feature(f"{before}column", f"column of {what}, 0 is left", 0, last, -1),
        ]

    def check(self, slots: int) -> None:
        """Raise `InputError` when so many agents do not fit into the grid with its prey."""
        # A prey that reappears avoids the cells where prey were.
        if self.size**2 < slots + 2 * self.prey:
            raise InputError(
                f"A grid of {self.size}x{self.size} is too small for {slots} agents and"
                f" {self.prey} prey: they need {slots + 2 * self.prey} cells."
            )

    def start(self, dice: Dice, present: Bool[Array, " slot"]) -> State:
        """Hunters and prey on different cells, prey facing up."""
        wanted = jnp.concatenate([present, jnp.ones(self.prey, bool)])
        cells = self._draw(dice, wanted, jnp.full(1, -1))
        slots = present.shape[0]
        return State(
            hunters=jnp.where(present[:, None], cells[:slots], NOBODY),
            prey=cells[slots:],
            facing=jnp.zeros(self.prey, jnp.int32),
            captured=jnp.zeros(self.prey, bool),
            time=jnp.int32(0),
            memory=self.instinct.start(self.prey),
        )

    def _draw(
        self, dice: Dice, wanted: Bool[Array, " n"], taken: Int[Array, " m"]
    ) -> Int[Array, "n 2"]:
        """Different cells that are not taken, for those who want one."""
        total = jnp.int32(self.size**2)
        return position_of(draw_cells(dice.uniform(len(wanted)), wanted, taken, total), self.size)

    def _cells(self, state: State) -> Int[Array, " both"]:
        """The numbers of the cells of hunters and prey; that of who is absent is negative."""
        both = jnp.concatenate([state.hunters, state.prey])
        number = both[:, 0] * self.size + both[:, 1]
        return jnp.where(both[:, 0] >= 0, number, -1 - jnp.arange(len(both)))

    def enter(self, dice: Dice, state: State, entering: Bool[Array, " slot"]) -> State:
        """Newcomers get a free cell."""
        cells = self._draw(dice, entering, self._cells(state))
        hunters = jnp.where(entering[:, None], cells, state.hunters)
        return replace(state, hunters=hunters)

    def leave(self, state: State, leaving: Bool[Array, " slot"]) -> State:
        """Leavers vanish from the grid."""
        return replace(state, hunters=jnp.where(leaving[:, None], NOBODY, state.hunters))

    def step(self, dice: Dice, state: State, actions: Int[Array, " slot"]) -> tuple[State, Outcome]:
        """Prey follow their instinct, which knows nothing of where they are about to reappear."""
        prey_actions, memory = self.instinct.act(dice, self.size, state)
        state = replace(self.respawn(dice, state), memory=memory)
        return self.move(state, actions, prey_actions)

    def respawn(self, dice: Dice, state: State) -> State:
        """Captured prey reappear on a free cell."""
        cells = self._draw(dice, state.captured, self._cells(state))
        prey = jnp.where(state.captured[:, None], cells, state.prey)
        return replace(state, prey=prey, captured=jnp.zeros_like(state.captured))

    def move(
        self, state: State, actions: Int[Array, " slot"], prey_actions: Int[Array, " prey"]
    ) -> tuple[State, Outcome]:
        """The rest of a step, in which nothing is left to chance."""
        present, slots = state.present, len(actions)
        way = jnp.where(prey_actions < STAY, (state.facing + prey_actions) % 4, STAY)
        before = self._cells(state)
        cells = self._settled(before, self._named(state, jnp.concatenate([actions, way])))
        both = position_of(cells, self.size)
        hunters = jnp.where(present[:, None], both[:slots], NOBODY)
        turn = jnp.where(prey_actions == TURN_RIGHT, 1, jnp.where(prey_actions == TURN_LEFT, 3, 0))

        apart = _apart(hunters, both[slots:])
        beside = (apart == 1) & present[:, None]
        pack = jnp.sum(beside, axis=0)
        caught = pack > 1
        pay = jnp.where(caught, self.share * pack.astype(jnp.float32), -self.penalty)
        rewards = jnp.sum(jnp.where(beside, pay[None], 0.0), axis=1)
        closer = jnp.min(_apart(state.hunters, state.prey), axis=1) - jnp.min(apart, axis=1)
        shaping = jnp.where(present, self.shaping * closer.astype(jnp.float32), 0.0)

        following = State(
            hunters=hunters,
            prey=both[slots:],
            facing=(state.facing + turn) % 4,
            captured=caught,
            time=state.time + 1,
            memory=state.memory,
        )
        outcome = Outcome(
            rewards=rewards + shaping,
            shaping=shaping,
            terminated=jnp.array(False),
            truncated=following.time >= self.horizon,
            happened=Happened(beside & caught[None]),
        )
        return following, outcome

    def _named(self, state: State, ways: Int[Array, " both"]) -> Int[Array, " both"]:
        """The cells that everybody names, one's own instead of one off the grid."""
        here = self._cells(state)
        row, column = here // self.size, here % self.size
        down = jnp.where(ways == DOWN, 1, jnp.where(ways == UP, -1, 0))
        right = jnp.where(ways == RIGHT, 1, jnp.where(ways == LEFT, -1, 0))
        row, column = row + down, column + right
        inside = (row >= 0) & (row < self.size) & (column >= 0) & (column < self.size)
        return jnp.where(inside & (here >= 0), row * self.size + column, here)

    def _settled(
        self, before: Int[Array, " both"], named: Int[Array, " both"]
    ) -> Int[Array, " both"]:
        """Where all end up. Every round in which cells are shared sends somebody back for good,
        since before the move all were apart: there are no more rounds than hunters and prey."""
        before, at = settle(before), settle(named)
        for _ in range(len(before)):
            shared = jnp.sum(at[:, None] == at[None], axis=1) > 1
            at = settle(jnp.where(shared, before, at))
        return at

    def observe(self, state: State) -> tuple[Float[Array, "slot 2"], Float[Array, " shared"]]:
        """Agent features x and shared features u, as they are, not scaled."""
        facing = state.facing[:, None] == jnp.arange(4)[None]
        shared = jnp.concatenate([state.prey.reshape(-1), facing.astype(jnp.int32).reshape(-1)])
        return state.hunters.astype(jnp.float32), shared.astype(jnp.float32)


def _apart(hunters: Int[Array, "slot 2"], prey: Int[Array, "prey 2"]) -> Int[Array, "slot prey"]:
    """Manhattan distances."""
    return jnp.sum(jnp.abs(hunters[:, None] - prey[None]), axis=-1)


def preset(rules: str, **changes: object) -> Wolfpack:
    """Wolfpack under the rules `paper` or `reference`, with any field changed."""
    return with_changes(Wolfpack, {"shaping": 0.01} if rules == "reference" else {}, changes)
