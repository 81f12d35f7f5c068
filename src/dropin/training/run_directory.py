"""A run's directory: never overwritten, never half-written.

run.json                 settings, and the versions of what it ran on
metrics.csv              training metrics, a row every few thousand steps
evaluation.csv           returns at every checkpoint
checkpoints/             everything needed to resume, one file each; the latest are kept
agents/                  the agent of every checkpoint, if these are kept
agent.safetensors        the agent of the latest checkpoint
"""

import os
import re
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from dropin.agents import AGENT_FILE, Agent, describe, save_agent
from dropin.core import registry
from dropin.core.arrays import array_paths, from_arrays, to_arrays
from dropin.core.config import PlainDict, PlainMapping, differences, misfit
from dropin.core.errors import InputError, shown
from dropin.core.files import (
    names_in,
    read_arrays,
    read_json,
    remove_unfinished,
    write_arrays,
    write_json,
)
from dropin.core.formats import RUN_FORMAT, check_format, upgrade_run_config
from dropin.core.locks import LOCK_FILE, Lock, hold
from dropin.env import AnyEnv
from dropin.training.chunk import RunState
from dropin.training.config import RunConfig
from dropin.training.provenance import machine, versions
from dropin.training.tables import Table

__all__ = [
    "DEFAULT_KEEP",
    "Keep",
    "KeepRule",
    "RunDirectory",
    "check_keep",
    "run_env",
    "runs_in",
]

KeepRule = int | Literal["all", "agents"]
"""How many checkpoints to keep. With "agents" it is three, and of all others the agent."""
Keep = KeepRule | None
"""None: as the run was started, and three for a new one."""
DEFAULT_KEEP = 3


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.metrics = Table(self.path / "metrics.csv")
        self.evaluation = Table(self.path / "evaluation.csv")
        self.checkpoints = self.path / "checkpoints"
        self.agents = self.path / "agents"
        self.agent = self.path / AGENT_FILE
        self._lock: Lock | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a run."""
        return (self.path / "run.json").exists()

    @property
    def is_free(self) -> bool:
        """Whether nothing is there, or an empty directory; names that start with a dot are none."""
        return (self.path.is_dir() and not self._names()) or not os.path.lexists(self.path)

    def _names(self) -> list[str]:
        return [name for name in names_in(self.path) if not name.startswith(".")]

    def check_free(self) -> None:
        """Raise `InputError` if the directory holds anything."""
        if not self.is_free:
            resume = f"dropin train --resume {shlex.quote(str(self.path))}"
            hint = f", or resume the run with: {resume}" if self.exists else ""
            raise InputError(f"{self.path} exists already: give another directory{hint}.")

    def create(self, config: RunConfig, keep: Keep = None) -> None:
        """Write the settings of a new run.

        Args:
            config: The settings.
            keep: How many checkpoints to keep.

        Raises:
            InputError: If the directory holds anything.
        """
        self.check_free()
        check_keep(keep)
        write_json(self.path / "run.json", self._about(config, keep))

    def _about(self, config: RunConfig, keep: Keep) -> PlainDict:
        """Return the content of run.json for a new run."""
        return {
            "format": RUN_FORMAT,
            "config": config.to_dict(),
            "versions": versions(),
            "machine": machine(),
            "keep": keep or DEFAULT_KEEP,
        }

    def keep(self, given: Keep) -> KeepRule:
        """Return how many checkpoints to keep from now on; as before if nothing is given."""
        check_keep(given)
        stored = self._read()
        if given is not None and given != stored.get("keep"):
            write_json(self.path / "run.json", stored | {"keep": given})
        check_keep(stored.get("keep"))
        return given or stored.get("keep") or DEFAULT_KEEP

    def _read(self) -> PlainDict:
        """Return the content of run.json."""
        if not self.exists:
            raise InputError(f"{self.path} is not the directory of a run: it has no run.json.")
        stored = read_json(self.path / "run.json")
        if not isinstance(stored, dict) or not isinstance(stored.get("versions", {}), dict):
            raise InputError(f"{self.path / 'run.json'} does not describe a run.")
        return stored

    def config(self) -> RunConfig:
        """Return the settings of the run, in the present format.

        Raises:
            InputError: If there is no run, or its game or learner is not registered.
        """
        stored, path = self._read(), self.path / "run.json"
        try:
            values = upgrade_run_config(stored["config"], stored.get("format"), path)
            _check_registered(values)
            return RunConfig.from_dict(values)
        except (KeyError, TypeError, AttributeError):
            raise InputError(f"{path} does not describe a run.") from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def ran_on(self) -> PlainDict:
        """Return the versions and the machine that the run was started with, as far as known."""
        stored = self._read()
        return {name: stored.get(name) for name in ("versions", "machine")}

    def is_just_created(self, config: RunConfig, keep: Keep = None) -> bool:
        """Return whether there is nothing but the settings of a new run, and they are these.

        Args:
            config: The settings.
            keep: How many checkpoints to keep.
        """
        stored = self._names() == ["run.json"] and self._read()
        return bool(stored) and stored == self._about(config, keep)

    def check_resumable(self) -> None:
        """Raise `InputError` if the run is too old to be resumed, by its format or its game."""
        path = self.path / "run.json"
        if check_format(self._read().get("format"), RUN_FORMAT, path) < RUN_FORMAT:
            raise InputError(
                f"{self.path} was started with version 0.1: its agents and evaluations can be used,"
                " but training cannot go on. Start a new run, or resume it with version 0.1."
            )
        if change := self.config().game_change:
            raise InputError(f"{self.path} cannot be resumed: {change}")

    def check_same(self, config: RunConfig) -> None:
        """Raise `InputError` if the run was started with other settings."""
        different = differences(self.config().to_dict(), config.to_dict())
        if different:
            raise InputError(
                f"{self.path} was started with other settings ({'; '.join(different)}): resume it"
                " without them, or start a run in another directory."
            )

    def check_versions(self) -> None:
        """Warn if the run was started with other versions."""
        different = differences(self._read().get("versions", {}), versions())
        if different:
            warnings.warn(
                f"{self.path} was started with other versions or flags ({'; '.join(different)}):"
                " the result may differ in the last bits.",
                stacklevel=2,
            )

    @contextmanager
    def locked(self, wait: float = 0.0) -> Iterator[None]:
        """Keep other processes from training in this directory.

        Args:
            wait: Seconds to wait for another process to end.

        Raises:
            InputError: If another process is still training there.
        """
        refusal = f"Another process is training in {self.path}"
        with hold(self.path / LOCK_FILE, refusal, wait) as lock:
            self._lock = lock
            try:
                yield
            finally:
                self._lock = None

    def check_lock(self) -> None:
        """Raise `OSError` if this process had the directory for itself and has it no more."""
        if self._lock is not None:
            self._lock.check()

    def remove_unfinished(self) -> None:
        """Remove what killed processes have left of files that they were writing."""
        for each in (self.path, self.checkpoints, self.agents):
            remove_unfinished(each)

    def steps(self) -> list[int]:
        """Return the steps of the checkpoints, in order."""
        return sorted(_steps(self.checkpoints))

    def checkpoint(self, step: int) -> Path:
        """Return the file of the checkpoint at a step."""
        return self.checkpoints / _name(step)

    def steps_with_agent(self) -> list[int]:
        """Return the steps for which there is an agent, in order."""
        return sorted({*_steps(self.agents), *_steps(self.checkpoints)})

    def agent_at(self, step: int) -> Path:
        """Return a file with the agent of a step: its own, or the checkpoint."""
        own = self.agents / _name(step)
        found = own if own.exists() else self.checkpoint(step)
        if not found.exists():
            raise InputError(f"{self.path} has no checkpoint of step {step:,}.")
        return found

    def save(
        self, state: RunState, agent: Agent, step: int, keep: KeepRule, *, evaluated: bool = True
    ) -> None:
        """Write a checkpoint and its agent.

        Agents that are kept for good are those that were evaluated. They are written first: once
        there is a checkpoint, nobody would notice that one is missing.

        Args:
            state: The state of the run.
            agent: The agent that has been learned so far.
            step: The environment step.
            keep: How many checkpoints are kept; `prune` removes the others.
            evaluated: Whether the agent was evaluated at this step.
        """
        self.check_lock()
        self.metrics.sync()
        self.evaluation.sync()
        if keep == "agents" and evaluated:
            save_agent(agent, self.agents / _name(step), step=step)
        arrays, policy_arrays = to_arrays(state), {}
        own = {id(leaf): path for path, leaf in array_paths(state)}
        for path, leaf in array_paths(agent.policy):
            if id(leaf) not in own:  # As a rule, the weights of the policy are part of the state.
                arrays[f"policy.{path}"] = to_arrays(leaf)[""]
            policy_arrays[path] = own.get(id(leaf), f"policy.{path}")
        about = {"kind": "checkpoint", "step": step, **describe(agent)}
        write_arrays(self.checkpoint(step), arrays, {**about, "policy_arrays": policy_arrays})
        save_agent(agent, self.agent, step=step)

    def prune(self, keep: KeepRule, step: int) -> None:
        """Remove the oldest checkpoints.

        Args:
            keep: How many checkpoints to keep.
            step: The step of the latest good one. Damaged ones after it do not count.
        """
        if keep != "all":
            good = [each for each in self.steps() if each <= step]
            for old in good[: -(DEFAULT_KEEP if keep == "agents" else keep)]:
                self.checkpoint(old).unlink(missing_ok=True)

    def read(self, step: int, template: RunState) -> RunState:
        """Read the checkpoint of a step.

        Args:
            step: The environment step.
            template: A state of the same shapes.

        Raises:
            InputError: If it is damaged or does not fit.
        """
        path = self.checkpoint(step)
        arrays, about = read_arrays(path)
        if about.get("kind") != "checkpoint" or about.get("step") != step:
            raise InputError(f"{path} is not the checkpoint of step {step}.")
        own = {name: each for name, each in arrays.items() if name[:7] != "policy."}
        return from_arrays(template, own, path)

    def clear_tables(self) -> None:
        """Remove the rows of a run that ended before its first checkpoint.

        Raises:
            InputError: If there is more than that: the checkpoints have been lost.
        """
        last = max(self.metrics.last_step, self.evaluation.last_step)
        if last > 0:
            raise InputError(
                f"{self.path} has results up to step {last:,} but no checkpoint: put"
                f" {self.checkpoints} back, or start the run anew in another directory."
            )
        self.metrics.clear()
        self.evaluation.clear()

    def truncate_tables(self, step: int) -> None:
        """Remove all rows of the tables after a step."""
        self.metrics.truncate(step)
        self.evaluation.truncate(step)


def _check_registered(values: PlainMapping) -> None:
    """Raise `InputError` if the learner or the game of a run is not registered.

    Args:
        values: The settings of the run as plain values.
    """
    missing = []
    for kind, known in (("learner", registry.learners), ("game", registry.games)):
        try:
            if kind == "learner" or not values.get("custom_env"):
                known[values[kind]]
        except InputError:
            missing.append(f"{kind} {values[kind]!r}")
    if missing:
        raise InputError(
            f"the run needs the {' and the '.join(missing)}, not registered here: install the"
            f" plug-in that adds it.{registry.failed_plugins()}"
        )


def _name(step: int) -> str:
    return f"step-{step:012d}.safetensors"


def _steps(directory: Path) -> list[int]:
    found = map(re.compile(r"step-([0-9]+)\.safetensors").fullmatch, names_in(directory))
    return [int(each[1]) for each in found if each]


def check_keep(keep: Keep) -> None:
    """Raise `InputError` if it is no number of checkpoints."""
    if isinstance(keep, int) and keep < 1:
        raise InputError(f"Keep {keep} is too small: at least 1 checkpoint is kept.")
    if isinstance(keep, bool) or misfit(keep, Keep):
        raise InputError(f"Keep {shown(keep)} is not a number of checkpoints, all or agents.")


def run_env(directory: Path, game: str | None = None, **other: Any) -> tuple[AnyEnv, RunConfig]:
    """Make the environment that a run was trained in.

    Args:
        directory: The run's directory.
        game: The game that the user takes it for, to be checked.
        **other: Arguments of `dropin.make` that should differ from the run's.

    Returns:
        The environment, and the settings of the run.
    """
    config = RunDirectory(directory).config()
    if config.custom_env:
        raise InputError(f"{directory} was trained in a custom environment: use Python.")
    if game is not None and registry.games[game].name != config.game:
        raise InputError(f"{directory} was trained in {config.game!r} and cannot play {game!r}.")
    if config.game_change:
        warnings.warn(f"{directory}: {config.game_change}", stacklevel=2)
    return config.make_env(**other), config


def runs_in(directory: Path) -> list[Path]:
    """Return the runs in a directory: itself, or those one level below it."""
    files = list(directory.glob("run.json")) or directory.glob("*/run.json")
    return sorted((each.parent for each in files), key=lambda each: (len(each.name), each.name))
