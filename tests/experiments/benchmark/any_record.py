"""A record of random numbers, to be stored."""

import numpy as np

from dropin.experiments.benchmark.records import MAX_AGE, WINDOW, EpisodeTable, Record, Sums


def make_record(seed=0, learner="gpl-q", *, predicts=True) -> Record:
    """Return a record of numbers that nobody measured."""
    rng = np.random.default_rng(seed)

    def sums(number):
        return Sums(rng.normal(size=number), rng.integers(0, 9, number))

    columns = [rng.integers(0, 9, 4).astype(np.int32) for _ in range(4)]
    return Record(
        task="lbf/standard",
        version=1,
        team_limit=5,
        seed=seed,
        checkpoint="best",
        step=640,
        episodes=EpisodeTable(rng.normal(size=4).astype(np.float32), *columns),
        reward_by_team_size=sums(6),
        reward_around_entry=sums(2 * WINDOW),
        reward_around_exit=sums(2 * WINDOW),
        reward_around_change=sums(2 * WINDOW),
        correct_by_age=sums(MAX_AGE + 1) if predicts else None,
        returns_by_type={"H6": rng.normal(size=3), "H1": rng.normal(size=3)},
        learner=learner,
    )
