"""Foreign policies play the tasks of the benchmark and see observations only."""

from dataclasses import replace

import numpy as np
import pytest

from dropin.core.errors import InputError
from dropin.experiments.benchmark.submission import record_differences
from dropin.experiments.benchmark.tasks import select_tasks
from dropin.interop.foreign import ReplayedForeign, _Played, load_entry, measure_foreign


class Walker:
    """Walks in circles, and remembers what it saw."""

    def __init__(self):
        self.seen, self.episodes, self.steps = [], 0, 0

    def reset(self):
        self.episodes, self.steps = self.episodes + 1, 0

    def act(self, observation):
        self.seen.append(sorted(observation))
        observation["present"][:] = 0  # What a policy does to its copy changes nothing.
        self.steps += 1
        return self.steps % 5


def test_a_policy_is_measured_by_what_it_sees_and_again_the_same():
    (task,) = select_tasks(["lbf/standard"])
    task = replace(task, test_types=("H1", "H2"), episodes_per_type=0)
    walkers = []

    def make_policy(name, seed):
        assert (name, seed) == ("lbf/standard", 1)
        walkers.append(Walker())
        return walkers[-1]

    record = measure_foreign(make_policy, task, 3, learner="walker", seed=1, step=7, episodes=2)
    (walker,) = walkers
    assert walker.episodes == 2
    assert walker.seen[0] == ["agents", "arrived", "present", "shared"]
    assert (record.learner, record.seed, record.step, record.checkpoint) == ("walker", 1, 7, "last")
    assert record.episodes.steps.sum() == len(walker.seen)
    sizes = record.reward_by_team_size
    assert sizes.count.sum() == len(walker.seen)
    assert sizes.total.sum() == pytest.approx(record.episodes.returns.sum())
    assert sizes.count[:2].sum() == 0
    assert record.correct_by_age is None
    again = ReplayedForeign(make_policy, [task])(record, None)
    assert record_differences(record, again) == []


def test_events_are_counted_by_hand():
    played = _Played()
    a, b = ("H1", False), ("H2", False)
    teams = [{1: a}, {1: a, 2: ("H2", True)}, {1: b, 2: b}, {2: ("H1", True)}]
    played.add([0.0, 1.0, 2.0, 4.0], teams)
    table = played.table
    # The second leaves and another one takes its place at once; the first changes, and leaves.
    assert (table.returns.tolist(), table.steps.tolist()) == ([7.0], [4])
    assert (table.entries[0], table.exits[0], table.type_changes[0]) == (2, 2, 1)
    assert played.sizes == [(2, 0.0), (3, 1.0), (3, 2.0), (2, 4.0)]
    # The only change is in step 2: the rewards of all four steps lie around it.
    assert played.around["change"] == [(8, 0.0), (9, 1.0), (10, 2.0), (11, 4.0)]
    assert len(played.around["entry"]) == 8


def test_an_entry_is_a_function_of_a_module():
    assert load_entry("numpy:zeros") is np.zeros
    for entry, message in (("numpy", "write module:function"), ("no_such_module:f", "be imported"),
                           ("numpy:nothing", "no function 'nothing'")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            load_entry(entry)
