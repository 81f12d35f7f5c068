"""Training in a game with two sides."""

import shutil

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

from dropin.adhoc import make
from dropin.errors import StoppedError
from dropin.evaluation.evaluate import run_episodes
from dropin.players import player
from dropin.training.config import RunConfig, default_values, run_config
from dropin.training.directory import RunDirectory
from dropin.training.loop import Run, resume_run, train
from dropin.training.reporters import Board, Lines, Reporter, evaluation_text
from dropin.training.table import read_table

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
    assert config.training.epsilon.steps == config.training.temperature.steps == 8_000_000
    sizes = config.settings
    assert (sizes.rank, sizes.type_units, sizes.type_memory, sizes.type_size) == (6, 64, 128, 128)
    assert (sizes.graph_units, sizes.message_units, sizes.embedding) == (128, 40, 70)
    assert sizes.readout_units == 128
    assert run_config("fortattack", "gpl-spi", rank=2, steps=5).settings.rank == 2
    other = run_config("wolfpack", "gpl-q")
    assert (other.steps, other.settings.rank) == (6_400_000, 5)
    assert other.training.learning_rate == 2.5e-4
    assert RunConfig.from_dict(default_values("fortattack", "gpl-q")) == config


def test_a_run_tells_how_well_the_learner_shoots(finished, capsys):
    for name in ("metrics", "evaluation"):
        rows = read_table(finished / f"{name}.csv")
        told = [float(row["shooting_accuracy"]) for row in rows if row["shooting_accuracy"]]
        # Those who explore shoot now and then; a greedy learner may never.
        assert told or name == "evaluation"
        assert all(0 <= each <= 1 for each in told)
    row = {**rows[-1], "shooting_accuracy": 0.25}
    numbers = {name: float(row[name]) for name in ("mean", "low", "high")}
    text = evaluation_text({**row, **numbers, "step": 120, "unshaped": ""})
    assert text.endswith("shooting accuracy 0.25")


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
    run = Run(files, files.config(), None, None)
    run.restore()
    run.state = eqx.tree_at(
        lambda state: (state.env.game.heading, state.updates),
        run.state,
        (run.state.env.game.heading.at[1, 4].set(jnp.nan), jnp.int32(0)),
    )
    with pytest.raises(StoppedError, match="in slot 4 was not a number at step 0"):
        run.go(Reporter(), lambda: False)


def test_an_evaluation_names_the_slot_too():
    env = make("fortattack", types=["G2", "A1"])
    broken = eqx.tree_at(lambda env: env.game.thrust, env, jnp.float32(np.nan))
    with pytest.raises(StoppedError, match=r"slot \d was not a number after step \d+"):
        run_episodes(broken, player(broken, "G2"), envs=2, episodes=1)


def test_sides_that_differ_are_kept_in_the_settings():
    config = run_config("fortattack", "gpl-q", team_limit=2, changes={"attackers": 1})
    assert config.environment().sides == (0, 0, 1)
    assert RunConfig.from_dict(config.as_dict()) == config


def test_screens_show_what_a_game_adds(capsys):
    row = {
        "step": 10, "episodes": 1, "return": 1.0, "unshaped": "", "value_loss": 0.1,
        "prediction_loss": 0.2, "accuracy": 0.3, "team_size": 5.5, "epsilon": 1.0,
        "temperature": 1.0, "shooting_accuracy": 0.42,
    }  # fmt: skip
    lines = Lines()
    lines.begin("a run", 0, 10)
    lines.metrics(row)
    assert "team 5.50, shooting accuracy 0.42" in capsys.readouterr().out
    board = Board()
    board.begin("a run", 0, 10)
    board.metrics(row)
    board.console.print(board._draw())
    out = capsys.readouterr().out
    assert "shoot" in out
    assert "0.42" in out
