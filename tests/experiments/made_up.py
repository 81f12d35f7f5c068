"""Runs with evaluations that nobody played, and experiments on them."""

from pathlib import Path

from dropin.core import registry
from dropin.experiments import Experiment, Options
from dropin.training.run_directory import RunDirectory


def write_run(path, config, returns, *, accuracy=None, partners=None, agents=False):
    """Write the files of a finished run.

    Args:
        path: The run's directory.
        config: Its settings.
        returns: By team limit, the returns with strangers at evenly spaced checkpoints.
        accuracy: The shooting accuracy at each checkpoint.
        partners: By team limit, the returns with partners.
        agents: Whether there is a file for the agent of each checkpoint; it is empty.
    """
    files = RunDirectory(path)
    files.create(config)
    number = len(next(iter(returns.values())))
    last = config.num_updates(config.steps) * config.steps_per_update
    for index in range(number):
        step = last * index // (number - 1)
        if agents:
            files.agents.mkdir(exist_ok=True)
            (files.agents / f"step-{step:012d}.safetensors").touch()
        for teammates, table in (("strangers", returns), ("partners", partners or {})):
            for limit, values in table.items():
                row = {
                    "step": step,
                    "team_limit": limit,
                    "teammates": teammates,
                    "mode": "greedy",
                    "episodes": 320,
                    "mean_return": values[index],
                    "ci_low": values[index] - 0.5,
                    "ci_high": values[index] + 0.5,
                    "legacy_mean_return": values[index] + 100,
                    "unshaped_mean_return": "",
                }
                if accuracy is not None:
                    row["shooting_accuracy"] = accuracy[index]
                files.evaluation.append(row)
    return files


def make_experiment(directory: Path, name: str, options: Options) -> Experiment:
    return Experiment(registry.experiments[name], options, directory)


def fill(directory: Path, name: str, options: Options, returns, **more) -> Experiment:
    """Write runs of an experiment; `returns` and `more` are by grid, learner and seed."""
    for job in make_experiment(directory, name, options).jobs:
        key = (job.grid, job.config.learner, job.config.seed)
        if key in returns:
            extra = {argument: values[key] for argument, values in more.items()}
            write_run(job.run.path, job.config, returns[key], **extra)
    return make_experiment(directory, name, options)


def sheet_rows(result, index=0):
    """The rows of a table, each by the names of its columns."""
    sheet = result.sheets[index]
    return [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]


# The mean over the seeds is best at the second of three checkpoints, although one seed is best at
# the first and the other at the last.
TRAINING = {
    ("", "ql", 0): {3: [9.0, 8.0, 0.0], 5: [1.0, 2.0, 3.0]},
    ("", "ql", 1): {3: [0.0, 6.0, 7.0], 5: [4.0, 6.0, 5.0]},
}
