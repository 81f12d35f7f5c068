"""The compiled programs of a simulation.

An environment and a policy are split into their arrays, which are arguments of the programs, and
the rest, which selects the programs. So all rooms with the same game, slots and kind of learner
share them, whatever the weights and the parameters of the rules.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree, Shaped

from dropin._xla.compile import compiler_options
from dropin._xla.random import split
from dropin.agents import AgentPolicy
from dropin.analysis.mind import Mind, look_inside, pair_tables
from dropin.arena.packing import Packed, Packing
from dropin.core.observation import Observation, TimeStep
from dropin.env import AnyEnv, AnyEnvState
from dropin.policies import Policy

__all__ = ["Core", "Params", "Programs", "Thought", "programs_for"]

Params = tuple[Shaped[Array, "..."], ...]
"""The arrays of an environment and a policy."""
_MOST_PROGRAMS = 32
"""Programs of this many structures are kept; those in use are kept anyway."""

_AN_ARRAY = object()
"""Stands for an array in a structure."""


class Core(eqx.Module):
    """What the rest of an episode depends on, besides the learner's memory."""

    key: PRNGKeyArray
    """For all random numbers from here on."""
    state: AnyEnvState
    action: Int[Array, ""]
    """What the learner has chosen to do."""


class Thought(eqx.Module):
    """What the learner sees and computes in a state, without the type vectors."""

    observation: Observation
    mind: Mind


Result = tuple[Packed, Packed, Packed, Float[Array, "slot type"] | None]
"""A packed core, the learner's packed memory, a packed thought, and the type vectors."""


@dataclass(frozen=True)
class _Structure:
    """All of an environment and a policy but their arrays; it can be hashed."""

    leaves: tuple[Any, ...]
    treedef: Any
    shapes: tuple[tuple[tuple[int, ...], Any], ...]
    mind: bool


def programs_for(env: AnyEnv, policy: Policy, *, mind: bool) -> "tuple[Programs, Params]":
    """Return the programs for an environment and a policy, and the arrays to call them with.

    Args:
        env: The environment.
        policy: The policy of slot 0.
        mind: Whether the policy is looked into.
    """
    leaves, treedef = jax.tree.flatten((env, policy))
    params = tuple(leaf for leaf in leaves if eqx.is_array(leaf))
    shapes = tuple((each.shape, each.dtype) for each in params)
    static = tuple(_AN_ARRAY if eqx.is_array(leaf) else leaf for leaf in leaves)
    return _programs(_Structure(static, treedef, shapes, mind)), params


class Programs:
    """The programs of one structure: `reset`, `step`, `change` and `pairs`.

    Moments come and go as packed vectors; `core`, `memory`, `thought` and `time_step` unpack them.
    """

    core: Packing[Core]
    memory: Packing[PyTree]
    thought: Packing[Thought]
    time_step: Packing[TimeStep]

    def __init__(self, structure: _Structure):
        self._structure = structure
        params = tuple(jax.ShapeDtypeStruct(*each) for each in structure.shapes)
        key = jax.eval_shape(lambda: jax.random.key(0))
        env, _ = eqx.filter_eval_shape(self._combine, params)
        forced = jax.ShapeDtypeStruct((env.slots,), np.dtype(np.int32))
        core, memory, thought, _ = eqx.filter_eval_shape(self._first, params, key)
        self.core, self.memory, self.thought = Packing(core), Packing(memory), Packing(thought)
        self.time_step = Packing(eqx.filter_eval_shape(self._take_step, params, core, forced)[2])
        self.reset = _jit(self._reset)
        """(params, key bits) -> packed memory before, and a result."""
        self.step = _jit(self._step)
        """(params, core, memory, forced) -> packed time step, and a result."""
        self.change = _jit(self._change)
        """(params, core, memory before, joined, replaced, left) -> a result."""
        self.pairs = _jit(self._pairs)
        """(params, core, memory before) -> all pairwise utilities, or None."""

    def _combine(self, params: Params) -> tuple[AnyEnv, Policy]:
        """Return the environment and the policy."""
        waiting = iter(params)
        leaves = [next(waiting) if leaf is _AN_ARRAY else leaf for leaf in self._structure.leaves]
        return jax.tree.unflatten(self._structure.treedef, leaves)

    def _think(
        self, env: AnyEnv, policy: Policy, key: PRNGKeyArray, state: AnyEnvState, memory: PyTree
    ) -> tuple[Core, PyTree, Thought, Float[Array, "slot type"] | None]:
        """Let the learner choose in a state."""
        observation = env._observe(state)
        # As in `dropin.render.episode.record_episode`.
        _, act_key, _ = split(key, 3)
        if self._structure.mind and isinstance(policy, AgentPolicy):
            learned = policy.agent.policy
            action, mind, memory = look_inside(learned, act_key, observation, memory, policy.mode)
        else:
            action, memory = policy.act(act_key, env, state, observation, memory)
            mind = Mind(action)
        thought = Thought(observation, replace(mind, type_vectors=None))
        return Core(key, state, action), memory, thought, mind.type_vectors

    def _packed(
        self, core: Core, memory: PyTree, thought: Thought, types: Float[Array, "slot type"] | None
    ) -> Result:
        return self.core.pack(core), self.memory.pack(memory), self.thought.pack(thought), types

    def _first(self, params: Params, key: PRNGKeyArray) -> Any:
        """Start an episode."""
        env, policy = self._combine(params)
        key, reset_key = split(key)
        state, _ = env.reset(reset_key)
        return self._think(env, policy, key, state, policy.init_memory(env.slots))

    def _reset(self, params: Params, bits: Shaped[Array, " word"]) -> tuple[Packed, Result]:
        env, policy = self._combine(params)
        before = self.memory.pack(policy.init_memory(env.slots))
        return before, self._packed(*self._first(params, jax.random.wrap_key_data(bits)))

    def _take_step(
        self, params: Params, core: Core, forced: Int[Array, " slot"]
    ) -> tuple[PRNGKeyArray, AnyEnvState, TimeStep]:
        """Return the key for the next state, that state, and what the step led to."""
        env, _ = self._combine(params)
        key, _, step_key = split(core.key, 3)
        state, step = env.step_all(
            step_key, core.state, core.action[None], auto_reset=False, forced=forced
        )
        return key, state, step

    def _step(
        self, params: Params, core: Packed, memory: Packed, forced: Int[Array, " slot"]
    ) -> tuple[Packed, Result]:
        key, state, step = self._take_step(params, self.core.unpack(core), forced)
        env, policy = self._combine(params)
        result = self._think(env, policy, key, state, self.memory.unpack(memory))
        return self.time_step.pack(step), self._packed(*result)

    def _change(
        self,
        params: Params,
        core: Packed,
        before: Packed,
        joined: Bool[Array, " slot"],
        replaced: Bool[Array, " slot"],
        left: Bool[Array, " slot"],
    ) -> Result:
        env, policy = self._combine(params)
        now, pool = self.core.unpack(core), env.team.pool
        # A step splits the key into three, so the fourth is used here only.
        following, change_key = split(split(now.key, 4)[3])
        key = _select_key(jnp.any(replaced), following, now.key)
        state = replace(
            now.state,
            game=env.game.despawn(now.state.game, left),
            roster=pool.spawn(env._step_rng(change_key), now.state.roster, replaced),
            arrived=(now.state.arrived | joined | replaced) & ~left,
        )
        return self._packed(*self._think(env, policy, key, state, self.memory.unpack(before)))

    def _pairs(
        self, params: Params, core: Packed, before: Packed
    ) -> Float[Array, "slot slot action action"] | None:
        env, policy = self._combine(params)
        if not isinstance(policy, AgentPolicy):
            return None
        now = self.core.unpack(core)
        _, act_key, _ = split(now.key, 3)
        memory = self.memory.unpack(before)
        return pair_tables(policy.agent.policy, act_key, env._observe(now.state), memory)


def _select_key(which: Bool[Array, ""], yes: PRNGKeyArray, no: PRNGKeyArray) -> PRNGKeyArray:
    return jax.random.wrap_key_data(
        jnp.where(which, jax.random.key_data(yes), jax.random.key_data(no))
    )


def _jit(function: Callable[..., Any]) -> Callable[..., Any]:
    # Not by Equinox, which takes as long for a call as the program itself.
    return jax.jit(function, compiler_options=compiler_options(quick=False))


_programs = functools.lru_cache(_MOST_PROGRAMS)(Programs)
