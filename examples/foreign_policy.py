"""A policy that is not Dropin's in a task of the benchmark: it sees observations only.

A PyTorch policy looks the same: load the weights in `__init__`, clear its memory in `reset`, and in
`act` return `int(self.network(torch.from_numpy(features)).argmax())`.
"""

import sys
from pathlib import Path

import numpy as np

from dropin.experiments.benchmark.results import About, write_results
from dropin.experiments.benchmark.tasks import select_tasks
from dropin.interop.foreign import measure_foreign


class LinearPolicy:
    """Chooses the action with the largest linear value of its own and its teammates' features."""

    def __init__(self, seed: int, num_actions: int = 6):
        self.generator = np.random.default_rng(seed)
        self.num_actions, self.weights = num_actions, None

    def reset(self) -> None:
        """Forget nothing: the policy has no memory."""

    def act(self, observation: dict[str, np.ndarray]) -> int:
        """Return the number of an action."""
        team = observation["agents"][observation["present"] == 1].mean(axis=0)
        features = np.concatenate([observation["agents"][0], team, observation["shared"]])
        if self.weights is None:
            self.weights = self.generator.normal(size=(self.num_actions, features.size))
        return int(np.argmax(self.weights @ features))


def make_policy(task: str, seed: int) -> LinearPolicy:
    """Return the policy that was trained for a task in the run of a seed."""
    del task  # The weights are not trained, so they are the same for every task.
    return LinearPolicy(seed)


if __name__ == "__main__":
    (task,) = select_tasks(["lbf/standard"])
    record = measure_foreign(make_policy, task, 3, learner="linear", episodes=2)
    print(f"{record.task}, {len(record.episodes)} episodes: {record.episodes.returns.mean():.2f}")
    about = About.here("linear", kind="foreign", command="python foreign_policy.py")
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "foreign")
    print(write_results(directory, [record], about, replace=True))
