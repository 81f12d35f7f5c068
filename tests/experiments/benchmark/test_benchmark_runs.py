"""The runs that tasks share, and that no type of a test is met in training."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dropin.core.errors import InputError
from dropin.experiments.benchmark.runs import (
    plan_runs,
    reference_trainings,
    task_trainings,
    training_config,
    training_configs,
)
from dropin.experiments.benchmark.tasks import builtin_tasks, select_tasks
from dropin.experiments.planning import identity
from dropin.training.config import run_config

STRANGERS = [task for task in builtin_tasks() if task.kind == "strangers" and task.disjoint]


def test_tasks_with_the_same_training_share_their_runs():
    # All types, and a run for each of the three pools of strangers.
    for game in ("lbf", "wolfpack", "fortattack"):
        assert len(training_configs(select_tasks([game]), "gpl-q", range(2))) == 4 * 2
    # QL needs a longer input for the crowd.
    assert len(training_configs(select_tasks(["lbf"]), "ql", range(3))) == 5 * 3


def test_the_standard_task_takes_the_runs_of_the_paper():
    (task,) = select_tasks(["lbf/standard"])
    plain = run_config("lbf", "gpl-q", rules="reference", seed=3)
    assert identity(training_config(task, "gpl-q", 3)) == identity(plain)


def test_a_scaled_run_is_shorter_and_explores_for_a_shorter_time():
    (task,) = select_tasks(["lbf/standard"])
    whole, small = training_config(task, "gpl-q"), training_config(task, "gpl-q", scale=0.02)
    assert small.steps == 128_000
    assert small.training.epsilon.num_steps == whole.training.epsilon.num_steps // 50
    own = training_config(dataclasses.replace(task, steps=128_000), "gpl-q")
    assert identity(own) == identity(small)


def test_best_responses_are_trained_in_the_tests_themselves(tmp_path):
    tasks = select_tasks(["lbf/standard", "lbf/strangers-ciao", "lbf/turncoat", "lbf/crowd"])
    trainings = reference_trainings(tasks)
    assert [each.name for each in trainings] == [
        "standard at 3", "standard at 5", "strangers-ciao at 3", "strangers-ciao at 5",
        "turncoat at 3", "turncoat at 5", "crowd at 5", "crowd at 7", "crowd at 9",
    ]  # fmt: skip
    configs = [each.run_config("gpl-q") for each in trainings]
    assert identity(configs[0]) == identity(training_config(tasks[0], "gpl-q"))
    assert configs[3].types == ("H6", "H7", "H8", "H9")
    assert configs[3].team_limit == 5
    assert configs[4].type_changes == {"kind": "turncoat", "interval": [5, 15]}
    plan = plan_runs(trainings, "gpl-q", range(2), 1.0, tmp_path, {})
    assert len(plan.jobs) == 8 * 2  # `crowd at 5` is `standard at 5`.
    assert len({job.name for job in plan.jobs}) == 16
    own = dict(plan.by_training)
    assert own[trainings[1]] == own[trainings[6]]


def test_the_seed_of_a_test_is_refused(tmp_path):
    (task,) = select_tasks(["lbf/standard"])
    with pytest.raises(InputError, match="2000003 is that of the test of lbf/standard"):
        training_config(task, "gpl-q", seed=task.seed)
    evaluated = dataclasses.replace(task, seed=2500)
    with pytest.raises(InputError, match="The seed 2500"):
        plan_runs(task_trainings([evaluated]), "gpl-q", [0], 1.0, tmp_path, {})


@pytest.mark.parametrize("task", STRANGERS, ids=lambda task: task.name)
def test_the_pool_of_training_has_no_type_of_the_test(task):
    pool = training_config(task, "gpl-q").make_env().team.pool
    assert not set(pool.names) & set(task.test_types)


@pytest.mark.slow
@pytest.mark.parametrize("task", STRANGERS, ids=lambda task: task.name)
def test_no_stranger_enters_in_training(task):
    """A hundred thousand entries: at the start of episodes, and during them."""
    env = training_config(task, "gpl-q").make_env()
    num_envs, steps, own = 512, 50, env.team.slots

    @partial(jax.jit, donate_argnums=0)
    def play(states, key):
        def step(states, key):
            act, move = jax.random.split(key)
            actions = jax.random.randint(act, (num_envs,), 0, len(env.game.actions))
            states, result = jax.vmap(env.step)(jax.random.split(move, num_envs), states, actions)
            new = states.arrived[:, 1:own]
            kinds = states.roster.type[:, 1:own, None] == jnp.arange(len(env.team.pool.types))
            within = new & ~result.done[:, None]
            return states, (jnp.sum(kinds & new[..., None], axis=(0, 1)), jnp.sum(within))

        states, (counts, within) = jax.lax.scan(step, states, jax.random.split(key, steps))
        return states, counts.sum(axis=0), within.sum()

    states, _ = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), num_envs))
    counts, within = np.zeros(len(env.team.pool.types), int), 0
    for chunk in range(400):
        states, new, late = play(states, jax.random.key(chunk + 1))
        counts, within = counts + np.asarray(new), within + int(late)
        if counts.sum() >= 100_000:
            break
    assert counts.sum() >= 100_000
    assert within > 10_000
    met = {name for name, count in zip(env.team.pool.names, counts, strict=True) if count}
    assert met == set(task.train_types)
