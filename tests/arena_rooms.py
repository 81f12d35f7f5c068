"""Small environments and agents for tests of the arena."""

from functools import cache
from typing import Any

import jax
import tiny

from dropin.agents import Agent, agent_policy
from dropin.arena.config import RoomConfig
from dropin.arena.simulation import Simulation
from dropin.core import registry
from dropin.env import AnyEnv, make
from dropin.policies import make_policy
from dropin.training.config import TrainConfig

ROOMS: dict[str, dict[str, Any]] = {
    "lbf": {"team_limit": 4, "types": ("H1", "H6"), "openness": "rules"},
    "wolfpack": {"team_limit": 3, "types": ("H1", "H4")},
    "fortattack": {"team_limit": 3, "types": ("G2", "G3", "A1", "A2")},
}
"""Rooms whose types compile quickly."""


def room(game: str = "lbf", **changes: Any) -> RoomConfig:
    return RoomConfig(game=game, **(ROOMS[game] | changes))


@cache
def untrained(env_of: RoomConfig, learner: str = "gpl-q", seed: int = 0) -> Agent:
    """Return an agent with random weights for a room."""
    env, spec = env_of.make_env(), registry.learners[learner]
    sizes = tiny.SETTINGS if learner.startswith("gpl") else tiny.SIZES
    settings = spec.default_settings(env.game.name, **sizes)
    made = spec.make(settings, TrainConfig())
    return Agent(made.policy(made.init(jax.random.key(seed), env)), spec.name, settings)


@cache
def simulation(config: RoomConfig, learner: str = "gpl-q", mode: str = "greedy") -> Simulation:
    """Return the simulation of a room, with an untrained learner or the policy of its name."""
    env = config.make_env()
    return Simulation(env, policy_of(env, config, learner, mode))


def policy_of(env: AnyEnv, config: RoomConfig, learner: str, mode: str = "greedy"):
    if learner in registry.learners:
        return agent_policy(untrained(config, learner), env, mode)
    return make_policy(env, learner)


def closed(**settings: Any) -> AnyEnv:
    return make("lbf", team_limit=3, types=["H1"], openness="closed", **settings)
