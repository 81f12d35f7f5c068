"""The plug-in in examples/plugin in every function and command, and plug-ins that are broken."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from gymnasium.utils.env_checker import check_env

import dropin
import dropin_corridor
from dropin._xla.random import StepRNG
from dropin.arena.config import RoomConfig
from dropin.arena.simulation import Simulation
from dropin.cli import main
from dropin.core import registry
from dropin.core.errors import InputError
from dropin.core.observation import Interface, Observation
from dropin.experiments import Experiment, Options
from dropin.games.lbf.game import LOAD
from dropin.games.lbf.observer import View as LBFView
from dropin.interop.gymnasium import DropinEnv, register_ids
from dropin.interop.pettingzoo import DropinParallelEnv
from dropin.learners.base import LearnerInput
from dropin.render.picture import renderer_of
from dropin.teams.types import PolicyInput
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import read_table
from dropin_corridor.corridor.game import EAST, STAY, WEST, Corridor, State
from dropin_corridor.corridor.observer import View, observe
from dropin_corridor.corridor.openness import Relay
from dropin_corridor.corridor.types import Sentry, shadow
from dropin_corridor.dueling import DuelingConfig, DuelingNetwork
from dropin_corridor.wanderer import wanderer

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ROOT / "examples" / "plugin"
REGISTRIES: tuple[registry.Registry[Any], ...] = (
    registry.games,
    registry.learners,
    registry.openness,
    registry.experiments,
)
RUN = {
    "steps": 120,
    "log_every": 20,
    "checkpoint_every": 40,
    "report": "none",
    "training": tiny.TRAINING,
    "evaluation": replace(tiny.EVALUATION, team_limits=(5,)),
    "hidden_size": 4,
    **tiny.SIZES,
}
FILES = ("metrics.csv", "evaluation.csv", "agent.safetensors")


@pytest.fixture(scope="module", autouse=True)
def _plugin() -> Iterator[None]:
    """Register the plug-in, as its entry point would, and forget it after these tests."""
    for each in REGISTRIES:
        len(each)
    before = [each.snapshot() for each in REGISTRIES]
    types = {game: dict(own) for game, own in registry._types.items()}
    ids = set(gymnasium.registry)
    dropin_corridor.register()
    register_ids()
    yield
    for each, snapshot in zip(REGISTRIES, before, strict=True):
        each.restore(snapshot)
    registry._types.clear()
    registry._types.update(types)
    for name in set(gymnasium.registry) - ids:
        del gymnasium.registry[name]


def command(*arguments: object) -> int:
    """Run a command in this process; return its exit code."""
    try:
        main([str(each) for each in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


# The game, worked out by hand: nine cells, gates on cells 0, 4 and 8.


def advance(cells, actions, is_open=(False, False, False), **settings):
    state = State(jnp.array(cells), jnp.array(is_open), jnp.int32(0))
    rng = StepRNG(jax.random.key(0))
    return Corridor(**settings).step(rng, state, jnp.array(actions))


def test_two_agents_open_a_gate_and_share_the_reward():
    state, outcome = advance([1, 0, 7], [WEST, STAY, EAST])
    assert state.cell.tolist() == [0, 0, 8]
    assert state.is_open.tolist() == [True, False, False]
    assert outcome.rewards.tolist() == [1.0, 1.0, 0.0]
    assert outcome.events.opened_by.tolist() == [[True, False, False]] * 2 + [[False] * 3]
    assert not outcome.terminated
    state, outcome = advance([4, 4, 5], [STAY] * 3, agents_per_gate=3)
    assert not state.is_open.any()


def test_walls_absent_agents_and_open_gates_do_nothing():
    state, outcome = advance([0, 8, -1, -1], [WEST, EAST, EAST, WEST])
    assert state.cell.tolist() == [0, 8, -1, -1]
    assert not state.is_open.any()
    _, outcome = advance([0, 0], [STAY, STAY], (True, False, False))
    assert outcome.rewards.tolist() == [0.0, 0.0]


def test_an_episode_ends_when_all_gates_are_open_or_at_the_horizon():
    _, outcome = advance([3, 4], [EAST, STAY], (True, False, True), horizon=1)
    assert (bool(outcome.terminated), bool(outcome.truncated)) == (True, False)
    _, outcome = advance([3, 3], [EAST, STAY], (True, False, True), horizon=1)
    assert (bool(outcome.terminated), bool(outcome.truncated)) == (False, True)


def test_the_metric_counts_gates_and_those_with_the_learner():
    _, outcome = advance([0, 0, 8, 8], [STAY] * 4)
    shared = Corridor().metrics(outcome.events)["gates_joined"]
    assert (float(shared.total), float(shared.count)) == (1.0, 2.0)


def test_settings_of_the_game_are_checked():
    assert Corridor(length=17, gates=5).gate_cells.tolist() == [0, 4, 8, 12, 16]
    assert dropin.make("corridor", rules="long").game == Corridor(17, 5, 60)
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"gates": 10}, "has no room for 10 gates"),
        ({"agents_per_gate": 4}, "A gate takes 4 agents, but a team has only 3"),
        ({"lenght": 4}, "did you mean 'length'"),
    )
    for settings, says in wrong:
        with pytest.raises(InputError, match=says):
            dropin.make("corridor", **settings)


def test_a_sentry_waits_at_its_gate_and_a_shadow_follows_the_learner():
    game, is_open = Corridor(), jnp.array([True, False, False])
    state = State(jnp.array([6, 2, 2, 2]), is_open, jnp.int32(0))
    seeds = jnp.array([0, 0, 1, 2], jnp.uint32)  # gates 1 (open, so the next one), 2 and 3
    rng = StepRNG(jax.random.key(0))
    views = observe(game, rng, state, seeds)
    inputs = PolicyInput(
        jax.random.key(0), game, state, state.present, (0,) * 4, 0, seeds, views, state.present
    )
    actions, _ = Sentry("sentry", "").plan(inputs, ())
    assert actions.tolist() == [WEST, EAST, EAST, EAST]
    moved = replace(inputs, views=replace(views, me=jnp.array([4, 4, 4, 8])))
    assert Sentry("sentry", "").plan(moved, ())[0].tolist() == [STAY, STAY, STAY, STAY]
    assert [int(shadow(View(jnp.int32(me), state.cell))) for me in (5, 6, 7)] == [EAST, STAY, WEST]


def test_the_relay_replaces_one_teammate_after_another():
    relay, usable = Relay(2), jnp.array([True, True, True, False])
    rng = StepRNG(jax.random.key(0))
    state, present = relay.reset(rng, usable)
    replaced = []
    for _ in range(6):
        state, leaving, entering = relay.step(rng, state, present, usable, None)
        assert leaving.tolist() == entering.tolist()
        replaced.append(np.flatnonzero(leaving).tolist())
    assert replaced == [[], [1], [], [2], [], [1]]
    assert relay.max_agents_per_episode(4, 6) == 7
    with pytest.raises(InputError, match="at least 1"):
        Relay(0)
    with pytest.raises(InputError, match="The relay is for teams without opponents"):
        dropin.make("fortattack", openness="relay")


def test_a_wanderer_loads_if_it_can_and_otherwise_takes_a_valid_move():
    valid = jnp.array([True, False, True, False, True, True])
    rows = jnp.zeros((1, 3), jnp.int32)
    nothing = jnp.array([False])
    view = LBFView(rows[0], rows, nothing, rows, nothing, valid, jnp.array([0.5, 0.5]))
    assert int(wanderer(view)) == LOAD
    away = replace(view, valid_actions=valid.at[LOAD].set(False))
    uniforms = (0.0, 0.32, 0.34, 0.65, 0.67, 0.99)
    chosen = [int(wanderer(replace(away, uniform=jnp.array([u, 0.0])))) for u in uniforms]
    assert chosen == [0, 0, 2, 2, 4, 4]


def test_a_dueling_value_is_the_state_value_plus_a_centred_advantage():
    interface = Interface.from_game(Corridor())
    network = DuelingNetwork(interface, DuelingConfig(), key=jax.random.key(0))
    present = jnp.array([True, True, False])
    observation = Observation(jnp.zeros((3, 1)), jnp.zeros(3), present, present, (0, 0, 0))
    types = jax.random.normal(jax.random.key(1), (3, DuelingConfig().type_vector_size))
    inputs = LearnerInput(observation)

    def q_values(types):
        return network.value.predict_values(types, inputs, jax.random.key(2)).q_values

    features = np.concatenate([types[0], np.mean(types[:2], axis=0)])
    value = np.asarray(network.value.state_value(jnp.asarray(features)))[0]
    advantages = np.asarray(network.value.advantage(jnp.asarray(features)))
    expected = value + advantages - advantages.mean()
    np.testing.assert_allclose(q_values(types), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(q_values(types.at[2].set(9.0)), q_values(types))


def test_random_episodes_keep_the_rules():
    env = dropin.make("corridor", team_limit=3, slots=4)

    def step(state, key):
        keys = jax.random.split(key, (2, 16))
        actions = jax.vmap(lambda key: jax.random.randint(key, (), 0, 3))(keys[0])
        following, time_step = jax.vmap(env.step)(keys[1], state, actions)
        return following, (following.game, time_step)

    @jax.jit
    def play(key):
        first, steps = jax.random.split(key)
        state, _ = jax.vmap(env.reset)(jax.random.split(first, 16))
        return jax.lax.scan(step, state, jax.random.split(steps, 60))[1]

    games, steps = play(jax.random.key(0))
    assert games.present.sum(axis=-1).tolist() == [[3] * 16] * 60
    cells = np.asarray(games.cell)
    assert ((cells >= 0) == np.asarray(games.present)).all()
    assert cells.max() == 8
    np.testing.assert_array_equal(steps.observation.agents[..., 0], cells)
    assert not games.is_open.all(axis=-1).any()
    assert 0 < float(steps.reward.sum()) <= 3 * (16 + float(steps.done.sum()))
    assert steps.truncated.any()


# Everything that Dropin does with a game and a learner.


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("plugin") / "run"
    dropin.train("corridor", "dueling", directory=directory, **RUN)
    return directory


def test_the_tables_of_a_run_hold_the_games_metric(run):
    metrics, evaluation = (read_table(run / name) for name in FILES[:2])
    assert {"return", "value_loss", "epsilon", "gates_joined"} <= set(metrics[0])
    assert {row["team_limit"] for row in evaluation} == {"3", "5"}
    assert "gates_joined" in evaluation[0]
    config = RunDirectory(run).config()
    assert config.rules == "standard"
    assert config.settings == DuelingConfig(hidden_size=4, **tiny.SIZES)


def test_a_resumed_run_ends_with_the_same_bits(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "agent.safetensors").unlink()
    files = RunDirectory(copy)
    files.checkpoint(files.steps()[-1]).unlink()
    dropin.resume_run(copy, report="none")
    for name in FILES:
        assert (copy / name).read_bytes() == (run / name).read_bytes()


def test_commands_take_the_run(run, tmp_path, capsys):
    assert command("evaluate", run, "--team-limit", 5, "--episodes", 80) == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    assert row[1:5] == ["standard", "greedy", "5", "80"]
    gif = tmp_path / "corridor.gif"
    assert command("play", "corridor", "--agent", run, "--seed", 1, "--gif", gif) == 0
    out = capsys.readouterr().out
    assert out.startswith("Start: the learner, cell ")
    assert "Step 8: mate 1 (" in out
    assert gif.read_bytes().startswith(b"GIF")
    assert command("plot", run, "--out", tmp_path / "curve.png") == 0
    assert "dueling, standard rules, limit 3" in capsys.readouterr().out
    assert command("types", "corridor") == 0
    assert "waits at a gate" in capsys.readouterr().out
    assert command("learners") == 0
    assert "dueling" in capsys.readouterr().out


def test_a_trained_agent_is_a_teammate(run):
    env = dropin.make("corridor", types=["sentry", dropin.load_agent(run)], team_limit=4)
    assert env.team.pool.names == ("sentry", "dueling")
    state, _ = eqx.filter_jit(env.reset)(jax.random.key(0))
    _, step = eqx.filter_jit(env.step)(jax.random.key(1), state, jnp.int32(EAST))
    assert step.actions.shape == (4,)


def test_an_environment_object_can_be_trained_in_and_resumed(tmp_path):
    env = dropin.make("corridor", openness=Relay(3), types=["shadow"], slots=5, gates=2)
    directory = tmp_path / "run"
    agent = dropin.train(env, "dueling", directory=directory, **RUN)
    assert agent.interface.shared_features == ("gate 1", "gate 2")
    whole = {name: (directory / name).read_bytes() for name in FILES}
    files = RunDirectory(directory)
    files.checkpoint(files.steps()[-1]).unlink()
    with pytest.raises(InputError, match="give it again"):
        dropin.resume_run(directory, report="none")
    dropin.resume_run(directory, env=env, report="none")
    assert {name: (directory / name).read_bytes() for name in FILES} == whole


@pytest.mark.parametrize("by", ["name", "object"])
def test_other_libraries_see_the_game(by):
    if by == "name":
        env = gymnasium.make("dropin/Corridor-v0", team_limit=4, render_mode="ansi").unwrapped
        check_env(env)
        parallel = DropinParallelEnv("corridor", team_limit=4)
    else:
        env = DropinEnv(dropin.make("corridor", team_limit=4), render_mode="ansi")
        parallel = DropinParallelEnv(dropin.make("corridor", team_limit=4))
    env.reset(seed=0)
    assert "@" in str(env.render())
    parallel.reset(seed=0)
    assert parallel.agents == ["learner", "mate_1", "mate_2", "mate_3"]
    for _ in range(8):
        _, rewards, _, truncated, _ = parallel.step(dict.fromkeys(parallel.agents, EAST))
        assert set(rewards) == set(truncated)
    assert parallel.agents == ["learner", "mate_2", "mate_3", "mate_4"]


def test_openness_and_type_are_known_by_name_in_other_games(capsys):
    env = dropin.make("lbf", openness="relay", types=["wanderer", "H6"])
    assert isinstance(env.team.openness, Relay)
    assert env.team.pool.names == ("wanderer", "H6")
    assert "wanderer" not in dropin.make("lbf").team.pool.names
    assert command("play", "lbf", "--types", "wanderer", "--openness", "relay") == 0
    assert "Step 8: mate 1 (wanderer) leaves." in capsys.readouterr().out
    assert command("types", "lbf") == 0
    assert "wanderer  no       Walks at random" in capsys.readouterr().out


def test_a_picture_and_a_text_show_lanes():
    env = dropin.make("corridor", types=["sentry"], openness="closed")
    state, _ = env.reset(jax.random.key(0))
    game = State(jnp.array([2, 0, -1]), jnp.array([False, True, False]), jnp.int32(0))
    text = renderer_of(env).text(env, replace(state, game=game)).plain
    assert [line.split() for line in text.splitlines()] == [
        ["#", "·", "@", "·", "=", "·", "·", "·", "#"],
        ["b", "·", "·", "·", "=", "·", "·", "·", "#"],
        ["#", "·", "·", "·", "=", "·", "·", "·", "#"],
    ]


def test_the_arena_plays_the_game_and_shows_it_as_a_table():
    config = RoomConfig("corridor", team_limit=3, agent="sentry")
    env = config.make_env()
    sim = Simulation(env, config.make_policy(env))
    moment = sim.change(sim.reset(0), joined=[1])
    cell = int(sim.state(moment).game.cell[1])
    after = sim.step(moment, {1: WEST if cell > 0 else EAST})
    assert int(sim.state(after).game.cell[1]) == (cell - 1 if cell > 0 else 1)
    scene = after.frame["scene"]
    assert (scene["kind"], scene["columns"]) == ("table", ["cell"])
    assert [row and row[0] for row in scene["rows"]] == [
        int(each) if each >= 0 else None for each in sim.state(after).game.cell
    ]


def test_the_experiment_compares_with_ql(tmp_path, capsys):
    options = Options(steps=640, seeds=1)
    spec = registry.experiments["corridor-dueling"]
    for job in Experiment(spec, options, tmp_path).jobs:
        assert (job.config.game, job.config.rules) == ("corridor", "standard")
        files = RunDirectory(job.run.path)
        files.create(job.config)
        level = len(job.config.learner) / 2
        for step, mean in ((0, 0.5), (640, level)):
            for limit in (3, 5):
                row = {"step": step, "team_limit": limit, "teammates": "strangers"}
                row |= {"mode": "greedy", "episodes": 80, "mean_return": mean - (limit == 5)}
                row |= dict.fromkeys(("ci_low", "ci_high"), mean)
                files.evaluation.append(row | {"gates_joined": 0.25})
    arguments = ("--steps", 640, "--seeds", 1, "--directory", tmp_path)
    assert command("reproduce", "corridor-dueling", *arguments, "--draw") == 0
    assert "A dueling network in the corridor (plug-in dropin-corridor), rules standard" in (
        capsys.readouterr().out
    )
    page = (tmp_path / "corridor-dueling" / "corridor-dueling.md").read_text()
    assert "Rules: standard." in page
    assert "| dueling | 3.50 (n = 1) | 2.50 (n = 1) | 640 | 0.25 |" in page
    assert "| ql | 1.00 (n = 1) | 0.00 (n = 1) | 640 | 0.25 |" in page
    assert command("reproduce", "--list") == 0
    assert "corridor-dueling" in capsys.readouterr().out
    assert command("reproduce", "table2", "--games", "corridor", "--learners", "dueling", "ql",
                   "--directory", tmp_path, "--plan") == 0  # fmt: skip
    assert "rules standard" in capsys.readouterr().out


def test_what_the_package_says_of_itself_is_true():
    readme = (PLUGIN / "README.md").read_text()
    names = ("corridor", "sentry", "shadow", "relay", "wanderer", "dueling", "corridor-dueling")
    for name in names:
        assert f"`{name}`" in readme
    source = PLUGIN / "src" / "dropin_corridor"
    assert len((source / "dueling.py").read_text().splitlines()) < 100


# A plug-in that is not there any more, and plug-ins that are broken.


def check_refused(capsys, *says: str) -> None:
    """One line with what is wrong, and nothing else."""
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if not line.startswith("dropin: warning: ")]
    assert len(lines) == 1
    assert all(each in lines[0] for each in says)
    assert out == ""


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        (("games",), "the run needs the game 'corridor', not registered here"),
        (("learners",), "the run needs the learner 'dueling', not registered here"),
        (("learners", "games"), "the run needs the learner 'dueling' and the game 'corridor'"),
    ],
)
def test_a_run_without_its_plug_in_says_what_is_missing(run, missing, says, capsys):
    registries = [getattr(registry, kind) for kind in missing]
    before = [each.snapshot() for each in registries]
    try:
        for each, (items, sources) in zip(registries, before, strict=True):
            left = [name for name in items if name not in ("corridor", "dueling")]
            each.restore(({n: items[n] for n in left}, {n: sources[n] for n in left}))
        for arguments in (("evaluate", run), ("train", "--resume", run)):
            assert command(*arguments) == 2
            check_refused(capsys, str(run), says, "install the plug-in that adds it.")
    finally:
        for each, snapshot in zip(registries, before, strict=True):
            each.restore(snapshot)


def make_distribution(site: Path, name: str, target: str, source: str | None = None) -> None:
    """Write what pip would install for a plug-in: a module, and where its entry point is."""
    about = site / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[dropin.plugins]\n{name} = {target}\n")
    if source is not None:
        (site / f"{name}.py").write_text(source)


GAME = """
from dropin import GameSpec, register_game, register_learner, register_type

def register():
    register_type("lbf", "extra", None)
    {body}
"""
SPEC = "GameSpec(name='hallway', make_game=print, types=print, observer=print)"
BROKEN = {
    "import": ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of"),
    "exit": ("raise SystemExit(3)", "SystemExit: 3"),
    "twice": (
        GAME.format(body=f"register_game({SPEC}); register_game({SPEC})"),
        "The game 'hallway' of the plug-in 'hall' is registered already, by the plug-in 'hall'.",
    ),
    "taken": (
        GAME.format(body="register_game(GameSpec(name='lbf', make_game=1, types=1, observer=1))"),
        "The game 'lbf' of the plug-in 'hall' is registered already, by dropin.games",
    ),
    "taken type": (
        GAME.format(body="register_type('lbf', 'H1', print)"),
        "The type 'H1' of lbf is registered already.",
    ),
    "missing part": (
        GAME.format(body="register_game(GameSpec(name='hallway', make_game=print, types=print))"),
        "The game 'hallway' has no observer.",
    ),
    "no function": ("register = 3", "TypeError: 'int' object is not callable"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_plug_in_is_left_out_with_a_warning(what, tmp_path, monkeypatch, capsys):
    source, says = BROKEN[what]
    make_distribution(tmp_path, "hall", "hall:register", source)
    monkeypatch.syspath_prepend(tmp_path)
    before = [each.snapshot() for each in REGISTRIES]
    registry._broken.cache_clear()
    try:
        with pytest.warns(UserWarning, match="plug-in") as warned:
            assert command("games") == 0
        (message,) = [str(each.message) for each in warned]
        assert message.startswith("The plug-in 'hall' is left out: ")
        assert says in message
        assert "lbf" in capsys.readouterr().out
        assert [each.snapshot() for each in REGISTRIES] == before
        assert list(registry.types_of("lbf")) == ["wanderer"]
        assert command("types", "hallway") == 2
        check_refused(capsys, "Unknown game 'hallway': it can be lbf", "the plug-in 'hall' (hall:")
    finally:
        sys.modules.pop("hall", None)
        registry._broken.cache_clear()


def test_plug_ins_are_found_by_their_entry_points(tmp_path):
    """A working and a broken one, in a process of its own."""
    make_distribution(tmp_path, "corridor", "dropin_corridor:register")
    make_distribution(tmp_path, "hall", "hall:register", BROKEN["import"][0])
    path = os.pathsep.join([str(tmp_path), str(PLUGIN / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "dropin.cli", "reproduce", "corridor-dueling", "--plan"],
        env=os.environ | {"PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    warning, *rest = done.stderr.splitlines()
    assert warning.startswith("dropin: warning: The plug-in 'hall' is left out: ModuleNotFound")
    assert rest == []
    assert "corridor  dueling" in done.stdout


# The package as pip installs it, in an environment that holds nothing else.


TINY = [
    "--set", "log_every=20", "training.num_envs=2", "training.rollout_length=2",
    "evaluation.num_envs=2", "evaluation.episodes=1",
    *(f"settings.{name}=4" for name in tiny.NETWORKS),
]  # fmt: skip
HAS_RAY = find_spec("ray") is not None
VIEWS = """
import gymnasium
import dropin
import dropin.interop.gymnasium
from dropin.interop.pettingzoo import DropinParallelEnv

env = gymnasium.make("dropin/Corridor-v0", team_limit=4)
observation, _ = env.reset(seed=0)
print(observation["agents"].shape, env.step(1)[1])
for parallel in (DropinParallelEnv("corridor"), DropinParallelEnv(dropin.make("corridor"))):
    parallel.reset(seed=0)
    print(parallel.step(dict.fromkeys(parallel.agents, 2))[1])
"""


class Installed:
    """A virtual environment with the wheels of Dropin and of the plug-in."""

    def __init__(self, home: Path):
        self.bin = home / "venv" / "bin"
        self.environ = {n: v for n, v in os.environ.items() if not n.startswith("PYTHON")}
        wheels = home / "wheels"
        pip = [sys.executable, "-m", "pip"]
        for project in (ROOT, PLUGIN):
            self.check([*pip, "wheel", "-qq", "--no-deps", "--wheel-dir", wheels, project])
        self.check([sys.executable, "-m", "venv", home / "venv"])
        (core,), (plugin,) = wheels.glob("dropin_rl-*.whl"), wheels.glob("dropin_corridor-*.whl")
        extras = "plot,envs,cluster" if HAS_RAY else "plot,envs"
        self.check([
            self.bin / "python", "-m", "pip", "install", "-qq", "--constraint",
            ROOT / "constraints.txt", f"{core}[{extras}]", plugin,
        ])  # fmt: skip

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.bin / "dropin"), *map(str, arguments)],
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: object) -> str:
        """Run `dropin`, which has to succeed, and return what it prints."""
        return self.check([self.bin / "dropin", *arguments])

    def check(self, words: list[Any]) -> str:
        done = subprocess.run(
            [str(each) for each in words],
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @property
    def package(self) -> Path:
        (found,) = self.bin.parent.glob("lib/python*/site-packages/dropin")
        return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


@pytest.mark.slow
def test_the_installed_plug_in_works_in_every_command(installed, tmp_path):
    assert "corridor    The corridor" in installed.run("games")
    arguments = ["corridor", "dueling", "--steps", 4000, "--checkpoint-every", 200, "--test-limits",
                 5, "--report", "none", *TINY, "settings.hidden_size=4"]  # fmt: skip
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    installed.run("train", *arguments, "--directory", whole)
    process = installed.start("train", *arguments, "--directory", killed)
    while process.poll() is None and len(list(killed.glob("checkpoints/step-*"))) < 3:
        time.sleep(0.005)
    assert process.poll() is None, process.communicate()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert RunDirectory(killed).steps()[-1] < 4000
    installed.run("train", "--resume", killed, "--report", "none")
    for name in FILES:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name

    row = installed.run("evaluate", whole, "--team-limit", 5, "--episodes", 80).splitlines()[1]
    assert row.split()[1:5] == ["standard", "greedy", "5", "80"]
    gif = tmp_path / "corridor.gif"
    assert "The episode ends after" in installed.run("play", "corridor", "--gif", gif)
    assert gif.read_bytes().startswith(b"GIF")

    seeds = tmp_path / "seeds"
    arguments[arguments.index(4000)], arguments[arguments.index(200)] = 120, 40
    installed.run("train", *arguments, "--seeds", "0,1", "--directory", seeds)
    agents = [(seeds / name / "agent.safetensors").read_bytes() for name in ("seed-0", "seed-1")]
    assert agents[0] != agents[1]

    viewed = installed.check([installed.bin / "python", "-c", VIEWS]).splitlines()
    assert viewed[0].startswith("(4, 1) ")
    assert viewed[1] == viewed[2]


@pytest.mark.slow
def test_the_wheel_has_everything_and_trained_agents_play_at_once(installed):
    source = ROOT / "src" / "dropin"
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            shipped = installed.package / path.relative_to(source)
            assert shipped.read_bytes() == path.read_bytes()
    assert len(list(installed.package.glob("zoo/agents/*/*/agent.safetensors"))) > 1
    played = installed.run("play", "lbf", "--agent", "lbf/gpl-q")
    assert "The episode ends after" in played


def reproduce(installed: Installed, directory: Path, *arguments: object) -> list[bytes]:
    """Run the experiment; return the evaluations of its runs."""
    installed.run(
        "reproduce", "corridor-dueling", "--steps", 120, "--seeds", 1, "--report", "none",
        "--directory", directory, *TINY, *arguments,
    )  # fmt: skip
    page = (directory / "corridor-dueling" / "corridor-dueling.md").read_text()
    assert "| dueling |" in page
    assert "| ql |" in page
    assert "Incomplete" not in page
    return [each.read_bytes() for each in sorted(directory.glob("runs/*/evaluation.csv"))]


@pytest.mark.slow
def test_the_installed_experiment_runs_here_and_on_ray(installed, tmp_path):
    here = reproduce(installed, tmp_path / "here")
    assert len(here) == 2
    if not HAS_RAY:
        pytest.skip("ray is not installed: reproduced on this machine, not on a cluster")
    assert reproduce(installed, tmp_path / "ray", "--on", "ray") == here
