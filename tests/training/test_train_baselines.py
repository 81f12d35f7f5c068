"""Every baseline in every game: train, resume, evaluate in larger teams, load and act."""

import shutil

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
import tiny

from dropin.adhoc import make
from dropin.agents import Agent, AgentPlayer, load_agent
from dropin.errors import InputError
from dropin.evaluation.evaluate import run_episodes
from dropin.learners.ql import QL, QLConfig
from dropin.training.config import EvaluationConfig, run_config
from dropin.training.directory import RunDirectory
from dropin.training.loop import resume_run, train
from dropin.training.table import read_table

LEARNERS = ("ql", "ql-am", "gnn", "gnn-am")
JOINT = ("dgn", "maddpg")
TYPES = {"lbf": ["H6"], "wolfpack": ["H1"], "fortattack": ["G2", "A1"]}
SETTINGS = {
    **{name: value for name, value in tiny.RUN.items() if name not in tiny.SETTINGS},
    **tiny.SIZES,
    "first_units": 4,
    "second_units": 4,
    "steps": 40,
    "log_every": 20,
    "checkpoint_every": 20,
    "evaluation": EvaluationConfig(envs=2, episodes=1, team_limits=(5,)),
    "changes": {"horizon": 10},
}


QUICK = {("lbf", "maddpg"), ("wolfpack", "gnn-am"), ("fortattack", "ql-am"), ("fortattack", "dgn")}
"""Every kind of network and of game. What QL and GNN do is a part of what QL-AM and GNN-AM do."""


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
    kept = {"replay": 24, "batch": 4} if joint else {}
    train(game, learner, directory=path, **SETTINGS | {"types": TYPES[game]} | kept)
    rows = read_table(path / "evaluation.csv")
    policies = ("greedy", "sampled") if learner == "maddpg" else ("greedy",)
    assert [(int(row["step"]), row["among"] if joint else "", int(row["team_limit"]), row["policy"])
            for row in rows] == [
        (step, among, limit, policy)
        for step in (0, 20, 40)
        for among in (("strangers", "partners") if joint else ("",))
        for limit in (3, 5)
        for policy in policies
    ]  # fmt: skip
    metrics = read_table(path / "metrics.csv")
    assert {row["prediction_loss"] != "" for row in metrics} == {learner.endswith("am")}
    assert {row.get("extra_loss", "") != "" for row in metrics} == {joint}

    shutil.copytree(path, again)
    RunDirectory(again).checkpoint(40).unlink()
    resume_run(again, report="none")
    for name in ("metrics.csv", "evaluation.csv", "agent.safetensors"):
        assert (path / name).read_bytes() == (again / name).read_bytes()

    agent = load_agent(path)
    assert agent.name == learner
    env = make(game, team_limit=5, types=TYPES[game])
    _, seen = eqx.filter_jit(env.reset)(jax.random.key(0))
    action, memory = agent.act(jax.random.key(0), seen)
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
        assert (sizes.first_units, sizes.second_units, sizes.type_memory) == (70, 60, 100)
        assert sizes.agent_model == name.endswith("am")
        fort = run_config("fortattack", name).settings
        assert (fort.first_units, fort.second_units, fort.readout_units) == (128, 128, 128)
    for name in ("gnn", "gnn-am", "dgn"):
        assert run_config("lbf", name).settings.heads == 8
    assert run_config("lbf", "dgn").settings.steadiness == 0.03
    assert run_config("lbf", "maddpg").settings.relaxation == 0.1
    with pytest.raises(InputError, match="agent_model of ql is False: it cannot be changed"):
        run_config("lbf", "ql", agent_model=True)


def test_an_agent_with_too_few_places_says_so():
    meets, config = make("lbf").interface, QLConfig(**tiny.SIZES, places=3)
    learner = eqx.filter_jit(QL)(meets, config, key=jax.random.key(0))
    agent = Agent(learner, jnp.float32(1), "ql")
    env = make("lbf", team_limit=4, types=["H6"])
    with pytest.raises(InputError, match=r"places for 3 agents .* can be 4: train it with"):
        run_episodes(env, AgentPlayer(agent), envs=2, episodes=1)
