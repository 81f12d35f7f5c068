"""What is counted in a task, against a slow loop over single steps with the same keys."""

import dataclasses
from collections import Counter, defaultdict

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

from dropin._xla.random import split
from dropin.agents import Agent
from dropin.core import registry
from dropin.core.errors import InputError
from dropin.env import make
from dropin.experiments.benchmark import episodes as measuring
from dropin.experiments.benchmark.episodes import (
    Trace,
    count_ages,
    measure,
    reward_around,
    table_of,
)
from dropin.experiments.benchmark.records import MAX_AGE, WINDOW
from dropin.experiments.benchmark.tasks import select_tasks
from dropin.learners.config import TrainConfig
from dropin.policies import RandomPolicy

fold_in = jax.random.fold_in
NUM_ENVS, EPISODES = 3, 2
NAMES = ["H3", "H6", "H7"]
TASK = dataclasses.replace(
    select_tasks(["lbf/standard"])[0], test_types=("H6", "H7"), episodes=6, episodes_per_type=3
)
ENV = make(
    "lbf",
    rules="reference",
    team_limit=4,
    types=NAMES,
    openness={"kind": "durations", "active": [3, 6], "waiting": [2, 4]},
    type_changes={"kind": "turncoat", "interval": [2, 5]},
).restricted_to(["H6", "H7"])


@pytest.fixture(scope="module")
def agent():
    """An agent with random weights, which predicts its teammates' actions."""
    spec = registry.learners["gpl-q"]
    settings = spec.default_settings("lbf", **tiny.SETTINGS)
    learner = spec.make(settings, TrainConfig(num_envs=1, rollout_length=1))
    return Agent(learner.policy(learner.init(jax.random.key(5), ENV)), "gpl-q", settings)


reset = eqx.filter_jit(lambda env, key: env.reset(key))
step = eqx.filter_jit(lambda env, key, state, action: env.step(key, state, action))
act = eqx.filter_jit(
    lambda policy, key, seen, memory: policy.act_with_prediction(key, seen, memory)
)


def play_slowly(agent, env, key, number):
    """Play each environment step by step; a list of episodes, each a list of steps.

    A step has the reward and, for each teammate that acted: whether it is new, its type, and
    whether its action was predicted.
    """
    reset_key, step_key = split(key)
    reset_keys = split(reset_key, NUM_ENVS)
    episodes = []
    for index in range(NUM_ENVS):
        state, seen = reset(env, reset_keys[index])
        memory, time = agent.init_memory(env.slots), 0
        for _ in range(number):
            episode, done = [], False
            while not done:
                keys = split(fold_in(step_key, time), (2, NUM_ENVS))
                action, prediction, memory = act(agent.policy, keys[0, index], seen, memory)
                likeliest = np.argmax(np.asarray(prediction.teammate_logits), axis=1)
                before = state
                state, result = step(env, keys[1, index], state, action)
                taken = np.asarray(result.actions)
                mates = {
                    slot: (
                        bool(before.arrived[slot]),
                        int(before.roster.type[slot]),
                        bool(likeliest[slot] == taken[slot]),
                    )
                    for slot in range(1, env.slots)
                    if before.game.present[slot]
                }
                episode.append((float(result.reward), mates))
                seen, done, time = result.observation, bool(result.done), time + 1
            episodes.append(episode)
    return episodes


def count_slowly(episodes):
    """Count what a record holds, one step after another."""
    rows, by_size = [], defaultdict(list)
    around = {name: defaultdict(list) for name in ("entry", "exit", "change")}
    by_age = defaultdict(list)
    for episode in episodes:
        counts, ages, last = Counter(), {}, {}
        for time, (reward, mates) in enumerate(episode):
            by_size[1 + len(mates)].append(reward)
            happened = Counter()
            for slot, (new, kind, right) in mates.items():
                ages[slot] = 0 if new or time == 0 else ages[slot] + 1
                by_age[min(ages[slot], MAX_AGE)].append(right)
                if time > 0:
                    happened["entry"] += new
                    happened["change"] += not new and kind != last[slot][1]
            for slot in last:
                happened["exit"] += slot not in mates or mates[slot][0]
            counts += happened
            for name, number in happened.items():
                for cell in range(2 * WINDOW):
                    other = time + cell - WINDOW
                    if number and 0 <= other < len(episode):
                        around[name][cell].append(episode[other][0])
            last = mates
        total = np.sum([reward for reward, _ in episode])
        names = ("entry", "exit", "change")
        rows.append((total, len(episode), *(counts[name] for name in names)))
    return rows, by_size, around, by_age


def check_sums(sums, cells, number):
    assert len(sums.total) == len(sums.count) == number
    assert sums.count.tolist() == [len(cells[cell]) for cell in range(number)]
    np.testing.assert_allclose(sums.total, [np.sum(cells[cell]) for cell in range(number)])


def test_every_column_is_that_of_a_slow_loop(agent, monkeypatch):
    monkeypatch.setattr(measuring, "NUM_ENVS", NUM_ENVS)
    record = measure(agent, TASK, 4, env=ENV)
    key = jax.random.key(TASK.seed)
    rows, by_size, around, by_age = count_slowly(play_slowly(agent, ENV, fold_in(key, 0), EPISODES))
    table = record.episodes
    columns = (table.returns, table.steps, table.entries, table.exits, table.type_changes)
    np.testing.assert_allclose(np.stack(columns, axis=1), rows)
    assert min(each.sum() for each in columns[2:]) > 5
    check_sums(record.reward_by_team_size, by_size, ENV.slots + 1)
    check_sums(record.reward_around_entry, around["entry"], 2 * WINDOW)
    check_sums(record.reward_around_exit, around["exit"], 2 * WINDOW)
    check_sums(record.reward_around_change, around["change"], 2 * WINDOW)
    check_sums(record.correct_by_age, by_age, MAX_AGE + 1)
    assert list(record.returns_by_type) == ["H6", "H7"]
    alone = play_slowly(agent, ENV.restricted_to(["H7"]), fold_in(key, 2), 1)
    assert {mate[1] for each in alone for _, mates in each for mate in mates.values()} == {2}
    returns = [sum(reward for reward, _ in each) for each in alone]
    np.testing.assert_allclose(record.returns_by_type["H7"], returns)


def test_masks_and_parameters_are_run_time_values(agent):
    before = measuring._play_compiled.compilations()
    other = ENV.with_team_limit(3).restricted_to(["H3"])
    policy = measuring._policy(agent, other)
    measuring.play(other, policy, jax.random.key(3), NUM_ENVS, 1)
    quick = make(
        "lbf",
        rules="reference",
        team_limit=4,
        types=NAMES,
        openness={"kind": "durations", "active": [1, 2], "waiting": [1, 2]},
        type_changes={"kind": "turncoat", "interval": [1, 1]},
    ).restricted_to(NAMES)
    measuring.play(quick, policy, jax.random.key(3), NUM_ENVS, 1)
    assert measuring._play_compiled.compilations() == max(before, 1)


def hand_made(acted, arrived, kind, reward, done):
    """One environment with two teammates; rows are steps."""
    steps = len(reward)
    first = [True, *done[:-1]]

    def with_learner(rows, own):
        return jnp.concatenate([jnp.array(own)[:, None], jnp.array(rows)], axis=1)[:, None, :]

    trace = Trace(
        reward=jnp.array(reward)[:, None],
        done=jnp.array(done)[:, None],
        acted=with_learner(jnp.array(acted, bool), [True] * steps),
        arrived=with_learner(jnp.array(arrived, bool), first),
        type=with_learner(kind, [0] * steps),
        action=jnp.zeros((steps, 1, 3), int),
        predicted=jnp.zeros((steps, 1, 3), int),
    )
    return jax.tree.map(np.asarray, trace)


#                 acted   arrived type    reward done
STEPS = [
    ((1, 0), (1, 0), (4, 0), 1.0, False),
    ((1, 1), (0, 1), (4, 5), 2.0, False),  # One enters.
    ((1, 1), (0, 1), (4, 5), 4.0, False),  # It has left, and another one of its type enters.
    ((1, 1), (0, 0), (7, 5), 8.0, False),  # The first changes its type.
    ((0, 1), (0, 0), (7, 5), 16.0, True),  # The first has left.
    ((1, 1), (1, 1), (2, 2), 32.0, False),  # Another episode: all are new.
    ((1, 1), (0, 0), (2, 2), 64.0, True),
    ((0, 1), (0, 1), (0, 3), 128.0, False),  # This episode does not count.
]


def test_a_table_and_windows_by_hand():
    trace = hand_made(*zip(*STEPS, strict=True))
    table = table_of(trace, 2)
    assert table.returns.tolist() == [31.0, 96.0]
    assert table.steps.tolist() == [5, 2]
    assert table.entries.tolist() == [2, 0]
    assert table.exits.tolist() == [2, 0]
    assert table.type_changes.tolist() == [1, 0]
    events = measuring._Events(trace, 2)
    assert np.flatnonzero(events.changed.any(axis=2)).tolist() == [3]
    sums = reward_around(events.changed.any(axis=2), trace, 2)
    assert sums.total[WINDOW - 3 : WINDOW + 2].tolist() == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert sums.count.tolist() == [0] * (WINDOW - 3) + [1] * 5 + [0] * (WINDOW - 2)
    entries = reward_around(events.entered.any(axis=2), trace, 2)
    assert entries.total[WINDOW - 1 : WINDOW + 2].tolist() == [3.0, 6.0, 12.0]
    assert entries.count[WINDOW] == 2
    assert count_ages(trace)[:, 0, 1:].tolist() == [
        [0, 0], [1, 0], [2, 0], [3, 1], [4, 2], [0, 0], [1, 1], [0, 0],
    ]  # fmt: skip


def test_whoever_predicts_nothing_has_no_accuracy():
    task = dataclasses.replace(TASK, episodes_per_type=0)
    record = measure(RandomPolicy(), task, 4, episodes=3, env=ENV, learner="random", seed=4)
    assert record.correct_by_age is None
    assert (record.learner, record.seed, len(record.episodes)) == ("random", 4, 3)
    assert record.returns_by_type == {}
    with pytest.raises(InputError, match="number of episodes 0"):
        measure("random", task, 4, episodes=0, env=ENV)
    with pytest.raises(InputError, match="Unknown team limit of lbf/standard 4"):
        measure("random", task, 4)
