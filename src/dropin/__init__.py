"""Dropin: open ad hoc teamwork in JAX."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dropin.agents import Agent, load_agent, save_agent
    from dropin.arena.episodes import Episode, load_episodes
    from dropin.core.errors import InputError, StoppedError
    from dropin.core.observation import Feature, Interface, Observation, TimeStep
    from dropin.core.registry import (
        register_agent,
        register_experiment,
        register_game,
        register_learner,
        register_openness,
        register_type,
    )
    from dropin.core.specs import AgentSpec, ExperimentSpec, GameSpec, LearnerSpec
    from dropin.env import AdHocEnv, EnvState, Team, make
    from dropin.evaluation.evaluate import Evaluation, evaluate
    from dropin.policies import Policy, make_policy
    from dropin.teams.changes import AlternatingPools, Turncoat
    from dropin.teams.dynamics import load_dynamics
    from dropin.teams.openness import Churn, Closed, Durations
    from dropin.teams.schedule import Schedule
    from dropin.teams.scripted import Scripted
    from dropin.teams.types import Type
    from dropin.training.config import EvaluationConfig, TrainConfig
    from dropin.training.loop import resume_run, resume_together, train, train_together

__version__ = "0.2.0.dev0"

_HOMES = {
    "AdHocEnv": "dropin.env",
    "Agent": "dropin.agents",
    "AgentSpec": "dropin.core.specs",
    "AlternatingPools": "dropin.teams.changes",
    "Churn": "dropin.teams.openness",
    "Closed": "dropin.teams.openness",
    "Durations": "dropin.teams.openness",
    "EnvState": "dropin.env",
    "Episode": "dropin.arena.episodes",
    "Evaluation": "dropin.evaluation.evaluate",
    "EvaluationConfig": "dropin.training.config",
    "ExperimentSpec": "dropin.core.specs",
    "Feature": "dropin.core.observation",
    "GameSpec": "dropin.core.specs",
    "InputError": "dropin.core.errors",
    "Interface": "dropin.core.observation",
    "LearnerSpec": "dropin.core.specs",
    "Observation": "dropin.core.observation",
    "Policy": "dropin.policies",
    "Schedule": "dropin.teams.schedule",
    "Scripted": "dropin.teams.scripted",
    "StoppedError": "dropin.core.errors",
    "Team": "dropin.env",
    "TimeStep": "dropin.core.observation",
    "TrainConfig": "dropin.training.config",
    "Turncoat": "dropin.teams.changes",
    "Type": "dropin.teams.types",
    "evaluate": "dropin.evaluation.evaluate",
    "load_agent": "dropin.agents",
    "load_dynamics": "dropin.teams.dynamics",
    "load_episodes": "dropin.arena.episodes",
    "make": "dropin.env",
    "make_policy": "dropin.policies",
    "register_agent": "dropin.core.registry",
    "register_experiment": "dropin.core.registry",
    "register_game": "dropin.core.registry",
    "register_learner": "dropin.core.registry",
    "register_openness": "dropin.core.registry",
    "register_type": "dropin.core.registry",
    "resume_run": "dropin.training.loop",
    "resume_together": "dropin.training.loop",
    "save_agent": "dropin.agents",
    "train": "dropin.training.loop",
    "train_together": "dropin.training.loop",
}

__all__ = [
    "AdHocEnv",
    "Agent",
    "AgentSpec",
    "AlternatingPools",
    "Churn",
    "Closed",
    "Durations",
    "EnvState",
    "Episode",
    "Evaluation",
    "EvaluationConfig",
    "ExperimentSpec",
    "Feature",
    "GameSpec",
    "InputError",
    "Interface",
    "LearnerSpec",
    "Observation",
    "Policy",
    "Schedule",
    "Scripted",
    "StoppedError",
    "Team",
    "TimeStep",
    "TrainConfig",
    "Turncoat",
    "Type",
    "evaluate",
    "load_agent",
    "load_dynamics",
    "load_episodes",
    "make",
    "make_policy",
    "register_agent",
    "register_experiment",
    "register_game",
    "register_learner",
    "register_openness",
    "register_type",
    "resume_run",
    "resume_together",
    "save_agent",
    "train",
    "train_together",
]


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that `import dropin` is quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dropin' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
