"""Records of the benchmark that nobody measured."""

import numpy as np

from dropin.experiments.benchmark.records import MAX_AGE, WINDOW, EpisodeTable, Record, Sums

SLOTS = 5


def sums(total, count):
    return Sums(np.asarray(total, np.float64), np.asarray(count, np.int64))


def around(before, after, count=4):
    """Sums around an event whose mean rewards before and after it are these."""
    counts = np.full(2 * WINDOW, count)
    return sums(np.repeat([before, after], WINDOW) * counts, counts)


def episodes(returns):
    """Episodes of ten steps each; every second one has an entry, every third an exit."""
    number = np.arange(len(returns))
    kinds = (np.full(len(returns), 10), number % 2 == 0, number % 3 == 0, number % 4 == 0)
    return EpisodeTable(np.asarray(returns, np.float32), *(each.astype(np.int32) for each in kinds))


def record(mean=1.0, *, seed=0, num_episodes=5, predicts=True, spread=0.25, **changes):
    """A record with this mean return; half of its steps are in teams of 2, half in teams of 3."""
    returns = mean + spread * np.linspace(-1, 1, num_episodes)
    steps = 5 * num_episodes
    by_size = sums([0, 0, mean * num_episodes / 2, mean * num_episodes / 2, 0, 0],
                   [0, 0, steps, steps, 0, 0])  # fmt: skip
    ages = np.arange(MAX_AGE + 1)
    values = {
        "task": "lbf/strangers",
        "version": 1,
        "team_limit": 3,
        "seed": seed,
        "checkpoint": "last",
        "step": 1000,
        "learner": "gpl-q",
        "episodes": episodes(returns),
        "reward_by_team_size": by_size,
        "reward_around_entry": around(0.2, 0.1),
        "reward_around_exit": around(0.2, 0.2),
        "reward_around_change": around(0.0, 0.0, count=0),
        "correct_by_age": sums(3 * (ages >= 1), np.full(MAX_AGE + 1, 4)) if predicts else None,
        "returns_by_type": {
            "H1": np.asarray(returns + 1, np.float32),
            "H6": np.asarray(returns - 1, np.float32),
        },
    }
    return Record(**(values | changes))


def runs(means, **changes):
    """A record for each seed, with these mean returns."""
    return [record(mean, seed=seed, **changes) for seed, mean in enumerate(means)]
