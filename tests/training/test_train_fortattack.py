"""Training in a game with two sides."""

import shutil
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

from dropin.core.errors import StoppedError
from dropin.core.metrics import accumulate
from dropin.env import make
from dropin.evaluation.evaluate import run_episodes
from dropin.learners.common import EpisodeReturns, episode_metrics
from dropin.policies import make_policy
from dropin.training.config import RunConfig, run_config
from dropin.training.loop import resume_run, train
from dropin.training.reporters import Board, Lines, Reporter, evaluation_text
from dropin.training.run_directory import RunDirectory
from dropin.training.runs import Runs
from dropin.training.tables import read_table

SETTINGS = {**tiny.RUN, "types": ["G2", "A1"]}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("fort") / "run"
    train("fortattack", "gpl-q", directory=path, **SETTINGS)
    return path


def test_the_settings_are_the_papers_for_the_game():
    config = run_config("fortattack", "gpl-q")
    assert config.steps == 16_000_000
    assert config.training.learning_rate == 1e-4
    assert config.training.epsilon.num_steps == config.training.temperature.num_steps == 8_000_000
    sizes = config.settings
    assert (sizes.rank, sizes.type_hidden_size, sizes.type_lstm_size, sizes.type_vector_size) == (
        6,
        64,
        128,
        128,
    )
    assert (sizes.utility_hidden_size, sizes.message_hidden_size, sizes.embedding_size) == (
        128,
        40,
        70,
    )
    assert sizes.readout_hidden_size == 128
    assert run_config("fortattack", "gpl-spi", rank=2, steps=5).settings.rank == 2
    other = run_config("wolfpack", "gpl-q")
    assert (other.steps, other.settings.rank) == (6_400_000, 5)
    assert other.training.learning_rate == 2.5e-4
    assert RunConfig.from_dict(config.to_dict()) == config


def test_shooting_accuracy_is_a_column_and_counts_the_learners_own_shots(finished):
    """Learners that explore shoot in one of eight steps, so every row of metrics has a share."""
    rows = read_table(finished / "metrics.csv")
    shares = [float(row["shooting_accuracy"]) for row in rows if row["shooting_accuracy"]]
    assert len(shares) >= len(rows) - 1
    assert all(0 <= each <= 1 for each in shares)
    assert "shooting_accuracy" in read_table(finished / "evaluation.csv")[0]


def test_the_metrics_of_a_rollout_are_those_of_a_plain_count():
    env = make("fortattack", types=["G2", "A1"])

    @eqx.filter_jit
    def play(key):
        first, key = jax.random.split(key)
        states, _ = jax.vmap(env.reset)(jax.random.split(first, 6))

        def step(states, key):
            acting, key = jax.random.split(key)
            # Guards that hold still and shoot hit somebody sooner or later.
            actions = jnp.where(jax.random.uniform(acting, (6,)) < 0.7, 7, 0)
            return jax.vmap(env.step)(jax.random.split(key, 6), states, actions)

        return jax.lax.scan(step, states, jax.random.split(key, 150))[1]

    steps = play(jax.random.key(0))
    running, metrics = EpisodeReturns.zeros(6), None
    measure = eqx.filter_jit(partial(episode_metrics, env))
    for start in range(0, 150, 10):  # In pieces, as the updates of a run.
        piece = jax.tree.map(lambda leaf, start=start: leaf[start : start + 10], steps)
        running, new = measure(running, piece)
        metrics = new if metrics is None else accumulate(metrics, new)
    assert metrics is not None
    steps, metrics = jax.tree.map(np.asarray, (steps, metrics))
    hits = steps.events.hits[:, :, 0].any(axis=-1).sum()
    shots = steps.events.fired[:, :, 0].sum()
    assert 0 < hits < shots
    assert metrics["shooting_accuracy"].value == pytest.approx(hits / shots)
    returns, running = [], np.zeros(6)
    for reward, done in zip(steps.rewards[:, :, 0], steps.done, strict=True):
        running += reward
        returns += running[done].tolist()
        running[done] = 0
    assert metrics["episodes"].value == len(returns) > 5
    assert metrics["return"].value == pytest.approx(np.mean(returns), rel=1e-5)
    assert metrics["team_size"].value == pytest.approx(steps.acted.sum(axis=-1).mean(), rel=1e-6)


def test_an_evaluation_reports_the_accuracy_of_all_its_episodes():
    """A guard that never shoots has no share; one that shoots all the time has that of a count."""
    env = make("fortattack", types=["G2", "A1"])
    played = run_episodes(env, make_policy(env, "G2"), num_envs=4, episodes=2)
    accuracy = played.metrics["shooting_accuracy"]
    assert accuracy is not None
    assert 0 < accuracy < 1
    text = evaluation_text(
        {
            "step": 120, "team_limit": 3, "teammates": "strangers", "mode": "greedy",
            "episodes": 8, "mean_return": 1.0, "ci_low": 0.5, "ci_high": 1.5,
            "legacy_mean_return": None, "unshaped_mean_return": None, "shooting_accuracy": 0.25,
        }
    )  # fmt: skip
    assert text == (
        "step 120, greedy, team limit 3: return 1.00 (0.50 to 1.50), shooting accuracy 0.25"
    )


def test_a_killed_run_goes_on(finished, tmp_path):
    class Killer(Reporter):
        def metrics(self, row):
            if row["step"] >= 80:
                raise SystemError

    with pytest.raises(SystemError):
        train("fortattack", "gpl-q", directory=tmp_path / "run", **{**SETTINGS, "report": Killer()})
    resume_run(tmp_path / "run", report="none")
    for name in ("metrics.csv", "evaluation.csv", "agent.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (finished / name).read_bytes()


def test_a_place_that_is_not_finite_stops_the_run_with_its_slot_and_step(finished, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished, path)
    files = RunDirectory(path)
    run = Runs([files], [files.config()])
    run.open(Reporter())
    run.state = eqx.tree_at(
        lambda state: (state.train_state.env.game.heading, state.updates),
        run.state,
        (run.state.train_state.env.game.heading.at[1, 4].set(jnp.nan), jnp.int32(0)),
    )
    with pytest.raises(StoppedError, match="in slot 4 was not a finite number at step 0"):
        run.train(lambda: False)


def test_an_evaluation_names_the_slot_too():
    env = make("fortattack", types=["G2", "A1"])
    broken = eqx.tree_at(lambda env: env.game.thrust, env, jnp.float32(np.nan))
    with pytest.raises(StoppedError, match=r"slot \d was not a finite number after step \d+"):
        run_episodes(broken, make_policy(broken, "G2"), num_envs=2, episodes=1)


def test_sides_that_differ_are_kept_in_the_settings():
    config = run_config("fortattack", "gpl-q", team_limit=2, game_settings={"num_attackers": 1})
    assert config.make_env().sides == (0, 0, 1)
    assert RunConfig.from_dict(config.to_dict()) == config


def test_screens_show_what_a_game_adds(capsys):
    row = {
        "step": 10, "episodes": 1, "return": 1.0, "value_loss": 0.1, "prediction_loss": 0.2,
        "prediction_accuracy": 0.3, "team_size": 5.5, "epsilon": 1.0, "temperature": 1.0,
        "shooting_accuracy": 0.42,
    }  # fmt: skip
    lines = Lines()
    lines.begin("a run", 0, 10)
    lines.metrics(row)
    assert "shooting accuracy 0.42, team size 5.50" in capsys.readouterr().out
    board = Board()
    board.begin("a run", 0, 10)
    board.metrics(row)
    board.console.print(board._draw())
    out = capsys.readouterr().out
    assert "shoot" in out
    assert "0.42" in out
