"""A learner that learns nothing in no time, for what is tried thousands of times with its files."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp

from dropin.agents import Agent
from dropin.core import registry
from dropin.core.metrics import Mean
from dropin.core.observation import Interface
from dropin.core.specs import LearnerSpec
from dropin.training.config import RunConfig, run_config
from dropin.training.evaluator import Evaluator
from dropin.training.loop import resume_run
from dropin.training.run_directory import RunDirectory

NAME = "counter"


@dataclass(frozen=True)
class Settings:
    """It has none."""


class Weights(eqx.Module):
    """A policy that always does the same."""

    weight: jax.Array
    interface: Interface = eqx.field(static=True)
    modes: tuple[str, ...] = eqx.field(static=True, default=("greedy",))

    def init_memory(self, slots: int) -> None:
        del slots

    def act(self, key: Any, observation: Any, memory: Any, mode: str = "greedy") -> Any:
        del key, observation, mode
        return jnp.int32(0), memory


@dataclass(frozen=True)
class Counter:
    """Adds up random numbers."""

    settings: Settings
    training: Any

    def init(self, key: Any, env: Any) -> Any:
        return {"policy": Weights(jnp.zeros(300), env.interface), "key": key}

    def update(self, env: Any, state: Any) -> Any:
        del env
        key, own = jax.random.split(state["key"])
        policy = state["policy"]
        after = Weights(policy.weight + jax.random.normal(own, (300,)), policy.interface)
        return {"policy": after, "key": key}, {"total": Mean.of(jnp.sum(after.weight))}

    def policy(self, state: Any) -> Any:
        return state["policy"]

    def policy_template(self, interface: Interface) -> Any:
        return Weights(jnp.zeros(300), interface)


SPEC = LearnerSpec(name=NAME, summary="counts", settings=Settings, make=Counter)


def made_up_rows(self: Evaluator, agent: Agent, step: int) -> Iterator[dict[str, Any]]:
    """Make up an evaluation that depends on the weights."""
    del self
    weight = getattr(agent.policy, "weight")  # noqa: B009
    for limit in (3, 5):
        row = {"step": step, "team_limit": limit, "teammates": "strangers", "mode": "greedy"}
        yield row | {"episodes": 2, "mean_return": float(weight[limit])}


@contextmanager
def counting() -> Iterator[None]:
    """Make the learner known, and evaluate it without episodes."""
    try:
        registry.learners[NAME]
    except ValueError:
        registry.learners.add(NAME, SPEC, "the chaos tests")
    with mock.patch.object(Evaluator, "rows", made_up_rows):
        yield


def config(seed: int = 0, steps: int = 120) -> RunConfig:
    """Return the settings of a run with a checkpoint every 40 steps."""
    training = {"num_envs": 2, "rollout_length": 2}
    every = {"log_every": 20, "checkpoint_every": 40}
    return run_config("lbf", NAME, steps=steps, seed=seed, training=training, **every)


def start(directory: Any, keep: Any = "agents", steps: int = 120) -> None:
    """Start a run and take it to its end."""
    RunDirectory(directory).create(config(steps=steps), keep)
    resume_run(directory, report="none")


def go_on(directory: Any) -> None:
    """Continue a run, or start it if nothing of it is there."""
    if RunDirectory(directory).exists:
        resume_run(directory, report="none")
    else:
        start(directory)
