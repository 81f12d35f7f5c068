"""Trained agents: a learned policy with everything that is needed to act, in one file."""

import os
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from dropin._xla.random import split
from dropin.core import registry
from dropin.core.arrays import from_arrays, shapes_of, to_arrays
from dropin.core.config import PlainDict, PlainMapping, from_dict
from dropin.core.config import to_dict as config_to_dict
from dropin.core.errors import InputError, did_you_mean, unknown
from dropin.core.files import read_arrays, write_arrays
from dropin.core.formats import AGENT_FORMAT, upgrade_agent
from dropin.core.observation import Interface, Observation
from dropin.core.specs import LearnedPolicy, Learner, LearnerSpec
from dropin.env import AnyEnv, AnyEnvState
from dropin.learners.config import TrainConfig
from dropin.policies import Policy
from dropin.teams.types import PolicyInput, Type

__all__ = [
    "AGENT_FILE",
    "MODES",
    "Agent",
    "AgentPolicy",
    "agent_path",
    "agent_policy",
    "load_agent",
    "load_policy",
    "read_description",
    "save_agent",
]

MODES = ("greedy", "sampled")
"""How an agent can choose actions."""
AGENT_FILE = "agent.safetensors"
"""The name of the latest agent in a run's directory."""


class Agent(eqx.Module):
    """A policy that a learner has learned."""

    policy: LearnedPolicy
    """The weights, and how they act."""
    learner: str = eqx.field(static=True)
    """Name of the learner."""
    settings: Any = eqx.field(static=True)
    """Settings of the learner."""

    @property
    def interface(self) -> Interface:
        """The features and actions that it was trained for."""
        return self.policy.interface

    def init_memory(self, slots: int) -> PyTree:
        """Return the memory at the start of an episode."""
        return self.policy.init_memory(slots)

    def act(
        self,
        key: PRNGKeyArray,
        observation: Observation | PlainMapping,
        memory: PyTree = None,
        *,
        mode: str = "greedy",
    ) -> tuple[Int[Array, ""], PyTree]:
        """Choose an action.

        Args:
            key: A random key, used for nothing else.
            observation: An observation of an `AdHocEnv` or of the Gymnasium view.
            memory: What the last call returned; None at the start of an episode.
            mode: `greedy`, or `sampled` if the policy is a distribution.

        Returns:
            The action, and the memory to pass in with the next observation.
        """
        check_mode(self, mode)
        return _act(self, key, as_observation(observation), memory, mode)

    def check_fits(self, interface: Interface) -> None:
        """Raise `InputError` if the agent was trained for another game or other features."""
        if self.interface.game != interface.game:
            raise InputError(
                f"The agent was trained in {self.interface.game!r} and cannot play"
                f" {interface.game!r}."
            )
        if self.interface != interface:
            raise InputError("The agent was trained with other features or actions of the game.")

    def as_type(self, game: PyTree) -> Type:
        """Return the agent as a type of teammate, which sees a game from its own slot."""
        self.check_fits(Interface.from_game(game))
        return AgentType(name=self.learner, summary=f"a trained {self.learner}", agent=self)


@eqx.filter_jit
def _act(
    agent: Agent, key: PRNGKeyArray, observation: Observation, memory: PyTree, mode: str
) -> tuple[Int[Array, ""], PyTree]:
    if memory is None:
        memory = agent.init_memory(observation.present.shape[0])
    return agent.policy.act(key, observation, memory, mode)


class AgentPolicy(Policy):
    """A trained agent in the learner's place."""

    agent: Agent
    mode: str = eqx.field(static=True, default="greedy")

    def init_memory(self, slots: int) -> PyTree:
        """Return the agent's memory."""
        return self.agent.init_memory(slots)

    def act(
        self,
        key: PRNGKeyArray,
        env: AnyEnv,
        state: AnyEnvState,
        observation: Observation,
        memory: PyTree,
    ) -> tuple[Int[Array, ""], PyTree]:
        """Act as the agent does."""
        del env, state
        return self.agent.act(key, observation, memory, mode=self.mode)


class AgentType(Type):
    """A trained agent as a type of teammate. Each such teammate has a memory of everybody."""

    agent: Agent

    def init_memory(self, slots: int) -> PyTree:
        """Return, for each slot, its memory of all slots."""
        memory = self.agent.init_memory(slots)
        return jax.tree.map(lambda rows: jnp.broadcast_to(rows[None], (slots, *rows.shape)), memory)

    def plan(self, inputs: PolicyInput, memory: PyTree) -> tuple[Int[Array, " actor"], PyTree]:
        """Return the agent's action from the perspective of each actor's slot."""
        agents, shared = inputs.game.observe(inputs.state)
        slots, actors = inputs.arrived.shape[0], inputs.agent_seed.shape[0]
        present, arrived, sides = inputs.state.present, inputs.arrived, inputs.sides

        def one(key: PRNGKeyArray, slot: Int[Array, ""], memory: PyTree) -> tuple[Array, PyTree]:
            # The actor and the learner swap slots.
            index = jnp.arange(slots)
            order = jnp.where(index == 0, slot, jnp.where(index == slot, 0, index))
            observation = Observation(agents[order], shared, present[order], arrived[order], sides)
            return self.agent.act(key, observation, memory)

        own = jnp.arange(inputs.first, inputs.first + actors)
        return jax.vmap(one)(split(inputs.key, actors), own, memory)


def as_observation(given: Observation | PlainMapping) -> Observation:
    """Return an observation as it is, or convert the dictionary of the Gymnasium view."""
    if isinstance(given, Observation):
        return given
    sides = given.get("sides", np.zeros(len(given["present"])))
    return Observation(
        agents=jnp.asarray(given["agents"], jnp.float32),
        shared=jnp.asarray(given["shared"], jnp.float32),
        present=jnp.asarray(given["present"], bool),
        arrived=jnp.asarray(given["arrived"], bool),
        sides=tuple(int(side) for side in sides),
    )


def check_mode(agent: Agent, mode: str) -> None:
    """Raise `InputError` for a mode that the agent does not have."""
    if mode not in MODES:
        raise unknown("mode", mode, MODES)
    if mode not in agent.policy.modes:
        raise InputError(
            f"{agent.learner} has no distribution to sample from: its mode can be greedy."
        )


def describe(agent: Agent) -> PlainDict:
    """Return what a file says of an agent besides its weights."""
    return {
        "format": AGENT_FORMAT,
        "learner": agent.learner,
        "settings": config_to_dict(agent.settings),
        "interface": config_to_dict(agent.interface),
    }


def save_agent(agent: Agent, path: str | Path, **about: PyTree) -> None:
    """Write an agent to a file.

    Args:
        agent: The agent.
        path: The file; one that exists is replaced.
        **about: Plain values to keep in the file besides.
    """
    described = {"kind": "agent", **describe(agent), **about}
    write_arrays(Path(path), to_arrays(agent.policy), described)


def agent_path(name: str | Path) -> Path:
    """Return where a trained agent is, given its name or its path.

    The name of an agent that comes with a package wins over a file of the same name, with a
    warning: `./lbf/gpl-q` or a `Path` is always a file.

    Args:
        name: As in `load_agent`.

    Raises:
        InputError: If there is neither such an agent nor such a file; the message has the names.
    """
    if isinstance(name, Path):
        return name
    path = Path(name)
    try:
        known = registry.agents[name]
    except InputError:
        if os.path.exists(path):  # False also for what is too long for a name.
            return path
        names = list(registry.agents)
        raise InputError(
            f"There is no file {name}, and no trained agent of this name comes with the package:"
            f" it can be {', '.join(names)}{did_you_mean(name, names)}{registry.failed_plugins()}"
        ) from None
    if path.exists():
        warnings.warn(
            f"{name!r} is the agent that comes with the package: write ./{name} for the one in"
            " this directory.",
            stacklevel=2,
        )
    return known.directory


def load_agent(path: str | Path) -> Agent:
    """Load a trained agent.

    Args:
        path: The name of an agent that comes with the package, such as `lbf/gpl-q` (see
            `dropin zoo list`), an agent's file, a checkpoint, or a run's directory, of which the
            latest agent is loaded.

    Raises:
        InputError: If there is no agent, or its learner is not registered.

    >>> from dropin import load_agent
    >>> print(load_agent("lbf/gpl-q").learner)
    gpl-q
    """
    path = agent_path(path)
    if path.is_dir():
        path = path / AGENT_FILE
    arrays, about = read_arrays(path)
    arrays, spec, settings, interface = read_description(arrays, about, path)
    template = policy_shapes(spec, settings, interface)
    return Agent(from_arrays(template, arrays, path), spec.name, settings)


def policy_shapes(spec: LearnerSpec, settings: Any, interface: Interface) -> LearnedPolicy:
    """Return the policy of a learner with the shapes of its arrays in their place.

    Args:
        spec: The learner.
        settings: Its settings.
        interface: The features and actions.
    """
    try:
        hash(settings)
    except TypeError:  # Settings of another package may hold lists.
        return _policy_shapes(spec.make, settings, interface)
    return _known_policy_shapes(spec.make, settings, interface)


def _policy_shapes(
    make: Callable[[Any, Any], Learner], settings: Any, interface: Interface
) -> LearnedPolicy:
    learner = make(settings, TrainConfig())
    return shapes_of(lambda: learner.policy_template(interface))


# JAX keeps something of everything that it traces, so a process that loads agents without end
# would grow.
_known_policy_shapes = lru_cache(maxsize=32)(_policy_shapes)


def read_description(
    arrays: Mapping[str, np.ndarray], about: PlainMapping, path: Path
) -> tuple[PlainDict, LearnerSpec, Any, Interface]:
    """Return the arrays of an agent by their paths, its learner, its settings and its interface.

    Args:
        arrays: The arrays in the file of an agent or of a checkpoint.
        about: The description in it.
        path: The file, for messages.

    Raises:
        InputError: If it does not describe an agent, or its learner is not registered.
    """
    if not isinstance(about, Mapping) or about.get("kind") not in ("agent", "checkpoint"):
        raise InputError(f"{path} does not hold an agent.")
    found, about = upgrade_agent(arrays, about, path)
    if about["kind"] == "checkpoint":
        try:
            found = {name: found[stored] for name, stored in about["policy_arrays"].items()}
        except (KeyError, TypeError, AttributeError):
            raise InputError(f"{path} is damaged: it does not say where its agent is.") from None
    try:
        spec = registry.learners[about["learner"]]
        settings = from_dict(spec.settings, about["settings"])
        return found, spec, settings, from_dict(Interface, about["interface"])
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{path} does not describe an agent.") from None
    except InputError as error:
        raise InputError(f"{path} does not describe an agent: {error}") from None


def load_policy(path: str | Path, env: AnyEnv, mode: str = "greedy") -> AgentPolicy:
    """Load an agent and make it a policy for an environment.

    Args:
        path: As in `load_agent`.
        env: The environment, which the agent has to fit.
        mode: `greedy` or `sampled`.
    """
    return agent_policy(load_agent(path), env, mode)


def agent_policy(agent: Agent, env: AnyEnv, mode: str = "greedy") -> AgentPolicy:
    """Make an agent a policy for an environment.

    Args:
        agent: The agent.
        env: The environment, which the agent has to fit.
        mode: `greedy` or `sampled`.

    Raises:
        InputError: If the agent does not fit, or does not have the mode.
    """
    agent.check_fits(env.interface)
    check_mode(agent, mode)
    return AgentPolicy(agent, mode)
