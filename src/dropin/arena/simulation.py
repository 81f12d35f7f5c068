"""One open team, step by step, with the actions of people.

A simulation is a pure function of its seed and of what people do: `reset`, `step` and `change` make
a new `Moment` from an old one, so an episode can be continued from any of its moments, and the same
calls give the same bits. With nobody in the team, an episode is that of
`dropin.render.episode.record_episode`.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dropin.arena.frames import Accuracy, Frame, FrameMaker, shorten
from dropin.arena.packing import Packed
from dropin.arena.programs import Core, Thought, programs_for
from dropin.arena.projection import Projection, fit_projection
from dropin.core.errors import InputError
from dropin.core.observation import TimeStep
from dropin.env import AnyEnv
from dropin.policies import Policy

__all__ = ["Moment", "Simulation"]

_MAP_SEED, _MAP_STEPS = 0, 128
"""Of the episodes that the map of type vectors is fitted to."""


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A state of an episode, with what the learner computes in it before it acts."""

    step: int
    """Number of steps taken."""
    done: bool
    """Whether the episode has ended."""
    score: float
    """The learner's return so far."""
    frame: Frame
    """The moment as JSON can hold it, see `dropin.arena.frames.FrameMaker.frame`."""
    accuracy: Accuracy
    """For each slot how many actions were predicted, and how many there were, since it arrived."""
    core: Packed
    """All that the rest of the episode depends on, besides the memory."""
    memory: Packed
    """The learner's memory after this state."""
    before: Packed
    """The learner's memory before this state."""
    thought: Packed
    """What the learner sees and computes."""
    outcome: Packed | None
    """What the last step led to; None at the start."""

    @property
    def digest(self) -> str:
        """A checksum of everything that the rest of the episode depends on but the memory."""
        whole = hashlib.blake2b(digest_size=12)
        for vector in self.core:
            whole.update(np.asarray(vector).tobytes())
        return whole.hexdigest()


class Simulation:
    """An environment and whoever plays the learner.

    Args:
        env: The environment.
        policy: The policy of slot 0. The environment's weights and parameters may differ between
            simulations that share their compiled programs.
        mind: Whether moments tell what the learner computes.
    """

    def __init__(self, env: AnyEnv, policy: Policy, *, mind: bool = True):
        self.env, self.policy = env, policy
        self._programs, self._params = programs_for(env, policy, mind=mind)
        self._frames = FrameMaker(env)
        self._num_actions = len(env.game.actions)
        self._unknown: Accuracy = ((0, 0),) * env.slots

    def reset(self, seed: int) -> Moment:
        """Start an episode.

        Args:
            seed: The same seed gives the same episode.
        """
        before, result = self._programs.reset(self._params, _key_bits(seed))
        core, memory, thought, types = result
        state = self.core(core).state
        mind = self._mind(thought, types, state.game.present, self._unknown)
        frame = self._frames.frame(state, mind, step=0, score=0.0)
        return Moment(0, False, 0.0, frame, self._unknown, core, memory, before, thought, None)

    def step(self, moment: Moment, forced: Mapping[int, int]) -> Moment:
        """Take a step.

        Args:
            moment: The moment to go on from.
            forced: By slot, the actions of people; slot 0 is the learner's. An action of an agent
                that is not present has no effect.

        Raises:
            InputError: If the episode has ended, or there is no such slot or action.
        """
        if moment.done:
            raise InputError(f"The episode ended at step {moment.step}: there is no next one.")
        packed, (core, memory, thought, types) = self._programs.step(
            self._params, moment.core, moment.memory, self._forced(forced)
        )
        outcome, previous = self.time_step(packed), self.core(moment.core).state
        state = self.core(core).state
        accuracy = self._next_accuracy(moment, outcome, state.arrived)
        score = moment.score + float(outcome.rewards[0])
        frame = self._frames.frame(
            state,
            self._mind(thought, types, state.game.present, accuracy),
            step=moment.step + 1,
            score=score,
            outcome=outcome,
            previous=previous,
        )
        return Moment(
            step=moment.step + 1,
            done=bool(outcome.terminated | outcome.truncated),
            score=score,
            frame=frame,
            accuracy=accuracy,
            core=core,
            memory=memory,
            before=moment.memory,
            thought=thought,
            outcome=packed,
        )

    def step_each(self, moment: Moment, forced: Mapping[int, int], slot: int) -> list[Moment]:
        """Take a step for each action of one slot.

        A batch would be quicker but not equal to the bit, and one of these moments becomes the next
        of an episode that can be re-simulated.

        Args:
            moment: The moment to go on from.
            forced: By slot, the actions of other people.
            slot: The slot whose actions are tried.

        Returns:
            What `step` returns for each action.
        """
        return [self.step(moment, {**forced, slot: a}) for a in range(self._num_actions)]

    def change(
        self,
        moment: Moment,
        *,
        joined: Collection[int] = (),
        replaced: Collection[int] = (),
        left: Collection[int] = (),
    ) -> Moment:
        """Let people take over the places of agents, or give them back.

        The learner is told nothing but that somebody has arrived, so its memory of that agent
        starts at zero, and it thinks again. In slots without an agent nothing changes.

        Args:
            moment: The moment.
            joined: Slots in which a person takes the place of the agent.
            replaced: Slots in which an agent of a type that is drawn now takes the place; in slot 0
                the learner.
            left: Slots whose agent leaves the team; who enters next is up to the openness. The
                learner and the last agent of a side cannot leave: they are replaced.

        Returns:
            A moment of the same step.
        """
        present = np.asarray(self.core(moment.core).state.game.present)
        leaving = self._may_leave(present, left)
        replacing = {*replaced, *left} - leaving
        masks = [self._mask(slots) & present for slots in (joined, replacing, leaving)]
        core, memory, thought, types = self._programs.change(
            self._params, moment.core, moment.before, *masks
        )
        state = self.core(core).state
        accuracy = tuple(
            (0, 0) if arrived else old
            for arrived, old in zip(state.arrived.tolist(), moment.accuracy, strict=True)
        )
        mind = self._mind(thought, types, state.game.present, accuracy)
        new = self._frames.frame(state, mind, step=moment.step, score=moment.score)
        came, went = (np.flatnonzero(mask).tolist() for mask in (masks[0] | masks[1], masks[2]))
        return replace(
            moment,
            frame=self._frames.changed(moment.frame, new, came, went),
            accuracy=accuracy,
            core=core,
            memory=memory,
            thought=thought,
        )

    def _may_leave(self, present: Bool[np.ndarray, " slot"], left: Collection[int]) -> set[int]:
        """Return who of those that want to leave can, the lowest slots first."""
        remaining, leaving = set(np.flatnonzero(present).tolist()) - {0}, set[int]()
        for slot in sorted(remaining.intersection(left)):
            side = self.env.sides[slot]
            if any(self.env.sides[other] == side for other in remaining - {slot}):
                remaining.discard(slot)
                leaving.add(slot)
        return leaving

    def pair_table(self, moment: Moment, a: int, b: int) -> list[list[float]]:
        """Return the pairwise utilities of two agents (Eq. 7).

        Args:
            moment: The moment.
            a: The slot whose actions are the rows.
            b: The slot whose actions are the columns.

        Raises:
            InputError: If the learner has no pairwise utilities, or these are no two agents.
        """
        if a == b or not all(self._is_present(moment, slot) for slot in (a, b)):
            raise InputError(f"There is no pair of slots {a} and {b} now.")
        tables = self._programs.pairs(self._params, moment.core, moment.before)
        if tables is None:
            raise InputError("This learner has no pairwise utilities.")
        return shorten(np.asarray(tables)[a, b])

    def _is_present(self, moment: Moment, slot: int) -> bool:
        return 0 <= slot < self.env.slots and bool(moment.frame["agents"][slot]["present"])

    def warm_up(self) -> None:
        """Compile everything, so that no later call takes long."""
        moment = self.change(self.reset(0))
        self.step(moment, {})
        self._programs.pairs(self._params, moment.core, moment.before)

    def core(self, packed: Packed) -> Core:
        """Return the core of a moment with NumPy arrays."""
        return self._programs.core.unpack(_as_numpy(packed))

    def thought(self, packed: Packed) -> Thought:
        """Return what the learner sees and computes in a moment with NumPy arrays."""
        return self._programs.thought.unpack(_as_numpy(packed))

    def time_step(self, packed: Packed) -> TimeStep:
        """Return what the last step of a moment led to with NumPy arrays."""
        return self._programs.time_step.unpack(_as_numpy(packed))

    def _mind(
        self,
        thought: Packed,
        types: Float[Array, "slot type"] | None,
        present: Bool[np.ndarray, " slot"],
        accuracy: Accuracy,
    ) -> dict[str, Any] | None:
        """Return the part of a frame that is about the learner."""
        points = None if types is None else self._map(np.asarray(types))
        return self._frames.mind(self.thought(thought).mind, present, accuracy, points)

    @cached_property
    def _map(self) -> Projection:
        """The map of type vectors, fitted to episodes that are the same every time."""
        rows, seed, nobody = [], _MAP_SEED, self._forced({})
        _, result = self._programs.reset(self._params, _key_bits(seed))
        for _ in range(_MAP_STEPS):
            core, memory, _, types = result
            rows.append(np.asarray(types)[np.asarray(self.core(core).state.game.present)])
            packed, result = self._programs.step(self._params, core, memory, nobody)
            outcome = self.time_step(packed)
            if outcome.terminated or outcome.truncated:
                seed += 1
                _, result = self._programs.reset(self._params, _key_bits(seed))
        return fit_projection(np.concatenate(rows))

    def _next_accuracy(
        self, moment: Moment, outcome: TimeStep, arrived: Bool[np.ndarray, " slot"]
    ) -> Accuracy:
        """Return how predictions have fared after one more step."""
        probs = self.thought(moment.thought).mind.teammate_probs
        if probs is None:
            return moment.accuracy
        hits = (np.argmax(probs, axis=1) == outcome.actions) & outcome.acted
        counted = zip(
            moment.accuracy, hits.tolist(), outcome.acted.tolist(), arrived.tolist(), strict=True
        )
        return tuple(
            (0, 0) if new else (right + hit, total + acted)
            for (right, total), hit, acted, new in counted
        )

    def _forced(self, forced: Mapping[int, int]) -> Int[np.ndarray, " slot"]:
        """Return an action for each slot that is forced, and -1 elsewhere."""
        actions = np.full(self.env.slots, -1, np.int32)
        for slot, action in forced.items():
            self._check_slot(slot)
            if not 0 <= action < self._num_actions:
                raise InputError(
                    f"There is no action {action}: actions are 0 to {self._num_actions - 1}."
                )
            actions[slot] = action
        return actions

    def _mask(self, slots: Iterable[int]) -> Bool[np.ndarray, " slot"]:
        mask = np.zeros(self.env.slots, bool)
        for slot in slots:
            self._check_slot(slot)
            mask[slot] = True
        return mask

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < self.env.slots:
            raise InputError(f"There is no slot {slot}: slots are 0 to {self.env.slots - 1}.")


def _key_bits(seed: int) -> UInt32[np.ndarray, " word"]:
    return np.asarray(jax.random.key_data(jax.random.key(seed)))


def _as_numpy(packed: Packed) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(vector) for vector in packed)
