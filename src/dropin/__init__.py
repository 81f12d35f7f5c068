"""Dropin: open ad hoc teamwork in JAX."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dropin.adhoc import AdHoc, make
    from dropin.agents import Agent, load_agent
    from dropin.errors import InputError, StoppedError
    from dropin.evaluation.evaluate import evaluate
    from dropin.teams.openness import Closed, Durations, Events, Scripted
    from dropin.training.chunk import TrainConfig
    from dropin.training.config import EvaluationConfig
    from dropin.training.loop import resume_run, train

__version__ = "0.1.0"

_HOMES = {
    "AdHoc": "dropin.adhoc",
    "Agent": "dropin.agents",
    "EvaluationConfig": "dropin.training.config",
    "StoppedError": "dropin.errors",
    "TrainConfig": "dropin.training.chunk",
    "evaluate": "dropin.evaluation.evaluate",
    "load_agent": "dropin.agents",
    "make": "dropin.adhoc",
    "resume_run": "dropin.training.loop",
    "train": "dropin.training.loop",
    "Closed": "dropin.teams.openness",
    "Durations": "dropin.teams.openness",
    "Events": "dropin.teams.openness",
    "Scripted": "dropin.teams.openness",
    "InputError": "dropin.errors",
}

__all__ = [
    "AdHoc",
    "Agent",
    "Closed",
    "Durations",
    "EvaluationConfig",
    "Events",
    "InputError",
    "Scripted",
    "StoppedError",
    "TrainConfig",
    "evaluate",
    "load_agent",
    "make",
    "resume_run",
    "train",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are used, so that `import dropin` is quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dropin' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
