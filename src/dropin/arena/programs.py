"""The compiled programs of a simulation: those of the team, and those of the learner.

What a program works with is split into its arrays, which are arguments, and the rest, its
structure, which selects the program. So all rooms with the same game and slots share the programs
of the team, and all with the same kind of learner share its programs, whatever the weights and the
parameters of the rules. The learner thinks in one and the same program whether an episode starts,
goes on or is changed, so the same observation and memory always give the same bits.
"""

import functools
import threading
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree, Shaped, UInt32

from dropin._xla.random import split
from dropin.agents import AgentPolicy
from dropin.analysis.mind import Mind, look_inside, pair_tables
from dropin.arena.packing import Packed, Packing
from dropin.arena.program import Program, trace_once
from dropin.core.observation import Observation, TimeStep
from dropin.env import AnyEnv, AnyEnvState
from dropin.policies import Policy

__all__ = [
    "Core",
    "MindPrograms",
    "Params",
    "Seen",
    "TeamPrograms",
    "Thought",
    "mind_programs",
    "team_programs",
]

Tree = TypeVar("Tree")
Params = tuple[Shaped[Array, "..."], ...]
"""The arrays of what a program works with."""
KeyBits = UInt32[Array, " word"]
_LOCK = threading.Lock()
"""So that rooms that are made at the same time share their programs, too."""
_MOST_PROGRAMS = 32
"""Programs of this many structures are kept; those in use are kept anyway."""


class Core(eqx.Module):
    """All that the rest of an episode depends on, besides the learner."""

    key: PRNGKeyArray
    """For all random numbers from here on."""
    state: AnyEnvState


Seen = tuple[Packed, Packed, KeyBits]
"""A packed core, the packed observation of the learner, and the bits of the core's key."""
Thought = tuple[Int[Array, ""], Packed, Packed]
"""An action, the packed memory afterwards, and a packed mind without type vectors."""


@dataclass(frozen=True)
class _Structure(Generic[Tree]):
    """A pytree with shapes in the place of arrays; it can be hashed."""

    leaves: tuple[Any, ...]
    treedef: Any

    @property
    def shapes(self) -> Tree:
        return jax.tree.unflatten(self.treedef, self.leaves)

    def combine(self, params: Params) -> Tree:
        """Return the pytree with these arrays."""
        waiting = iter(params)
        leaves = [next(waiting) if _is_shape(leaf) else leaf for leaf in self.leaves]
        return jax.tree.unflatten(self.treedef, leaves)

    @property
    def params(self) -> Any:
        """The shapes of the arrays."""
        return tuple(leaf for leaf in self.leaves if _is_shape(leaf))


def _is_shape(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _split_off(tree: Tree) -> tuple[_Structure[Tree], Params]:
    """Return the structure and the arrays of a pytree."""
    leaves, treedef = jax.tree.flatten(tree)
    params = tuple(leaf for leaf in leaves if eqx.is_array(leaf))
    shapes = [
        jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if eqx.is_array(leaf) else leaf
        for leaf in leaves
    ]
    return _Structure(tuple(shapes), treedef), params


def team_programs(env: AnyEnv) -> "tuple[TeamPrograms, Params]":
    """Return the programs for an environment, and its arrays.

    Args:
        env: The environment.
    """
    structure, params = _split_off(env)
    with _LOCK:
        return _cached_team(structure), params


class TeamPrograms:
    """The programs of an environment.

    Args:
        structure: The structure of the environment.
    """

    def __init__(self, structure: _Structure[AnyEnv]):
        self._structure = structure
        params, key = structure.params, jax.eval_shape(lambda: jax.random.key(0))
        self._first, self._take_step = trace_once(self._first), trace_once(self._take_step)
        core, observation = jax.eval_shape(self._first, params, key)
        slots = observation.present.shape
        some = jax.ShapeDtypeStruct((), np.dtype(np.int32))
        forced = jax.ShapeDtypeStruct(slots, np.dtype(np.int32))
        step = jax.eval_shape(self._take_step, params, core, some, forced)[1]
        self.core: Packing[Core] = Packing(core)
        self.observation: Packing[Observation] = Packing(observation)
        self.time_step: Packing[TimeStep] = Packing(step)
        self.shapes = _Structure(*_leaves((core, observation)))
        bits = jax.eval_shape(jax.random.key_data, key)
        self.seen: Seen = jax.eval_shape(self._reset, params, bits)
        """The shapes of what is seen."""
        quick = not _has_floats(core.state.game)
        self.reset: Program[Seen] = Program(self._reset, quick=quick)
        """(params, bits of a key) -> what is seen first"""
        self.step: Program[tuple[Packed, Seen]] = Program(self._step, quick=quick)
        """(params, core, learner's action, forced) -> packed time step, what is seen next"""
        self.change: Program[Seen] = Program(self._change, quick=quick)
        """(params, core, joined, replaced, left) -> what is seen after that"""

    def warm_up(self, params: Params, compiling: Executor) -> list[Future[Any]]:
        """Begin to compile what every episode needs, the longest first.

        Args:
            params: The arrays to call the programs with.
            compiling: Threads to compile in.
        """
        core, _, bits = self.seen
        forced = np.full(self.observation.template.present.shape, -1, np.int32)
        return [
            compiling.submit(self.step.compile, params, core, np.int32(0), forced),
            compiling.submit(self.reset.compile, params, bits),
        ]

    def _see(self, core: Core, observation: Observation) -> Seen:
        bits = jax.random.key_data(core.key)
        return self.core.pack(core), self.observation.pack(observation), bits

    def _first(self, params: Params, key: PRNGKeyArray) -> tuple[Core, Observation]:
        # The keys are those of `dropin.render.episode.record_episode`, here and below.
        key, reset_key = split(key)
        state, observation = self._structure.combine(params).reset(reset_key)
        return Core(key, state), observation

    def _reset(self, params: Params, bits: KeyBits) -> Seen:
        return self._see(*self._first(params, jax.random.wrap_key_data(bits)))

    def _take_step(
        self, params: Params, core: Core, action: Int[Array, ""], forced: Int[Array, " slot"]
    ) -> tuple[Core, TimeStep]:
        key, _, step_key = split(core.key, 3)
        state, step = self._structure.combine(params).step_all(
            step_key, core.state, action[None], auto_reset=False, forced=forced
        )
        return Core(key, state), step

    def _step(
        self, params: Params, core: Packed, action: Int[Array, ""], forced: Int[Array, " slot"]
    ) -> tuple[Packed, Seen]:
        following, step = self._take_step(params, self.core.unpack(core), action, forced)
        return self.time_step.pack(step), self._see(following, step.final_observation)

    def _change(
        self,
        params: Params,
        core: Packed,
        joined: Bool[Array, " slot"],
        replaced: Bool[Array, " slot"],
        left: Bool[Array, " slot"],
    ) -> Seen:
        env, now = self._structure.combine(params), self.core.unpack(core)
        # A step splits the key into three, so the fourth is used here only.
        following, change_key = split(split(now.key, 4)[3])
        bits = [jax.random.key_data(each) for each in (following, now.key)]
        key = jax.random.wrap_key_data(jnp.where(jnp.any(replaced), *bits))
        state = replace(
            now.state,
            game=env.game.despawn(now.state.game, left),
            roster=env.team.pool.spawn(env._step_rng(change_key), now.state.roster, replaced),
            arrived=(now.state.arrived | joined | replaced) & ~left,
        )
        return self._see(Core(key, state), env._observe(state))


def mind_programs(
    team: TeamPrograms, env: AnyEnv, policy: Policy, *, mind: bool
) -> "tuple[MindPrograms, Params]":
    """Return the programs for whoever plays the learner, and the arrays to call them with.

    Args:
        team: The programs of the environment.
        env: The environment.
        policy: The policy of slot 0.
        mind: Whether the policy is looked into.
    """
    # A trained agent does not look at the environment.
    looks = not isinstance(policy, AgentPolicy)
    structure, params = _split_off((env if looks else None, policy))
    core, observation = team.shapes.shapes
    seen = _Structure(*_leaves((core if looks else None, observation)))
    with _LOCK:
        return _cached_mind(structure, seen, mind), params


class MindPrograms:
    """The programs of whoever plays the learner.

    Args:
        structure: The structure of the environment, or None if it is not needed, and the policy.
        seen: The structure of a core, or None if it is not needed, and an observation.
        mind: Whether the policy is looked into.
    """

    def __init__(
        self,
        structure: _Structure[tuple[AnyEnv | None, Policy]],
        seen: _Structure[tuple[Core | None, Observation]],
        mind: bool,
    ):
        self._structure, self._looks_inside = structure, mind
        core, observation = seen.shapes
        self._core = None if core is None else Packing(core)
        self._observation = Packing(observation)
        memory = eqx.filter_eval_shape(self._first_memory, structure.params)
        key = jax.eval_shape(lambda: jax.random.key(0))
        self._act = trace_once(self._act)
        thought = jax.eval_shape(self._act, structure.params, key, core, observation, memory)
        self.memory: Packing[PyTree] = Packing(memory)
        self.mind: Packing[Mind] = Packing(replace(thought[1], type_vectors=None))
        self.needs_core = core is not None
        self.packed_memory: Packed = jax.eval_shape(self._init, structure.params)
        """The shapes of a packed memory."""
        self.init: Program[Packed] = Program(self._init)
        """(params) -> packed memory at the start of an episode"""
        self.think: Program[tuple[Any, ...]] = Program(self._think)
        """(params, core or (), observation, bits of the key, memory) -> those of a thought, and
        type vectors or None"""
        self.pairs: Program[Any] = Program(self._pairs)
        """(params, observation, bits of the key, memory) -> all pairwise utilities, or None"""

    def warm_up(self, params: Params, seen: Seen, compiling: Executor) -> list[Future[Any]]:
        """Begin to compile what every episode needs.

        Args:
            params: The arrays to call the programs with.
            seen: The shapes of what is seen.
            compiling: Threads to compile in.
        """
        core, observation, bits = seen
        needed = core if self.needs_core else ()
        memory = self.packed_memory
        return [
            compiling.submit(self.think.compile, params, needed, observation, bits, memory),
            compiling.submit(self.init.compile, params),
        ]

    def _first_memory(self, params: Params) -> PyTree:
        return self._structure.combine(params)[1].init_memory(self._slots)

    @property
    def _slots(self) -> int:
        return self._observation.template.present.shape[0]

    def _init(self, params: Params) -> Packed:
        return self.memory.pack(self._first_memory(params))

    def _act(
        self,
        params: Params,
        key: PRNGKeyArray,
        core: Core | None,
        observation: Observation,
        memory: PyTree,
    ) -> tuple[Int[Array, ""], Mind, PyTree]:
        env, policy = self._structure.combine(params)
        _, act_key, _ = split(key, 3)
        if self._looks_inside and isinstance(policy, AgentPolicy):
            learned = policy.agent.policy
            return look_inside(learned, act_key, observation, memory, policy.mode)
        state: Any = None if core is None else core.state
        action, memory = policy.act(act_key, env, state, observation, memory)  # pyright: ignore[reportArgumentType]
        return action, Mind(action), memory

    def _think(
        self, params: Params, core: Packed, observation: Packed, bits: KeyBits, memory: Packed
    ) -> tuple[Int[Array, ""], Packed, Packed, Float[Array, "slot type"] | None]:
        action, mind, after = self._act(
            params,
            jax.random.wrap_key_data(bits),
            None if self._core is None else self._core.unpack(core),
            self._observation.unpack(observation),
            self.memory.unpack(memory),
        )
        packed = self.mind.pack(replace(mind, type_vectors=None))
        return action, self.memory.pack(after), packed, mind.type_vectors

    def _pairs(
        self, params: Params, observation: Packed, bits: KeyBits, memory: Packed
    ) -> Float[Array, "slot slot action action"] | None:
        policy = self._structure.combine(params)[1]
        if not isinstance(policy, AgentPolicy):
            return None
        _, act_key, _ = split(jax.random.wrap_key_data(bits), 3)
        seen, before = self._observation.unpack(observation), self.memory.unpack(memory)
        return pair_tables(policy.agent.policy, act_key, seen, before)


def _has_floats(tree: PyTree) -> bool:
    """Return whether the last bits of floats become part of a state, as in FortAttack."""
    return any(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(tree))


def _leaves(tree: PyTree) -> tuple[tuple[Any, ...], Any]:
    leaves, treedef = jax.tree.flatten(tree)
    return tuple(leaves), treedef


_cached_team = functools.lru_cache(_MOST_PROGRAMS)(TeamPrograms)
_cached_mind = functools.lru_cache(_MOST_PROGRAMS)(MindPrograms)
