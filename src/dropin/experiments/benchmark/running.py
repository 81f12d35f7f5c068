"""Running the benchmark: train what is missing, measure every agent, keep the records."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock

from dropin.agents import AGENT_FILE, Agent, agent_path, load_agent
from dropin.core import registry
from dropin.core.errors import InputError, StoppedError, unknown
from dropin.core.files import file_checksum
from dropin.evaluation.evaluate import LEGACY_ENVS, LEGACY_EPISODES, names_agent
from dropin.experiments.benchmark.episodes import measure
from dropin.experiments.benchmark.records import CHECKPOINTS, Checkpoint, Record
from dropin.experiments.benchmark.results import results_name
from dropin.experiments.benchmark.runs import (
    RunPlan,
    plan_runs,
    reference_trainings,
    task_trainings,
)
from dropin.experiments.benchmark.storage import Source, load_record, record_path, save_record
from dropin.experiments.benchmark.tasks import Task
from dropin.experiments.planning import Progress, find_runs
from dropin.experiments.reproduce import check_place, train_missing
from dropin.experiments.type_diversity import type_names
from dropin.policies import RANDOM
from dropin.training.config import RunConfig
from dropin.training.parallel import cores
from dropin.training.run_directory import RunDirectory

__all__ = ["BEST_RESPONSE", "Benchmark", "Options", "Trial"]

BEST_RESPONSE = "best-response"
"""The name in records of learners that were trained in the situation of the test itself."""
SMALL_EPISODES = LEGACY_ENVS * LEGACY_EPISODES
"""Episodes of a test if the runs are scaled down: as many as in the authors' evaluation."""


@dataclass(frozen=True)
class Options:
    """How to run the benchmark."""

    seeds: int = 8
    """Number of training runs for each task, from seed 0 on."""
    scale: float = 1.0
    """Length of the runs as a share of the tasks' budgets."""
    directory: Path = Path("benchmark")
    """Where runs and records go."""
    search: tuple[Path, ...] = ()
    """Further directories to search for runs."""
    on: str = "here"
    """Where to train: `here`, one process per core, or `ray`."""
    address: str | None = None
    """The address of the Ray cluster."""
    report: str = "auto"
    """How to report progress: `auto`, `lines`, `json` or `none`."""
    train: bool = True
    """Whether to train the runs that are missing; otherwise those that are done are measured."""

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1:
            raise InputError(f"The scale {self.scale:g} is out of range: above 0 and at most 1.")
        if self.seeds < 1:
            raise InputError(f"The number of seeds is {self.seeds}, but it has to be at least 1.")
        check_place(self.on)


@dataclass(frozen=True)
class Trial:
    """One agent, or a policy that needs no training, in one task at one team limit."""

    task: Task
    limit: int
    learner: str
    """The name in the record."""
    who: Path | str
    """The agent's file, or the name of a policy."""
    seed: int
    checkpoint: Checkpoint
    step: int

    @property
    def name(self) -> str:
        """A short name for messages."""
        trained = f" seed {self.seed} {self.checkpoint}" if isinstance(self.who, Path) else ""
        return f"{self.task.name} limit {self.limit}: {self.learner}{trained}"

    def source(self, episodes: int) -> Source:
        """Return what the record is made from.

        Args:
            episodes: The number of episodes.
        """
        agent = file_checksum(self.who) if isinstance(self.who, Path) else self.who
        return Source(agent, self.task.identity, episodes)


class Benchmark:
    """A learner, a trained agent or a policy in some tasks, from training to records.

    Args:
        who: The name of a learner, a trained agent as in `dropin.load_agent`, a type or `random`.
        tasks: The tasks. A trained agent or a type is measured in those of its game only.
        options: How to run it.
        references: Whether `who`, a learner, is trained in the situation of each test itself, and
            measured along with chance.

    >>> from dropin.experiments.benchmark.tasks import select_tasks
    >>> benchmark = Benchmark("gpl-q", select_tasks(["lbf/standard", "lbf/crowd"]))
    >>> len(benchmark.plan.jobs)  # The two tasks share the runs of eight seeds.
    8
    """

    def __init__(
        self,
        who: str,
        tasks: Sequence[Task],
        options: Options | None = None,
        *,
        references: bool = False,
    ):
        self.who, self.options = who, Options() if options is None else options
        self.is_learner, self.references = who in registry.learners, references
        if references and not self.is_learner:
            raise unknown("learner", who, registry.learners)
        self.notes: list[str] = []
        """Sentences about tasks that are left out, or may mean something else."""
        self.tasks = list(tasks) if self.is_learner or who == RANDOM else self._fitting(tasks)
        for task in self.tasks:
            task.check()

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the records of this benchmark."""
        if self.references:
            return RANDOM, BEST_RESPONSE
        return (agent_name(self.who) if not self.is_learner else self.who,)

    @cached_property
    def trained_with(self) -> RunConfig | None:
        """The settings of the run that made the agent; None if it is no agent, or nobody knows."""
        if self.is_learner or not names_agent(self.who):
            return None
        path = agent_path(self.who)
        files = RunDirectory(path if path.is_dir() else path.parent)
        return files.config() if files.exists else None

    @cached_property
    def plan(self) -> RunPlan:
        """The training runs with how far they are; none for an agent or a policy."""
        if not self.is_learner:
            return RunPlan((), ())
        options = self.options
        trainings = (reference_trainings if self.references else task_trainings)(self.tasks)
        stored = find_runs([options.directory, *options.search])
        seeds = range(options.seeds)
        return plan_runs(trainings, self.who, seeds, options.scale, options.directory, stored)

    def run(self, say: Callable[[str], None] | None = None) -> list[Record]:
        """Train the runs that are missing, and measure all agents that are done.

        Args:
            say: Called with a line for each record that was measured.

        Returns:
            All records, those of earlier calls included.

        Raises:
            StoppedError: If some runs or trials failed, once all others are done.
            KeyboardInterrupt: If it was interrupted, once all runs are saved.
        """
        records, failures = self.attempt(say)
        if failures:
            raise StoppedError(" ".join(failures))
        return records

    def attempt(self, say: Callable[[str], None] | None = None) -> tuple[list[Record], list[str]]:
        """Do what `run` does, and return a sentence for everything that failed.

        Args:
            say: Called with a line for each record that was measured.

        Returns:
            All records, and the sentences.

        Raises:
            KeyboardInterrupt: If it was interrupted, once all runs are saved.
        """
        options, failures = self.options, []
        if options.train:
            try:
                train_missing(
                    self.plan.jobs, on=options.on, address=options.address, report=options.report
                )
            except StoppedError as error:
                failures.append(str(error))
            finally:
                self.plan = self.plan.refreshed()
        trials = list(self.trials())
        if not trials and not failures:
            raise InputError(f"None of the {len(self.plan.jobs)} runs is done: train them first.")
        return self.measure(trials, failures, say), failures

    def trials(self) -> Iterator[Trial]:
        """Yield the trials of all runs that are done, or those of the agent or policy."""
        if not self.is_learner:
            yield from self._trials_without_training()
            return
        if self.references:
            for task in self.tasks:
                for limit in task.test_limits:
                    yield Trial(task, limit, RANDOM, RANDOM, 0, "last", 0)
        name = BEST_RESPONSE if self.references else self.who
        for training, jobs in self.plan.by_training:
            for job in jobs:
                if job.progress is not Progress.DONE:
                    continue
                run, files = job.run.reloaded(), RunDirectory(job.run.path)
                steps = {"last": run.final_step, "best": run.best_step}
                for limit in training.limits:
                    for checkpoint in CHECKPOINTS:
                        step = steps[checkpoint]
                        path, seed = files.agent_at(step), job.config.seed
                        yield Trial(training.task, limit, name, path, seed, checkpoint, step)

    def measure(
        self, trials: Sequence[Trial], failures: list[str], say: Callable[[str], None] | None = None
    ) -> list[Record]:
        """Return the records of trials; those that are stored are not measured again.

        Args:
            trials: The trials.
            failures: A sentence is added for each test that failed.
            say: Called with a line for each record that was measured.
        """
        measuring = _Measuring(self.options)
        records: dict[Trial, Record] = {}
        missing: list[Trial] = []
        for trial in trials:
            found = measuring.stored(trial)
            if found is None:
                missing.append(trial)
            else:
                records[trial] = found
        with ThreadPoolExecutor(len(cores())) as pool:
            running = {pool.submit(measuring.measure, one): one for one in _spread(missing)}
            try:
                for done in as_completed(running):
                    trial = running[done]
                    try:
                        records[trial] = done.result()
                    except (InputError, StoppedError) as error:
                        failures.append(f"{trial.name}: {error}")
                        continue
                    if say is not None:
                        mean = records[trial].episodes.returns.mean()
                        say(f"{trial.name}: return {mean:.2f}")
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [records[trial] for trial in trials if trial in records]

    def _trials_without_training(self) -> Iterator[Trial]:
        who = self.who
        if names_agent(who):
            who = agent_path(who)
            who = who / AGENT_FILE if who.is_dir() else who
        config = self.trained_with
        seed, step = (0, 0) if config is None else (config.seed, config.steps)
        (name,) = self.names
        for task in self.tasks:
            for limit in task.test_limits:
                yield Trial(task, limit, name, who, seed, "last", step)

    def _fitting(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks in whose game the agent or the type can play."""
        if names_agent(self.who):
            game = load_agent(self.who).interface.game
            fitting = [task for task in tasks if task.game == game]
            if not fitting:
                raise InputError(f"{self.who} plays {game}, but no task is of this game.")
            return self._not_met(fitting)
        names = {task.name: type_names(task.game, task.rules) for task in tasks}
        fitting = [task for task in tasks if self.who in names[task.name]]
        if not fitting:
            known = [*registry.learners, RANDOM, *(name for own in names.values() for name in own)]
            raise unknown("learner, type or agent", self.who, dict.fromkeys(known))
        return fitting

    def _not_met(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks in which an agent has not met types that are new in the test."""
        config = self.trained_with
        if config is None:
            strangers = [task.name for task in tasks if task.met_in_training(None)]
            if strangers:
                self.notes.append(
                    f"Nobody knows with which types {self.who} was trained: if it has met those of"
                    f" the test, they are no strangers in {', '.join(strangers)}."
                )
            return list(tasks)
        met = {task.name: found for task in tasks if (found := task.met_in_training(config.types))}
        if met:
            types = ", ".join(dict.fromkeys(name for found in met.values() for name in found))
            text = (
                f"{self.who} was trained with types that are strangers in the test ({types}), so"
                f" it cannot take {', '.join(met)}."
            )
            if len(met) == len(tasks):
                raise InputError(text)
            self.notes.append(text)
        rules = {task.rules for task in tasks} - {config.rules}
        if rules:
            self.notes.append(
                f"{self.who} was trained under the rules {config.rules}, but the tasks have the"
                f" rules {', '.join(sorted(rules))}."
            )
        return [task for task in tasks if task.name not in met]


def agent_name(who: str) -> str:
    """Return the name in records of an agent, a type or a policy: for a file, its path in short.

    Args:
        who: The name or the path.
    """
    if not names_agent(who):
        return who
    parts = [re.sub(r"[^A-Za-z0-9._+-]+", "-", part).lstrip("._+-") for part in Path(who).parts]
    return "/".join(part for part in parts if part)


def _program(trial: Trial) -> str:
    """Return what decides the compiled program of a test, besides the learner's network."""
    task = trial.task
    shapes: list[object] = [task.game, task.rules, max(trial.limit, 5)]
    for process in (task.test_openness, task.test_type_changes):
        if isinstance(process, Mapping):
            # The number of entries of a schedule is part of the shapes.
            shapes += [process["kind"], len(process.get("events", ()))]
        else:
            shapes.append(process)
    return repr(shapes)


def _spread(trials: Sequence[Trial]) -> list[Trial]:
    """Return trials in an order in which those of different programs follow one another."""
    groups: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        groups[_program(trial)].append(trial)
    longest = max(map(len, groups.values()), default=0)
    return [group[row] for row in range(longest) for group in groups.values() if row < len(group)]


class _Measuring:
    """Measures trials in several threads; a program is compiled by one of them."""

    def __init__(self, options: Options):
        self.options = options
        self._locks: dict[str, Lock] = defaultdict(Lock)
        self._compiled: set[str] = set()

    def episodes(self, task: Task) -> int:
        """Return the number of episodes of a task: fewer if the runs are scaled down."""
        few = self.options.scale < 1
        return min(task.episodes, SMALL_EPISODES) if few else task.episodes

    def path(self, trial: Trial) -> Path:
        """Return the file of a test's record."""
        return record_path(
            self.options.directory,
            results_name(trial.learner, self.options.scale),
            trial.task,
            trial.limit,
            trial.seed,
            trial.checkpoint,
        )

    def stored(self, trial: Trial) -> Record | None:
        """Return the record of a test if it is stored and was made from the same agent."""
        try:
            record, source = load_record(self.path(trial))
        except InputError:
            return None
        return record if source == trial.source(self.episodes(trial.task)) else None

    def measure(self, trial: Trial) -> Record:
        """Measure and store a record."""
        source = trial.source(self.episodes(trial.task))
        who = load_agent(trial.who) if isinstance(trial.who, Path) else trial.who
        program = _program(trial)
        with self._locks[program]:
            is_first = program not in self._compiled
            record = self._measure(trial, who) if is_first else None
            self._compiled.add(program)
        record = self._measure(trial, who) if record is None else record
        save_record(self.path(trial), record, source)
        return record

    def _measure(self, trial: Trial, who: Agent | str) -> Record:
        return measure(
            who,
            trial.task,
            trial.limit,
            learner=trial.learner,
            seed=trial.seed,
            checkpoint=trial.checkpoint,
            step=trial.step,
            episodes=self.episodes(trial.task),
        )
