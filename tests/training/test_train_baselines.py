"""Every baseline in every game: train, resume, evaluate in larger teams, load and act."""

import shutil
from typing import Any

import equinox as eqx
import jax
import pytest
import tiny

from dropin.agents import Agent, AgentPolicy, load_agent
from dropin.core import registry
from dropin.core.errors import InputError
from dropin.env import make
from dropin.evaluation.evaluate import run_episodes
from dropin.learners.config import TrainConfig
from dropin.learners.ql import QLConfig
from dropin.training.config import run_config
from dropin.training.loop import resume_run, train
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import read_table

LEARNERS = ("ql", "ql-am", "gnn", "gnn-am")
JOINT = ("dgn", "maddpg")
TYPES = {"lbf": ["H6"], "wolfpack": ["H1"], "fortattack": ["G2", "A1"]}
SETTINGS: dict[str, Any] = {
    **{name: value for name, value in tiny.RUN.items() if name not in tiny.SETTINGS},
    **tiny.SIZES,
    "first_hidden_size": 4,
    "second_hidden_size": 4,
    "steps": 40,
    "log_every": 20,
    "checkpoint_every": 20,
    "evaluation": {"num_envs": 2, "episodes": 1, "team_limits": (5,)},
    "game_settings": {"horizon": 10},
}


QUICK = {("wolfpack", "gnn-am"), ("fortattack", "dgn")}
"""A learner of each way to train."""


@pytest.mark.parametrize(
    ("game", "learner"),
    [
        pytest.param(game, learner, marks=[pytest.mark.slow] * ((game, learner) not in QUICK))
        for game in TYPES
        for learner in LEARNERS + JOINT
    ],
)
def test_trains_resumes_evaluates_and_loads(game, learner, tmp_path):
    path, again = tmp_path / "run", tmp_path / "again"
    joint = learner in JOINT
    kept = {"replay_capacity": 24, "batch_size": 4} if joint else {}
    options: dict[str, Any] = {**SETTINGS, "types": TYPES[game], **kept}
    train(game, learner, directory=path, **options)
    rows = read_table(path / "evaluation.csv")
    modes = ("greedy", "sampled") if learner == "maddpg" else ("greedy",)
    found = [
        (int(row["step"]), row["teammates"], int(row["team_limit"]), row["mode"]) for row in rows
    ]
    assert found == [
        (step, teammates, limit, mode)
        for step in (0, 20, 40)
        for teammates in (("strangers", "partners") if joint else ("strangers",))
        for limit in (3, 5)
        for mode in modes
    ]
    metrics = read_table(path / "metrics.csv")
    assert {"prediction_loss" in row for row in metrics} == {learner.endswith("am")}
    assert {"auxiliary_loss" in row for row in metrics} == {joint}

    shutil.copytree(path, again)
    RunDirectory(again).checkpoint(40).unlink()
    resume_run(again, report="none")
    for name in ("metrics.csv", "evaluation.csv", "agent.safetensors"):
        assert (path / name).read_bytes() == (again / name).read_bytes()

    agent = load_agent(path)
    assert agent.learner == learner
    env = make(game, team_limit=5, types=TYPES[game])
    _, observation = eqx.filter_jit(env.reset)(jax.random.key(0))
    action, memory = agent.act(jax.random.key(0), observation)
    assert 0 <= int(action) < len(env.game.actions)
    if joint:
        assert memory.value is None
    else:
        assert memory.value.hidden.any()


def test_the_settings_are_the_papers():
    for name in LEARNERS + JOINT:
        config = run_config("lbf", name)
        assert (config.steps, config.training.learning_rate) == (6_400_000, 2.5e-4)
        sizes = config.settings
        assert (sizes.first_hidden_size, sizes.second_hidden_size, sizes.type_lstm_size) == (
            70,
            60,
            100,
        )
        assert sizes.agent_model == name.endswith("am")
        fort = run_config("fortattack", name).settings
        assert (fort.first_hidden_size, fort.second_hidden_size, fort.readout_hidden_size) == (
            128,
            128,
            128,
        )
    for name in ("gnn", "gnn-am", "dgn"):
        assert run_config("lbf", name).settings.num_heads == 8
    assert run_config("lbf", "dgn").settings.attention_regularization == 0.03
    assert run_config("lbf", "maddpg").settings.gumbel_temperature == 0.1
    with pytest.raises(InputError, match="agent_model of ql is False: it cannot be changed"):
        run_config("lbf", "ql", agent_model=True)


def test_an_agent_with_too_few_places_says_so():
    config = QLConfig(**tiny.SIZES, max_agents_per_side=3)
    learner = registry.learners["ql"].make(config, TrainConfig())
    agent = Agent(learner.policy_template(make("lbf").interface), "ql", config)
    env = make("lbf", team_limit=4, types=["H6"])
    with pytest.raises(InputError, match=r"input for 3 agents .* can be 4: train it with"):
        run_episodes(env, AgentPolicy(agent), num_envs=2, episodes=1)
