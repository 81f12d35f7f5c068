"""Trained agents: a learner's networks with all that is needed to act, in one file."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.adhoc import AdHoc, EnvState, Interface, Observation
from dropin.config import as_dict, from_dict
from dropin.errors import InputError, unknown
from dropin.files import read_arrays, write_arrays
from dropin.learners import find
from dropin.learners.base import Outlook
from dropin.players import Player
from dropin.teams.types import Scene, Type
from dropin.weights import from_arrays, to_arrays

POLICIES = ("greedy", "sampled")
AGENT_FILE = "agent.safetensors"


class Agent(eqx.Module):
    """A learner that has learned what it will."""

    learner: Any
    temperature: Float[Array, ""]
    """Of the Boltzmann policy, where there is one."""
    name: str = eqx.field(static=True)
    """Of the learner, as in the catalogue."""

    @property
    def meets(self) -> Interface:
        """What it was trained for."""
        return self.learner.meets

    def start(self, slots: int) -> Any:
        """The memory at the start of an episode."""
        return self.learner.start(slots)

    def act(
        self,
        key: PRNGKeyArray,
        observation: Observation | Mapping[str, Any],
        memory: Any = None,
        *,
        policy: str = "greedy",
    ) -> tuple[Int[Array, ""], Any]:
        """An action, and the memory to give back with the next observation.

        The observation is that of `AdHoc` or of the Gymnasium view. No memory is an empty one.
        """
        check_policy(self, policy)
        return _act(self, key, as_observation(observation), memory, policy)

    def check(self, meets: Interface) -> None:
        """Raise `InputError` if the agent was trained for something else."""
        if self.meets.game != meets.game:
            raise InputError(
                f"The agent was trained in {self.meets.game!r} and cannot play {meets.game!r}."
            )
        if self.meets != meets:
            raise InputError("The agent was trained with other features or actions of the game.")

    def as_type(self, game: Any) -> Type:
        """The agent as a teammate in a game; it sees the scene from its own slot."""
        self.check(Interface.of(game))
        about = f"a trained {self.name}"
        return AgentType(name=self.name, about=about, agent=self, game=game)


@eqx.filter_jit
def _act(
    agent: Agent, key: PRNGKeyArray, seen: Observation, memory: Any, policy: str
) -> tuple[Int[Array, ""], Any]:
    memory = agent.start(seen.present.shape[0]) if memory is None else memory
    action, _, memory = consider(agent, key, seen, memory, policy)
    return action, memory


def consider(
    agent: Agent, key: PRNGKeyArray, seen: Observation, memory: Any, policy: str
) -> tuple[Int[Array, ""], Outlook, Any]:
    """An action, what the agent made of the observation, and the memory afterwards."""
    thinking, acting = jax.random.split(key)
    memory = agent.learner.greet(memory, seen, thinking)
    outlook, memory = agent.learner(memory, seen, thinking)
    if policy == "greedy":
        return jnp.argmax(outlook.values).astype(jnp.int32), outlook, memory
    drawn = jax.random.categorical(acting, outlook.values / agent.temperature)
    return drawn.astype(jnp.int32), outlook, memory


class AgentPlayer(Player):
    """A trained agent in the learner's place."""

    agent: Agent
    policy: str = eqx.field(static=True, default="greedy")

    def start(self, slots: int) -> Any:
        """The agent's memory."""
        return self.agent.start(slots)

    def act(
        self, key: PRNGKeyArray, state: EnvState, seen: Observation, memory: Any
    ) -> tuple[Int[Array, ""], Any]:
        """What the agent does on what it sees."""
        del state
        return self.agent.act(key, seen, memory, policy=self.policy)


class AgentType(Type):
    """A trained agent as a type of teammate. Each such teammate has a memory of everybody."""

    agent: Agent
    game: Any

    def start(self, slots: int) -> Any:
        """For each slot, its memory of all slots."""
        memory = self.agent.start(slots)
        return jax.tree.map(lambda rows: jnp.broadcast_to(rows[None], (slots, *rows.shape)), memory)

    def plan(self, scene: Scene, memory: Any) -> tuple[Int[Array, " actor"], Any]:
        """The agent's action, seen from each actor's slot."""
        agents, shared = self.game.observe(scene.state)
        slots, actors = scene.arrived.shape[0], scene.character.shape[0]
        sides = scene.sides
        mine = jnp.arange(scene.first, scene.first + actors)

        def one(key: PRNGKeyArray, slot: Int[Array, ""], memory: Any) -> tuple[Array, Any]:
            # The actor and the learner swap places.
            place = jnp.arange(slots)
            order = jnp.where(place == 0, slot, jnp.where(place == slot, 0, place))
            seen = Observation(
                agents[order], shared, scene.state.present[order], scene.arrived[order], sides
            )
            return self.agent.act(key, seen, memory)

        return jax.vmap(one)(jax.random.split(scene.key, actors), mine, memory)


def as_observation(given: Observation | Mapping[str, Any]) -> Observation:
    """An observation, given as it is or as the dictionary of the Gymnasium view."""
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


def check_policy(agent: Agent, policy: str) -> None:
    """Raise `InputError` for a policy that the agent does not have."""
    if policy not in POLICIES:
        raise unknown("policy", policy, POLICIES)
    if policy == "sampled" and not agent.learner.config.soft:
        raise InputError(f"{agent.name} has no policy to sample from: its policy can be greedy.")


def describe(agent: Agent) -> dict[str, Any]:
    """What the file says of the agent, besides its weights."""
    return {
        "learner": agent.name,
        "config": as_dict(agent.learner.config),
        "meets": as_dict(agent.meets),
    }


def save_agent(agent: Agent, path: str | Path, **about: Any) -> None:
    """Write an agent to a file; `about` is kept in it."""
    write_arrays(Path(path), to_arrays(agent), {"kind": "agent", **describe(agent), **about})


def load_agent(path: str | Path) -> Agent:
    """The agent in a file or a checkpoint, or the latest one of a run's directory."""
    path = Path(path)
    if path.is_dir():
        path = path / AGENT_FILE
    arrays, about = read_arrays(path)
    if about.get("kind") == "checkpoint":
        arrays = {name: each for name, each in arrays.items() if name.startswith("learner.")}
        arrays["temperature"] = np.array(about["temperature"], np.float32)
    elif about.get("kind") != "agent":
        raise InputError(f"{path} does not hold an agent.")
    return from_arrays(blank_agent(about), arrays, path)


def blank_agent(about: Mapping[str, Any]) -> Agent:
    """An agent of shapes only, from its description."""
    entry = find(about["learner"])
    config = from_dict(entry.kind, about["config"])
    meets = from_dict(Interface, about["meets"])
    learner = import_module(entry.module).LEARNER

    def build() -> Agent:
        built = learner(meets, config, key=jax.random.key(0))
        return Agent(built, jnp.float32(1.0), entry.name)

    return eqx.filter_eval_shape(build)


def load_player(path: str | Path, env: AdHoc, policy: str = "greedy") -> AgentPlayer:
    """The agent in a file, ready to play in an environment."""
    return agent_player(load_agent(path), env, policy)


def agent_player(agent: Agent, env: AdHoc, policy: str = "greedy") -> AgentPlayer:
    """An agent, ready to play in an environment that it fits."""
    agent.check(env.interface)
    check_policy(agent, policy)
    return AgentPlayer(agent, policy)
