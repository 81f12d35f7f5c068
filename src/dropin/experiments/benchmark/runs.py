"""The training runs of the benchmark: tasks that are trained for in the same way share them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dropin.core import registry
from dropin.core.config import not_none
from dropin.core.errors import InputError
from dropin.evaluation.evaluate import LEGACY_ENVS, LEGACY_EPISODES
from dropin.experiments.benchmark.tasks import Task
from dropin.experiments.planning import Job, Needs, StoredRun, identity, plan_run
from dropin.experiments.runs import room_for, scaled
from dropin.training.config import STRANGERS, RunConfig, run_config
from dropin.training.evaluator import PAPER_LIMIT

__all__ = [
    "RunPlan",
    "TaskTraining",
    "plan_runs",
    "reference_trainings",
    "task_trainings",
    "training_config",
    "training_configs",
]


@dataclass(frozen=True)
class TaskTraining:
    """What a learner is trained in, and the tests of a task that its agents then take."""

    task: Task
    limits: tuple[int, ...]
    """The team limits of the tests."""
    is_test: bool = False
    """Whether it is trained in the situation of the test itself, at the one limit in `limits`: its
    agents are the references that others are compared with."""

    @property
    def name(self) -> str:
        """A short name, as `crowd`, or `crowd at 9` if the training is in the test itself."""
        own = self.task.name.removeprefix(f"{self.task.game}/")
        return f"{own} at {self.limits[0]}" if self.is_test else own

    def run_config(self, learner: str, seed: int = 0, scale: float = 1.0) -> RunConfig:
        """Return the settings of a training run.

        Args:
            learner: Name of the learner.
            seed: The seed of the run.
            scale: The share of the task's budget; exploration is shortened in proportion.

        Raises:
            InputError: If the seed is that of the test.
        """
        task = self.task
        limit = self.limits[0] if self.is_test else task.train_limit
        # The limits of the paper too, so that the campaign of the paper can use the run.
        evaluated = {limit, PAPER_LIMIT} if limit < PAPER_LIMIT else {limit}
        types = task.test_types if self.is_test else task.train_types
        config = run_config(
            task.game,
            learner,
            seed=seed,
            rules=task.rules,
            team_limit=limit,
            types=types,
            **not_none(
                openness=task.test_openness if self.is_test else task.train_openness,
                type_changes=task.test_type_changes if self.is_test else None,
            ),
            evaluation={
                "team_limits": tuple(sorted(evaluated - {limit})),
                "teammates": (STRANGERS,),
                "num_envs": LEGACY_ENVS,
                "episodes": LEGACY_EPISODES,
            },
            **room_for(max(*evaluated, *self.limits), task.game, learner),
        )
        _check_seeds(config, task)
        share = scale * task.steps / config.steps
        return config if share == 1 else scaled(config, share)


def _check_seeds(config: RunConfig, task: Task) -> None:
    """Raise `InputError` if a run is trained or evaluated with the seed of a test."""
    if task.seed in (config.seed, config.evaluation.seed):
        raise InputError(
            f"The seed {task.seed} is that of the test of {task.name}: no run may use it, or the"
            " test's episodes would not be new."
        )


def task_trainings(tasks: Iterable[Task]) -> list[TaskTraining]:
    """Return what a learner is trained in for some tasks, and tested in.

    Args:
        tasks: The tasks.
    """
    return [TaskTraining(task, task.test_limits) for task in tasks]


def reference_trainings(tasks: Iterable[Task]) -> list[TaskTraining]:
    """Return the trainings of some tests, for learners that are trained in the tests themselves.

    Args:
        tasks: The tasks.
    """
    return [
        TaskTraining(task, (limit,), is_test=True) for task in tasks for limit in task.test_limits
    ]


def training_config(task: Task, learner: str, seed: int = 0, scale: float = 1.0) -> RunConfig:
    """Return the settings of the training run for a task.

    Args:
        task: The task.
        learner: Name of the learner.
        seed: The seed of the run.
        scale: The share of the task's budget.
    """
    return TaskTraining(task, task.test_limits).run_config(learner, seed, scale)


def training_configs(
    tasks: Iterable[Task], learner: str, seeds: Iterable[int], scale: float = 1.0
) -> list[RunConfig]:
    """Return the settings of all training runs for some tasks, each once.

    Args:
        tasks: The tasks.
        learner: Name of the learner.
        seeds: The seeds of the runs.
        scale: The share of the tasks' budgets.
    """
    trainings, seeds = task_trainings(tasks), list(seeds)
    configs = [each.run_config(learner, seed, scale) for each in trainings for seed in seeds]
    return list({identity(config): config for config in configs}.values())


@dataclass(frozen=True)
class RunPlan:
    """The runs of some trainings."""

    jobs: tuple[Job, ...]
    """Every run once."""
    by_training: tuple[tuple[TaskTraining, tuple[Job, ...]], ...]
    """Each training with its runs, in the order of their seeds."""

    def refreshed(self) -> "RunPlan":
        """Return the plan with the progress of all runs read again."""
        jobs = {job.run.path: job.refreshed() for job in self.jobs}
        found = tuple(
            (each, tuple(jobs[job.run.path] for job in own)) for each, own in self.by_training
        )
        return RunPlan(tuple(jobs.values()), found)


def plan_runs(
    trainings: Sequence[TaskTraining],
    learner: str,
    seeds: Sequence[int],
    scale: float,
    home: Path,
    stored: dict[str, list[StoredRun]],
) -> RunPlan:
    """Return the runs of some trainings, with what exists of them.

    Args:
        trainings: The trainings.
        learner: Name of the learner.
        seeds: The seeds of the runs.
        scale: The share of the tasks' budgets.
        home: Where new runs go, to its subdirectory `runs`.
        stored: The runs that exist, as of `find_runs`; planned ones are added.
    """
    registry.learners[learner]  # raises InputError if it is unknown
    jobs: dict[str, Job] = {}
    found = []
    for training in trainings:
        own = []
        for seed in seeds:
            config = training.run_config(learner, seed, scale)
            key = identity(config)
            if key not in jobs:
                limits = frozenset({config.team_limit})
                needs = Needs(limits, frozenset({STRANGERS}), "mean_return", agents=True)
                jobs[key] = plan_run(training.name, config, needs, home, stored)
            _check_seeds(jobs[key].config, training.task)
            own.append(jobs[key])
        found.append((training, tuple(own)))
    return RunPlan(tuple(jobs.values()), tuple(found))
