"""What the tasks ask of a submission, and playing its records again."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from dropin.agents import load_agent
from dropin.core import registry
from dropin.core.errors import InputError, unknown
from dropin.evaluation.evaluate import names_agent
from dropin.experiments.benchmark.episodes import NUM_ENVS, measure
from dropin.experiments.benchmark.records import Record
from dropin.experiments.benchmark.results import About
from dropin.experiments.benchmark.running import BEST_RESPONSE, SMALL_EPISODES
from dropin.experiments.benchmark.runs import reference_trainings, task_trainings
from dropin.experiments.benchmark.submission import TaskRules
from dropin.experiments.benchmark.tasks import Task

__all__ = ["Replayed", "task_rules"]


def task_rules(tasks: Sequence[Task], about: About) -> list[TaskRules]:
    """Return what some tasks ask of a submission.

    Args:
        tasks: The tasks.
        about: What the submission says of its learner and of its scale.

    Raises:
        InputError: If the learner is not registered here.
    """
    trainings = {each.task.name: each for each in task_trainings(tasks)}
    learner = about.learner
    if learner == BEST_RESPONSE:
        trainings = {each.task.name: each for each in reference_trainings(tasks)}
        learner = str(about.training.get("learner"))
    if about.kind == "dropin" and names_agent(learner):
        raise InputError(
            f"These are the results of one agent, {learner}: a submission has all runs of a"
            " learner, as `dropin benchmark run LEARNER` makes them."
        )
    if about.kind == "dropin" and learner not in registry.learners:
        raise unknown("learner", learner, registry.learners)
    found = []
    for task in tasks:
        steps = max(round(task.steps * about.scale), 1)
        if about.kind == "dropin":
            config = trainings[task.name].run_config(learner, scale=about.scale)
            steps = config.num_updates(config.steps) * config.steps_per_update
        episodes = task.episodes if about.scale == 1 else min(task.episodes, SMALL_EPISODES)
        rounds = -(-episodes // NUM_ENVS)
        whole = rounds * -(-episodes // rounds)
        found.append(TaskRules(task.name, task.version, task.test_limits, steps, whole))
    return found


class Replayed:
    """Plays the records of agents, and of policies that Dropin knows by name, again.

    Args:
        tasks: The tasks.
    """

    def __init__(self, tasks: Sequence[Task]):
        self._tasks: Mapping[str, Task] = {task.name: task for task in tasks}

    def __call__(self, record: Record, agent: Path | None) -> Record:
        """Return what is measured now.

        Args:
            record: The record of the submission; its numbers are not used.
            agent: The file of its agent; None for a policy that is known by its name.

        Raises:
            InputError: If the task is unknown, or the agent does not fit it.
        """
        if record.task not in self._tasks:
            raise InputError(f"There is no task {record.task}.")
        return measure(
            record.learner if agent is None else load_agent(agent),
            self._tasks[record.task],
            record.team_limit,
            learner=record.learner,
            seed=record.seed,
            checkpoint=record.checkpoint,
            step=record.step,
            episodes=len(record.episodes),
        )
