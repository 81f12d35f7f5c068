"""The rules of Wolfpack."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dropin._xla.materialize import materialize
from dropin._xla.random import StepRNG
from dropin.core.errors import InputError
from dropin.core.specs import check_rules
from dropin.games.base import (
    CooperativeGame,
    Feature,
    StepOutcome,
    as_float,
    as_int,
    make_preset,
)
from dropin.games.grid import cell_position, draw_cells
from dropin.games.wolfpack.prey import PreyPolicy, RandomPrey
from dropin.games.wolfpack.recurrent_prey import make_recurrent_prey
from dropin.games.wolfpack.state import (
    ABSENT_CELL,
    DIRECTIONS,
    DOWN,
    LEFT,
    RIGHT,
    STAY,
    TURN_LEFT,
    TURN_RIGHT,
    UP,
    State,
    StepEvents,
    manhattan_distance,
)

__all__ = ["Wolfpack", "make_game"]


class Wolfpack(CooperativeGame):
    """Hunters catch prey together on a grid (paper: section 5.1, appendix B.1).

    The agents are the hunters. The prey belong to the game and act by `prey_policy`. "Next to"
    means above, below, left or right of. The *pack* of a prey is all hunters next to it.

    - observation: not scaled.
        - agents: float32 [slot, 2], row and column of each hunter; -1 if the slot is empty.
        - shared: float32 [6 * num_prey], row and column of each prey, then for each prey the
          direction it faces (up, right, down, left), one-hot.

    - action: int32 [slot], 0 up, 1 right, 2 down, 3 left, 4 stay. Every action is always possible.
      A move off the grid counts as staying. There is no action for capturing.

    - step:
        1. Hunters and prey choose their actions on the state before the step.
        2. Prey that were captured in the previous step reappear on free cells.
        3. Hunters and prey move at once. All that would share a cell return to where they were;
           this is repeated until no cell is shared. Two may swap cells.
        4. A pack of two or more hunters captures its prey.

    - reward: float32 [slot], for each hunter the sum of:
        - `capture_reward` * (size of the pack), for each prey that it captures in a pack;
        - -`lone_penalty`, for each prey that it is next to alone;
        - `shaping_weight` * (cells by which it came closer to the nearest prey); this part is also
          returned as shaping.

    - termination: none; an episode is truncated after `horizon` steps.

    - state: `State`.

    - events: `StepEvents`, who took part in capturing which prey.
    """

    name: ClassVar[str] = "wolfpack"

    size: int = eqx.field(static=True, default=10)
    """Rows and columns of the grid."""
    num_prey: int = eqx.field(static=True, default=2)
    """Number of prey."""
    prey_policy: PreyPolicy = eqx.field(default_factory=RandomPrey)
    """How the prey choose their actions."""
    horizon: Int[Array, ""] = eqx.field(converter=as_int, default=200)
    """Number of steps after which an episode is cut."""
    capture_reward: Float[Array, ""] = eqx.field(converter=as_float, default=2.0)
    """Reward of each hunter in a pack that captures a prey, per hunter in the pack."""
    lone_penalty: Float[Array, ""] = eqx.field(converter=as_float, default=0.5)
    """Cost of being next to a prey alone, per such prey and step."""
    shaping_weight: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)
    """Reward for each cell by which a hunter comes closer to the nearest prey."""

    def __check_init__(self) -> None:
        for name, low in (("size", 2), ("num_prey", 1), ("horizon", 1)):
            value = int(getattr(self, name))
            if value < low:
                raise InputError(f"Wolfpack's {name} is {value}, but it has to be at least {low}.")
        for name in ("capture_reward", "lone_penalty", "shaping_weight"):
            value = float(getattr(self, name))
            if not (np.isfinite(value) and value >= 0):
                raise InputError(
                    f"Wolfpack's {name} is {value:g}, but it has to be a finite number of at"
                    " least 0."
                )

    @property
    def actions(self) -> Sequence[str]:
        """The names of the hunters' actions, in the order of their numbers."""
        return (*DIRECTIONS, "stay")

    @property
    def has_shaping(self) -> bool:
        """Whether a part of the rewards is shaping."""
        return float(self.shaping_weight) != 0

    def features(self, slots: int) -> tuple[Sequence[Feature], Sequence[Feature]]:
        """Return the columns of the agent features x and the entries of the shared features u.

        The shared features are the cells of all prey, then the directions that they face.
        """
        del slots
        owners = [f"prey {number + 1}: " for number in range(self.num_prey)]
        cells = [feature for owner in owners for feature in self._cell_features(owner, "it")]
        facing = [
            Feature(f"{owner}{direction}", f"1 if it faces {direction}, else 0", 0, 1, 0)
            for owner in owners
            for direction in DIRECTIONS
        ]
        return self._cell_features("", "the agent"), cells + facing

    def _cell_features(self, prefix: str, owner: str) -> list[Feature]:
        last = self.size - 1
        return [
            Feature(f"{prefix}row", f"row of {owner}, 0 is up", 0, last, -1),
            Feature(f"{prefix}column", f"column of {owner}, 0 is left", 0, last, -1),
        ]

    def validate(self, slots: int) -> None:
        """Raise `InputError` if the grid is too small for the prey and this many agents."""
        # A prey that reappears avoids the cells that prey were on, hence two cells for each.
        needed = slots + 2 * self.num_prey
        if self.size**2 < needed:
            raise InputError(
                f"A grid of {self.size}x{self.size} is too small for {slots} agents and"
                f" {self.num_prey} prey: they need {needed} cells."
            )

    def reset(self, rng: StepRNG, present: Bool[Array, " slot"]) -> State:
        """Return the first state of an episode: everybody on a different cell, prey facing up."""
        placed = jnp.concatenate([present, jnp.ones(self.num_prey, bool)])
        cells = self._draw_cells(rng, placed, jnp.full(1, -1))
        slots = present.shape[0]
        return State(
            hunters=jnp.where(present[:, None], cells[:slots], ABSENT_CELL),
            prey=cells[slots:],
            facing=jnp.zeros(self.num_prey, jnp.int32),
            captured=jnp.zeros(self.num_prey, bool),
            time=jnp.int32(0),
            memory=self.prey_policy.init_memory(self.num_prey),
        )

    def _draw_cells(
        self, rng: StepRNG, wanted: Bool[Array, " n"], taken: Int[Array, " m"]
    ) -> Int[Array, "n 2"]:
        """Draw distinct cells outside of `taken` for the rows in which one is wanted."""
        total = jnp.int32(self.size**2)
        return cell_position(draw_cells(rng.uniform(len(wanted)), wanted, taken, total), self.size)

    def _cell_indices(self, state: State) -> Int[Array, " hunters_and_prey"]:
        """Return the index of each hunter's and prey's cell; distinct negatives for the absent."""
        cells = jnp.concatenate([state.hunters, state.prey])
        index = cells[:, 0] * self.size + cells[:, 1]
        return jnp.where(cells[:, 0] >= 0, index, -1 - jnp.arange(len(cells)))

    def spawn(self, rng: StepRNG, state: State, entering: Bool[Array, " slot"]) -> State:
        """Place newcomers on free cells."""
        cells = self._draw_cells(rng, entering, self._cell_indices(state))
        hunters = jnp.where(entering[:, None], cells, state.hunters)
        return replace(state, hunters=hunters)

    def despawn(self, state: State, leaving: Bool[Array, " slot"]) -> State:
        """Remove hunters that leave from the grid."""
        return replace(state, hunters=jnp.where(leaving[:, None], ABSENT_CELL, state.hunters))

    def step(
        self, rng: StepRNG, state: State, actions: Int[Array, " slot"]
    ) -> tuple[State, StepOutcome]:
        """Let all hunters and prey act at once.

        The prey choose before captured ones reappear, so they do not know where that will be.

        Args:
            rng: Random numbers of this step.
            state: The state before the step.
            actions: The action of each hunter.

        Returns:
            The state after the step, and what the step led to.
        """
        prey_actions, memory = self.prey_policy.act(rng, self.size, state)
        state = replace(self.respawn_prey(rng, state), memory=memory)
        return self.apply_actions(state, actions, prey_actions)

    def respawn_prey(self, rng: StepRNG, state: State) -> State:
        """Move the prey that were captured in the previous step to free cells.

        Args:
            rng: Random numbers of this step.
            state: The state.
        """
        cells = self._draw_cells(rng, state.captured, self._cell_indices(state))
        prey = jnp.where(state.captured[:, None], cells, state.prey)
        return replace(state, prey=prey, captured=jnp.zeros_like(state.captured))

    def apply_actions(
        self, state: State, actions: Int[Array, " slot"], prey_actions: Int[Array, " prey"]
    ) -> tuple[State, StepOutcome]:
        """Move hunters and prey and capture; the deterministic part of a step.

        Args:
            state: A state in which captured prey have reappeared.
            actions: The action of each hunter.
            prey_actions: The action of each prey.

        Returns:
            The state after the step, and what the step led to.
        """
        present, slots = state.present, len(actions)
        prey_moves = jnp.where(prey_actions < STAY, (state.facing + prey_actions) % 4, STAY)
        before = self._cell_indices(state)
        requested = self._requested_cells(state, jnp.concatenate([actions, prey_moves]))
        cells = cell_position(self._resolve_collisions(before, requested), self.size)
        hunters = jnp.where(present[:, None], cells[:slots], ABSENT_CELL)
        prey = cells[slots:]
        turn = jnp.where(prey_actions == TURN_RIGHT, 1, jnp.where(prey_actions == TURN_LEFT, 3, 0))

        distance = _pairwise_distance(hunters, prey)
        next_to = (distance == 1) & present[:, None]
        pack_size = jnp.sum(next_to, axis=0)
        captured = pack_size > 1
        reward_per_prey = jnp.where(
            captured, self.capture_reward * pack_size.astype(jnp.float32), -self.lone_penalty
        )
        rewards = jnp.sum(jnp.where(next_to, reward_per_prey[None], 0.0), axis=1)
        distance_before = _pairwise_distance(state.hunters, state.prey)
        closer = jnp.min(distance_before, axis=1) - jnp.min(distance, axis=1)
        shaping = jnp.where(present, self.shaping_weight * closer.astype(jnp.float32), 0.0)

        following = State(
            hunters=hunters,
            prey=prey,
            facing=(state.facing + turn) % 4,
            captured=captured,
            time=state.time + 1,
            memory=state.memory,
        )
        outcome = StepOutcome(
            rewards=rewards + shaping,
            shaping=shaping,
            terminated=jnp.array(False),
            truncated=following.time >= self.horizon,
            events=StepEvents(next_to & captured[None]),
        )
        return following, outcome

    def _requested_cells(
        self, state: State, moves: Int[Array, " hunters_and_prey"]
    ) -> Int[Array, " hunters_and_prey"]:
        """Return the cell that each move leads to; the own cell if that is off the grid."""
        current = self._cell_indices(state)
        row, column = current // self.size, current % self.size
        down = jnp.where(moves == DOWN, 1, jnp.where(moves == UP, -1, 0))
        right = jnp.where(moves == RIGHT, 1, jnp.where(moves == LEFT, -1, 0))
        row, column = row + down, column + right
        inside = (row >= 0) & (row < self.size) & (column >= 0) & (column < self.size)
        return jnp.where(inside & (current >= 0), row * self.size + column, current)

    def _resolve_collisions(
        self,
        before: Int[Array, " hunters_and_prey"],
        requested: Int[Array, " hunters_and_prey"],
    ) -> Int[Array, " hunters_and_prey"]:
        """Send all that share a cell back to where they were, until no cell is shared.

        All were on different cells before, so each round with a shared cell sends at least one
        back for good: there are no more rounds than hunters and prey.
        """
        before, cells = materialize(before), materialize(requested)
        for _ in range(len(before)):
            shared = jnp.sum(cells[:, None] == cells[None], axis=1) > 1
            cells = materialize(jnp.where(shared, before, cells))
        return cells

    def observe(self, state: State) -> tuple[Float[Array, "slot 2"], Float[Array, " shared"]]:
        """Return the agent features x and the shared features u, not scaled."""
        facing = state.facing[:, None] == jnp.arange(4)[None]
        shared = jnp.concatenate([state.prey.reshape(-1), facing.astype(jnp.int32).reshape(-1)])
        return state.hunters.astype(jnp.float32), shared.astype(jnp.float32)


def _pairwise_distance(
    hunters: Int[Array, "slot 2"], prey: Int[Array, "prey 2"]
) -> Int[Array, "slot prey"]:
    return manhattan_distance(hunters[:, None], prey[None])


def make_game(rules: str, **settings: object) -> Wolfpack:
    """Make Wolfpack under the given rules, with the prey of the zoo unless others are given.

    Args:
        rules: `paper`, or `reference`, which adds shaping to the reward.
        **settings: Fields of `Wolfpack` to change.

    Returns:
        The game.

    Raises:
        InputError: If there is no such setting, or a value cannot be used.
    """
    check_rules(rules)
    preset: dict[str, object] = {"shaping_weight": 0.01} if rules == "reference" else {}
    if "prey_policy" not in settings:
        preset["prey_policy"] = make_recurrent_prey()
    return make_preset(Wolfpack, preset, settings)
