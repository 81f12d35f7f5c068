"""One open team, step by step, with the actions of people.

A simulation is a pure function of its seed and of what people do: `reset`, `step` and `change` make
a new `Moment` from an old one, so an episode can be continued from any of its moments, and the same
calls give the same bits. With nobody in the team, an episode is that of
`dropin.render.episode.record_episode`.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int, UInt32

from dropin.analysis.mind import Mind
from dropin.arena.frames import Accuracy, Frame, FrameMaker, shorten
from dropin.arena.packing import Packed
from dropin.arena.programs import Seen, Thought, mind_programs, team_programs
from dropin.arena.projection import Projection, fit_projection
from dropin.core.errors import InputError
from dropin.core.observation import Observation, TimeStep
from dropin.env import AnyEnv, AnyEnvState
from dropin.policies import Policy

__all__ = ["Moment", "Simulation"]

_MAP_SEED, _MAP_STEPS = 0, 128
"""Of the episodes that the map of type vectors is fitted to."""
_WHOLE = re.compile(rb"(?<=\d)\.0(?=[],}])")
"""The end of whole floats, such as 0.0: without it, messages of large teams are shorter."""


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A state of an episode, with what the learner computes in it before it acts."""

    step: int
    """Number of steps taken."""
    done: bool
    """Whether the episode has ended."""
    score: float
    """The learner's return so far."""
    encoded: bytes
    """The frame as JSON: a dictionary of so many small values takes ten times the memory."""
    accuracy: Accuracy
    """For each slot how many actions were predicted, and how many there were, since it arrived."""
    seen: Seen
    """The state, packed, with the learner's observation and the key of what comes."""
    before: Packed
    """The learner's memory before this state."""
    thought: Thought
    """What the learner has chosen to do, its memory after this state, and what it computed."""
    outcome: Packed | None = None
    """What the last step led to; None at the start."""

    @property
    def frame(self) -> Frame:
        """The moment as JSON can hold it, see `dropin.arena.frames.FrameMaker.frame`."""
        return json.loads(self.encoded)

    @property
    def digest(self) -> str:
        """A checksum of the state, of the key, and of what the learner has chosen."""
        whole = hashlib.blake2b(digest_size=12)
        for vector in (*self.seen[0], self.thought[0]):
            whole.update(vector.tobytes())
        return whole.hexdigest()


class Simulation:
    """An environment and whoever plays the learner.

    All simulations of one game, number of slots and pool share their compiled programs, and so do
    all with the same kind of learner.

    Args:
        env: The environment.
        policy: The policy of slot 0.
        mind: Whether moments tell what the learner computes.
    """

    def __init__(self, env: AnyEnv, policy: Policy, *, mind: bool = True):
        self.env, self.policy = env, policy
        self._team, self._env_params = team_programs(env)
        self._learner, self._policy_params = mind_programs(self._team, env, policy, mind=mind)
        self._frames = FrameMaker(env)
        self._num_actions = len(env.game.actions)
        self._unknown: Accuracy = ((0, 0),) * env.slots

    @classmethod
    def prepare(cls, env: AnyEnv, policy: Policy) -> "Simulation":
        """Make a simulation and compile what its steps need.

        Args:
            env: The environment.
            policy: The policy of slot 0.
        """
        with ThreadPoolExecutor() as compiling:
            team, params = team_programs(env)
            team.warm_up(params, compiling)  # While the learner is traced.
            simulation = cls(env, policy)
            simulation.warm_up()
            return simulation

    def reset(self, seed: int) -> Moment:
        """Start an episode.

        Args:
            seed: The same seed gives the same episode.
        """
        seen = self._team.reset(self._env_params, _key_bits(seed))
        before = _on_host(self._learner.init(self._policy_params))
        seen, thought, types = self._think(seen, before)
        state = self._state(seen)
        mind = self._mind_frame(thought, types, state, self._unknown)
        frame = _encode(self._frames.frame(state, mind, step=0, score=0.0))
        return Moment(0, False, 0.0, frame, self._unknown, seen, before, thought)

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
        core, (action, memory, _) = moment.seen[0], moment.thought
        packed, seen = self._team.step(self._env_params, core, action, self._forced(forced))
        seen, thought, types = self._think(seen, memory)
        packed = _on_host(packed)
        outcome, state = self._team.time_step.unpack(packed), self._state(seen)
        accuracy = self._next_accuracy(moment, outcome, state)
        score = moment.score + float(outcome.rewards[0])
        frame = self._frames.frame(
            state,
            self._mind_frame(thought, types, state, accuracy),
            step=moment.step + 1,
            score=score,
            outcome=outcome,
            previous=self._state(moment.seen),
        )
        return Moment(
            moment.step + 1,
            frame["done"],
            score,
            _encode(frame),
            accuracy,
            seen,
            memory,
            thought,
            packed,
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
        actions = range(self._num_actions)
        return [self.step(moment, {**forced, slot: action}) for action in actions]

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

        Raises:
            InputError: If the episode has ended, or there is no such slot.
        """
        if moment.done:
            raise InputError(f"The episode ended at step {moment.step}: nobody comes or goes.")
        present = np.asarray(self._state(moment.seen).game.present)
        leaving = self._may_leave(present, left)
        replacing = {*replaced, *left} - leaving
        masks = [self._mask(slots) & present for slots in (joined, replacing, leaving)]
        seen = self._team.change(self._env_params, moment.seen[0], *masks)
        seen, thought, types = self._think(seen, moment.before)
        state = self._state(seen)
        arrived = np.asarray(state.arrived).tolist()
        pairs = zip(arrived, moment.accuracy, strict=True)
        accuracy = tuple((0, 0) if new else counts for new, counts in pairs)
        mind = self._mind_frame(thought, types, state, accuracy)
        frame = self._frames.frame(state, mind, step=moment.step, score=moment.score)
        came, went = (np.flatnonzero(mask).tolist() for mask in (masks[0] | masks[1], masks[2]))
        return replace(
            moment,
            encoded=_encode(self._frames.changed(moment.frame, frame, came, went)),
            accuracy=accuracy,
            seen=seen,
            thought=thought,
        )

    def pair_table(self, moment: Moment, a: int, b: int) -> list[list[float]]:
        """Return the pairwise utilities of two agents (Eq. 7).

        Args:
            moment: The moment.
            a: The slot whose actions are the rows.
            b: The slot whose actions are the columns.

        Raises:
            InputError: If the learner has no pairwise utilities, or these are no two agents.
        """
        agents = moment.frame["agents"]
        known = [0 <= slot < len(agents) and agents[slot]["present"] for slot in (a, b)]
        if a == b or not all(known):
            raise InputError(f"There is no pair of agents in slots {a} and {b} at this step.")
        _, observation, key = moment.seen
        tables = self._learner.pairs(self._policy_params, observation, key, moment.before)
        if tables is None:
            raise InputError("This learner has no pairwise utilities.")
        return shorten(np.asarray(tables)[a, b])

    def warm_up(self) -> None:
        """Compile what every episode needs, so that its steps do not take long."""
        # All at once, since compilation is not held up by Python's lock; the longest begins.
        with ThreadPoolExecutor() as compiling:
            begun = self._team.warm_up(self._env_params, compiling)
            begun += self._learner.warm_up(self._policy_params, self._team.seen, compiling)
        for each in begun:
            each.result()
        self.step(self.reset(0), {})

    def warm_up_for_people(self) -> None:
        """Compile what is needed when people come and go, and when they look at pairs."""
        core, observation, key = self._team.seen
        nobody, memory = self._mask(()), self._learner.packed_memory
        self._team.change.compile(self._env_params, core, nobody, nobody, nobody)
        self._learner.pairs.compile(self._policy_params, observation, key, memory)

    def observation(self, moment: Moment) -> Observation:
        """Return what the learner sees, as NumPy arrays."""
        return self._team.observation.unpack(moment.seen[1])

    def mind(self, moment: Moment) -> Mind:
        """Return what the learner computes, without type vectors, as NumPy arrays."""
        return self._learner.mind.unpack(moment.thought[2])

    def state(self, moment: Moment) -> AnyEnvState:
        """Return the state of the environment, as NumPy arrays."""
        return self._state(moment.seen)

    def time_step(self, moment: Moment) -> TimeStep | None:
        """Return what the last step led to, as NumPy arrays; None at the start of an episode."""
        if moment.outcome is None:
            return None
        return self._team.time_step.unpack(moment.outcome)

    def _state(self, seen: Seen) -> AnyEnvState:
        return self._team.core.unpack(seen[0]).state

    def _think(
        self, seen: Seen, memory: Packed
    ) -> tuple[Seen, Thought, Float[np.ndarray, "slot type"] | None]:
        """Let the learner choose; return what it sees, its choice and type vectors, on the host."""
        core, observation, key = seen
        needed = core if self._learner.needs_core else ()
        result = self._learner.think(self._policy_params, needed, observation, key, memory)
        # Copies: a view of a JAX array keeps all of that array's machinery alive.
        return jax.tree.map(np.array, (seen, result[:3], result[3]))

    def _mind_frame(
        self,
        thought: Thought,
        types: Float[np.ndarray, "slot type"] | None,
        state: AnyEnvState,
        accuracy: Accuracy,
    ) -> dict[str, Any] | None:
        """Return the part of a frame that is about the learner."""
        points = None if types is None else self._map(types)
        mind = self._learner.mind.unpack(thought[2])
        return self._frames.mind(mind, np.asarray(state.game.present), accuracy, points)

    @cached_property
    def _map(self) -> Projection:
        """The map of type vectors, fitted to episodes that are the same every time."""
        rows, seed, step, nobody = [], _MAP_SEED, 0, self._forced({})
        while step < _MAP_STEPS:
            seen = self._team.reset(self._env_params, _key_bits(seed))
            memory, done = self._learner.init(self._policy_params), False
            while not done and step < _MAP_STEPS:
                seen, (action, memory, _), types = self._think(seen, memory)
                assert types is not None
                rows.append(types[np.asarray(self._state(seen).game.present)])
                packed, seen = self._team.step(self._env_params, seen[0], action, nobody)
                done = bool(self._team.time_step.unpack(_on_host(packed)).done)
                step += 1
            seed += 1
        return fit_projection(np.concatenate(rows))

    def _next_accuracy(self, moment: Moment, outcome: TimeStep, state: AnyEnvState) -> Accuracy:
        """Return how predictions have fared after one more step."""
        probs = self.mind(moment).teammate_probs
        if probs is None:
            return moment.accuracy
        actions, acted, arrived = (
            np.asarray(each) for each in (outcome.actions, outcome.acted, state.arrived)
        )
        hits = (np.argmax(np.asarray(probs), axis=1) == actions) & acted
        counted = zip(moment.accuracy, hits.tolist(), acted.tolist(), arrived.tolist(), strict=True)
        return tuple(
            (0, 0) if new else (right + hit, total + did)
            for (right, total), hit, did, new in counted
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

    def _forced(self, forced: Mapping[int, int]) -> Int[np.ndarray, " slot"]:
        """Return an action for each slot that is forced, and -1 elsewhere."""
        actions = np.full(len(self._unknown), -1, np.int32)
        for slot, action in forced.items():
            self._check_slot(slot)
            if not 0 <= action < self._num_actions:
                raise InputError(
                    f"There is no action {action}: actions are 0 to {self._num_actions - 1}."
                )
            actions[slot] = action
        return actions

    def _mask(self, slots: Iterable[int]) -> Bool[np.ndarray, " slot"]:
        mask = np.zeros(len(self._unknown), bool)
        for slot in slots:
            self._check_slot(slot)
            mask[slot] = True
        return mask

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < len(self._unknown):
            raise InputError(f"There is no slot {slot}: slots are 0 to {len(self._unknown) - 1}.")


def _key_bits(seed: int) -> UInt32[np.ndarray, " word"]:
    return np.asarray(jax.random.key_data(jax.random.key(seed)))


def _on_host(packed: Packed) -> Packed:
    return tuple(np.array(vector) for vector in packed)


def _encode(frame: Frame) -> bytes:
    text = json.dumps(frame, separators=(",", ":"), allow_nan=False).encode()
    return _WHOLE.sub(b"", text)
