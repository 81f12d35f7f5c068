"""The training loop: compiled chunks of about a second, and what Python does between them."""

import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from dropin.agents import Agent, save_agent
from dropin.core import registry
from dropin.core.arrays import array_paths, zeros_like
from dropin.core.errors import InputError, StoppedError
from dropin.core.metrics import Metrics, to_row
from dropin.env import AnyEnv
from dropin.training.chunk import (
    NonFinite,
    RunState,
    blank_states,
    get_state,
    set_state,
    train_chunk,
)
from dropin.training.config import RunConfig
from dropin.training.evaluator import Evaluator
from dropin.training.reporters import OneOfSeveral, Reporter
from dropin.training.run_directory import DEFAULT_KEEP, Keep, KeepRule, RunDirectory, check_keep

__all__ = ["Run", "Runs"]

_FIRST_COLUMNS = ("episodes", "return", "unshaped_return", "team_size", "value_loss")
Tree = TypeVar("Tree", bound=PyTree)


@dataclass
class Run:
    """One run: where its files are, and where its progress is reported."""

    files: RunDirectory
    seed: int
    keep: KeepRule = DEFAULT_KEEP
    reporter: Reporter = field(default_factory=Reporter)


class Runs:
    """Runs that differ in nothing but their seeds, in memory, together with their files.

    They train in step; as a rule there is one. If there are several, all arrays of the state have a
    leading axis [seed], and a chunk is that of one run under `vmap`. Evaluations, checkpoints and
    rows of metrics are those of one run, for one run after another.

    Args:
        files: The directory of each run.
        configs: The settings of each run.
        env: The environment, if it was given as an object.
        keep: How many checkpoints to keep; as before if it is None.
    """

    state: RunState

    def __init__(
        self,
        files: Sequence[RunDirectory],
        configs: Sequence[RunConfig],
        env: AnyEnv | None = None,
        keep: Keep = None,
    ):
        check_keep(keep)
        self._keep: Keep = keep
        self._runs = [Run(each, own.seed) for each, own in zip(files, configs, strict=True)]
        self.config = config = configs[0]
        self.learner = registry.learners[config.learner].make(config.settings, config.training)
        self.env = config.make_env() if env is None else env
        self.evaluator = Evaluator(config, env)
        self.num_updates = config.num_updates(config.steps)
        self.log_every = config.num_updates(config.log_every)
        self.checkpoint_every = config.num_updates(config.checkpoint_every)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    @property
    def together(self) -> bool:
        """Whether there are several runs."""
        return len(self._runs) > 1

    @property
    def path(self) -> Path:
        """The directory of the run, or the one that holds those of all runs."""
        first = self._runs[0].files.path
        return first.parent if self.together else first

    @property
    def command(self) -> str:
        """The command that continues the runs."""
        return f"{self._command_alone}{' --together' * self.together}"

    @property
    def _command_alone(self) -> str:
        """The command that continues the runs, each in a process of its own."""
        return f"dropin train --resume {shlex.quote(str(self.path))}"

    @property
    def updates(self) -> int:
        """Number of updates so far."""
        return int(self._split(self.state.updates)[0])

    @property
    def step(self) -> int:
        """Environment steps of each run so far, all its environments together."""
        return self.updates * self.config.steps_per_update

    def _init(self, run: Run) -> RunState:
        """Return the first state of a run."""
        return RunState(self.learner.init(jax.random.key(run.seed), self.env), jnp.int32(0))

    def _shapes(self) -> RunState:
        """Return the shapes of the state of one run."""
        return eqx.filter_eval_shape(lambda: self._init(self._runs[0]))

    def _blank(self, shapes: RunState) -> RunState:
        """Return zeros instead of the state."""
        return blank_states(shapes, len(self._runs)) if self.together else zeros_like(shapes)

    def _gather(self, shapes: RunState, state_of: Callable[[Run], RunState]) -> RunState:
        """Return the state of all runs, given a function that makes the state of one."""
        if not self.together:
            return state_of(self._runs[0])
        states = self._blank(shapes)
        for index, run in enumerate(self._runs):
            states = set_state((jnp.int32(index), state_of(run)), states)
        return states

    def _states(self) -> Iterator[RunState]:
        """Yield the state of one run after another."""
        for index in range(len(self._runs)):
            yield get_state(self.state, jnp.int32(index)) if self.together else self.state

    def _split(self, tree: Tree) -> list[Tree]:
        """Return the part of each run of what a chunk has returned."""
        if not self.together:
            return [tree]
        leaves, structure = jax.tree.flatten(jax.device_get(tree))
        return [jax.tree.unflatten(structure, own) for own in zip(*leaves, strict=True)]

    def open(self, reporter: Reporter) -> None:
        """Begin the runs, or restore what their files hold.

        Args:
            reporter: Where their progress is reported.
        """
        for run in self._runs:
            run.files.remove_unfinished()
            run.keep = run.files.keep(self._keep)
            run.reporter = reporter
            if self.together:
                run.reporter = OneOfSeveral(reporter, run.files.path.name)
        steps = self.common_steps()
        if not steps:
            reporter.say("Compiling, which takes a while if it was not done before ...")
            self.begin()
            return
        if any(run.files.steps()[-1] > steps[-1] for run in self._runs):
            reporter.say(f"Continuing at step {steps[-1]:,}, which all runs have reached.")
        self.restore(steps)

    def begin(self) -> None:
        """Make the first state, evaluate it and save it."""
        for run in self._runs:
            run.files.clear_tables()
        shapes = self._shapes()
        with ThreadPoolExecutor(1) as pool:
            # Another thread compiles the training program meanwhile: a chunk without updates.
            fixed = (self.env, self.learner, jnp.int32(0))
            compiling = pool.submit(train_chunk, fixed, self._blank(shapes))
            self.state = self._gather(shapes, self._init)
            self.checkpoint(evaluate=True)
            compiling.result()

    def common_steps(self) -> list[int]:
        """Return the steps of which every run has a checkpoint; none if the runs have to begin.

        Raises:
            InputError: If the runs are not at the same step.
        """
        steps = [run.files.steps() for run in self._runs]
        common = sorted(set(steps[0]).intersection(*steps[1:]))
        # A process that was killed may have written its last checkpoint for some of the runs only.
        if common:
            in_step = all(sum(step > common[-1] for step in own) <= 1 for own in steps)
        else:
            in_step = all(own in ([], [0]) for own in steps)
        if not in_step:
            where = (
                f"{run.files.path.name} at {own[-1] if own else 0:,}"
                for run, own in zip(self._runs, steps, strict=True)
            )
            raise InputError(
                f"The runs in {self.path} are not at the same step ({', '.join(where)}): without"
                f" --together, {self._command_alone} continues them one by one."
            )
        return common

    def restore(self, steps: Sequence[int]) -> None:
        """Read the latest good checkpoint of every run, and cut the tables back to it.

        Args:
            steps: The steps to choose from, in order.

        Raises:
            InputError: If there is no checkpoint that can be used.
        """
        shapes = self._shapes()
        for step in reversed(steps):
            try:
                self.state = self._gather(shapes, lambda run: run.files.read(step, shapes))  # noqa: B023
            except InputError as error:
                warnings.warn(f"{error} The checkpoint before it is used.", stacklevel=2)
                continue
            for run, state in zip(self._runs, self._states(), strict=True):
                run.files.truncate_tables(step)
                save_agent(self.agent(state), run.files.agent, step=step)
            for run in self._runs:
                # A process that was killed before it did so may have been at the last step.
                run.files.prune(run.keep, step)
            return
        raise InputError(f"{self.path} has no checkpoint that can be used.")

    def agent(self, state: RunState) -> Agent:
        """Return the agent that has been learned so far.

        Args:
            state: The state of one run.
        """
        policy = self.learner.policy(state.train_state)
        return Agent(policy, self.config.learner, self.config.settings)

    def checkpoint(self, *, evaluate: bool) -> None:
        """Write a checkpoint of every run.

        Args:
            evaluate: Whether to evaluate the agents as well.
        """
        for run, state in zip(self._runs, self._states(), strict=True):
            agent = self.agent(state)
            if evaluate:
                run.files.check_lock()
                for row in self.evaluator.rows(agent, self.step):
                    run.files.evaluation.append(row)
                    run.reporter.evaluation(row)
            run.files.save(state, agent, self.step, run.keep, evaluated=evaluate)
        # Not before all are written: a process that is killed leaves a step that all runs have.
        for run in self._runs:
            run.files.prune(run.keep, self.step)

    def _check_finite(self, nonfinite: NonFinite, metrics: Metrics, updates: int) -> None:
        """Raise `StoppedError` if something was not finite."""
        for run, found in zip(self._runs, self._split(nonfinite), strict=True):
            looked_at = [
                (f"The state of the agent in slot {int(found.slot)}", int(found.state)),
                ("A loss", int(found.metric)),
            ]
            if int(found.leaf) >= 0:
                # When exactly is not known: the first look at it is after the chunk.
                tree = (self.state.train_state, dict(metrics))
                looked_at.append((_describe_leaf(tree, int(found.leaf)), updates - 1))
            for what, number in looked_at:
                if number < updates:
                    last = run.files.steps()[-1]
                    of_seed, who, hint = "", "the run", ""
                    if self.together:
                        of_seed, who = f" of seed {run.seed}", "all runs"
                        hint = f" The others can go on without --together: {self._command_alone}"
                    raise StoppedError(
                        f"{what}{of_seed} was not a finite number at step"
                        f" {number * self.config.steps_per_update:,}; {who} stopped there. The"
                        f" checkpoint of step {last:,} is the last good one:"
                        f" {run.files.checkpoint(last)}.{hint}"
                    )

    def train(self, interrupted: Callable[[], bool]) -> bool:
        """Train to the end, or until interrupted; then the state is saved.

        Args:
            interrupted: Returns whether to stop.

        Returns:
            Whether the runs are done.
        """
        config = self.config
        for run in self._runs:
            run.reporter.begin(
                f"{config.learner} in {config.game}, seed {run.seed}",
                self.step,
                self.num_updates * config.steps_per_update,
            )
        while self.updates < self.num_updates:
            before = self.updates
            ends = [(before // each + 1) * each for each in (self.log_every, self.checkpoint_every)]
            number = min(*ends, self.num_updates) - before
            fixed = (self.env, self.learner, jnp.int32(number))
            self.state, metrics, nonfinite = train_chunk(fixed, self.state)
            self._check_finite(nonfinite, metrics, before + number)
            self._log(metrics)
            if self.updates % self.checkpoint_every == 0 or self.updates == self.num_updates:
                self.checkpoint(evaluate=True)
            elif interrupted():
                self.checkpoint(evaluate=False)
            if interrupted() and self.updates < self.num_updates:
                return False
        return True

    def _log(self, metrics: Metrics) -> None:
        """Write a row of metrics of every run."""
        for run, own in zip(self._runs, self._split(metrics), strict=True):
            values = to_row(own)
            if not self.env.game.has_shaping:
                values.pop("unshaped_return", None)
            # Compiled code returns dictionaries in the order of their names.
            first = [name for name in _FIRST_COLUMNS if name in values]
            row = {"step": self.step, **{name: values[name] for name in first}, **values}
            run.files.check_lock()
            run.files.metrics.append(row)
            run.reporter.metrics(row)


def _describe_leaf(tree: PyTree, index: int) -> str:
    """Return the start of a sentence about an array of a train state and its metrics."""
    path, _ = array_paths(tree)[index]
    part, name = path[:3], path[3:].lstrip(".")
    return f"The array {name!r} of the train state" if part == "[0]" else f"The metric {name}"
