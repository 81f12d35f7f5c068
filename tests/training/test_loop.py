import csv
import json
import os
import shutil
import signal
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

from dropin.agents import load_agent
from dropin.core.errors import InputError, StoppedError
from dropin.core.files import read_arrays, write_arrays
from dropin.env import make
from dropin.training import run_directory
from dropin.training.chunk import RunState
from dropin.training.config import run_config
from dropin.training.evaluator import evaluation_envs
from dropin.training.loop import resume_run, train
from dropin.training.reporters import Reporter
from dropin.training.run_directory import RunDirectory, run_env


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "whole"
    tiny.run(directory)
    return directory


@pytest.fixture
def copy(finished, tmp_path):
    """A copy of the finished run that may be damaged."""
    return shutil.copytree(finished, tmp_path / "copy")


def cut_back(directory, step):
    """As if the run had been killed some time after the checkpoint of this step."""
    files = RunDirectory(directory)
    for later in files.steps():
        if later > step:
            files.checkpoint(later).unlink()


def contents(directory):
    """The files that a user sees."""
    return {
        path.relative_to(directory): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def same(one, two):
    """Whether two runs ended with the same bits."""
    for name in ("metrics.csv", "evaluation.csv", "agent.safetensors"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
    last = RunDirectory(one).steps()[-1]
    first, second = (RunDirectory(each).checkpoint(last).read_bytes() for each in (one, two))
    assert first == second


def test_a_run_leaves_its_files(finished):
    kept = json.loads((finished / "run.json").read_text())
    assert kept["config"]["game"] == "lbf"
    assert kept["config"]["settings"]["rank"] == 2
    assert kept["config"]["training"]["num_envs"] == 2
    assert kept["format"] == 2
    assert "jaxlib" in kept["versions"]
    with (finished / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == [20, 40, 60, 80, 100, 120]
    assert list(rows[0]) == [
        "step", "episodes", "return", "team_size", "value_loss", "epsilon", "prediction_accuracy",
        "prediction_loss", "temperature",
    ]  # fmt: skip
    check_metrics(rows)
    with (finished / "evaluation.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(int(row["step"]), int(row["team_limit"])) for row in rows] == [
        (step, limit) for step in (0, 40, 80, 120) for limit in (3, 4)
    ]
    assert RunDirectory(finished).steps() == [40, 80, 120]
    assert not list(finished.glob("**/*.tmp"))


def check_metrics(rows):
    """Every number of a row follows from the run: epsilon from the schedule, others from bounds."""
    for row in rows:
        assert float(row["epsilon"]) == 1.0  # It falls after 3200 steps.
        assert 0 < float(row["value_loss"]) < 100
        assert 0.5 < float(row["prediction_loss"]) < 3  # About log(6), with fresh networks.
        assert 2 <= float(row["team_size"]) <= 3
        assert (row["return"] == "") == (row["episodes"] == "0")
    assert len({row["value_loss"] for row in rows}) == len(rows)


def test_the_agent_is_that_of_the_last_checkpoint(finished):
    agent = load_agent(finished)
    again = load_agent(RunDirectory(finished).checkpoint(120))
    assert eqx.tree_equal(agent, again)
    assert not eqx.tree_equal(agent, load_agent(RunDirectory(finished).checkpoint(80)))
    assert read_arrays(finished / "agent.safetensors")[1]["step"] == 120


def test_the_same_seed_gives_the_same_files(finished, tmp_path):
    tiny.run(tmp_path / "again")
    same(finished, tmp_path / "again")
    tiny.run(tmp_path / "other", seed=1)
    with pytest.raises(AssertionError):
        same(finished, tmp_path / "other")


def test_a_killed_run_goes_on_to_the_same_bits(finished, copy):
    cut_back(copy, 40)
    with (copy / "metrics.csv").open("a") as file:
        file.write("140,3,0.")  # A row that was not written to its end.
    resume_run(copy, report="none")
    same(finished, copy)


def test_a_run_killed_before_its_first_checkpoint_starts_anew(finished, copy):
    shutil.rmtree(copy / "checkpoints")
    RunDirectory(copy).truncate_tables(0)
    resume_run(copy, report="none")
    same(finished, copy)


def test_results_without_checkpoints_are_not_thrown_away(copy):
    shutil.rmtree(copy / "checkpoints")
    before = contents(copy)
    with pytest.raises(InputError, match=r"results up to step 120 but no checkpoint: put .*points"):
        resume_run(copy, report="none")
    assert contents(copy) == before


class CtrlC(Reporter):
    """Presses Ctrl-C at a step."""

    def __init__(self, step):
        self.step, self.said = step, []

    def metrics(self, row):
        if row["step"] == self.step:
            os.kill(os.getpid(), signal.SIGINT)

    def say(self, sentence):
        self.said.append(sentence)


def test_ctrl_c_saves_and_says_how_to_go_on(finished, tmp_path):
    reporter = CtrlC(60)
    with pytest.raises(KeyboardInterrupt):
        tiny.run(tmp_path / "run", report=reporter)
    assert reporter.said[0].startswith("Compiling")
    assert reporter.said[1:] == [
        f"Saved at step 60. Continue with: dropin train --resume {tmp_path / 'run'}"
    ]
    assert RunDirectory(tmp_path / "run").steps() == [0, 40, 60]
    resume_run(tmp_path / "run", report="none")
    same(finished, tmp_path / "run")


@pytest.mark.parametrize("damage", ["truncated", "flipped", "random", "empty"])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(finished, copy, damage):
    path = RunDirectory(copy).checkpoint(120)
    data = path.read_bytes()
    half = len(data) // 2
    path.write_bytes(
        {
            "truncated": data[:half],
            "flipped": data[:half] + bytes([data[half] ^ 16]) + data[half + 1 :],
            "random": np.random.default_rng(0).bytes(1_000_000),
            "empty": b"",
        }[damage]
    )
    with pytest.warns(UserWarning, match=r"damaged.* The checkpoint before it is used"):
        resume_run(copy, report="none")
    same(finished, copy)


def test_a_run_without_a_good_checkpoint_is_refused(copy):
    for step in RunDirectory(copy).steps():
        RunDirectory(copy).checkpoint(step).write_bytes(b"nothing")
    with (
        pytest.warns(UserWarning, match="damaged"),
        pytest.raises(InputError, match="no checkpoint that can be"),
    ):
        resume_run(copy, report="none")


def test_a_damaged_agent_is_written_again(finished, copy):
    (copy / "agent.safetensors").write_bytes(b"nothing")
    resume_run(copy, report="none")
    same(finished, copy)


def test_an_environment_of_ones_own_has_to_be_given_again(tmp_path):
    env = make("lbf", rules="reference", slots=4, types=["H6"])
    given: dict[str, Any] = {name: each for name, each in tiny.RUN.items() if name != "types"}
    given["steps"] = 40
    train(env, "gpl-q", directory=tmp_path / "run", **given)
    assert RunDirectory(tmp_path / "run").config().rules == "custom"
    with pytest.raises(InputError, match="environment object: give it again"):
        resume_run(tmp_path / "run")
    assert resume_run(tmp_path / "run", env=env, report="none").learner == "gpl-q"


def test_a_finished_run_stays_as_it_is(finished, copy):
    resume_run(copy, report="none")
    same(finished, copy)


def test_a_loss_that_is_not_a_number_stops_the_run_and_keeps_the_last_good_state(copy):
    cut_back(copy, 80)
    path = RunDirectory(copy).checkpoint(80)
    arrays, about = read_arrays(path)
    arrays["train_state.network.value.graph.individual.layers[0].bias"][0] = np.nan
    write_arrays(path, arrays, about)
    with pytest.raises(
        StoppedError, match=r"not a finite number at step 80.*checkpoint of step 80"
    ):
        resume_run(copy, report="none")
    assert RunDirectory(copy).steps() == [40, 80]


def test_a_full_disk_stops_the_run_and_nothing_is_lost(finished, copy, monkeypatch):
    cut_back(copy, 40)

    def full(path, data):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr("dropin.core.files.write", full)
        with pytest.raises(StoppedError, match=r"No space left on device\. Continue with: dropin"):
            resume_run(copy, report="none")
    assert RunDirectory(copy).steps() == [40]
    resume_run(copy, report="none")
    same(finished, copy)


def test_what_exists_is_not_overwritten(finished, tmp_path):
    with pytest.raises(InputError, match=r"exists already.*--resume"):
        tiny.run(finished)
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(InputError, match="exists already: give another directory"):
        tiny.run(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["note.txt"]


def test_a_run_resumes_with_its_own_settings_only(finished):
    with pytest.raises(InputError, match=r"other settings \(settings.rank: 2, not 3; steps: 120"):
        tiny.run(finished, resume=True, rank=3, steps=200)
    agent = tiny.run(finished, resume=True)
    assert eqx.tree_equal(agent, load_agent(finished))


def test_two_processes_cannot_train_in_one_directory(copy):
    with RunDirectory(copy).locked(), pytest.raises(InputError, match="Another process"):
        resume_run(copy, report="none")


def test_other_versions_are_mentioned(copy):
    kept = json.loads((copy / "run.json").read_text())
    kept["versions"]["jax"] = "0.1"
    (copy / "run.json").write_text(json.dumps(kept))
    with pytest.warns(UserWarning, match=r"other versions or flags \(jax: 0.1, not"):
        resume_run(copy, report="none")


def test_a_run_of_another_version_of_its_game_cannot_go_on(copy):
    stored = json.loads((copy / "run.json").read_text())
    assert stored["config"]["game_version"] == 0
    stored["config"]["game_version"] = 7
    (copy / "run.json").write_text(json.dumps(stored))
    with pytest.raises(InputError, match="in version 7 of lbf, and this is version 0"):
        resume_run(copy, report="none")
    with pytest.warns(UserWarning, match="in version 7 of lbf, and this is version 0"):
        run_env(copy)


def test_as_many_checkpoints_are_kept_as_asked(tmp_path):
    tiny.run(tmp_path / "one", keep=1)
    assert RunDirectory(tmp_path / "one").steps() == [120]
    tiny.run(tmp_path / "all", keep="all")
    assert RunDirectory(tmp_path / "all").steps() == [0, 40, 80, 120]
    reporter = CtrlC(60)
    with pytest.raises(KeyboardInterrupt):
        tiny.run(tmp_path / "agents", keep="agents", report=reporter)
    resume_run(tmp_path / "agents", report="none")
    # Those that were evaluated, and not the one of Ctrl-C.
    names = sorted(each.stem[-3:] for each in RunDirectory(tmp_path / "agents").agents.iterdir())
    assert names == ["000", "040", "080", "120"]
    # It stays so when the run is resumed, if nothing else is said.
    cases: Any = (("all", {}, [0, 40, 80, 120]), ("all", {"keep": 2}, [80, 120]))
    for run, say, kept in cases:
        files = RunDirectory(tmp_path / run)
        files.checkpoint(120).unlink()
        resume_run(files.path, report="none", **say)
        assert files.steps() == kept


def test_an_agent_that_lasts_is_there_before_its_checkpoint(copy, monkeypatch):
    """So a kill in between loses none: the run goes on from before, and writes both."""
    files, agent, paths = RunDirectory(copy), load_agent(copy), []
    monkeypatch.setattr(
        run_directory, "save_agent", lambda agent, path, **about: paths.append(path)
    )
    monkeypatch.setattr(run_directory, "write_arrays", lambda path, *rest: paths.append(path))
    files.save(RunState((), jnp.int32(0)), agent, 160, "agents", evaluated=True)
    checkpoint = files.checkpoint(160)
    assert paths == [files.agents / checkpoint.name, checkpoint, files.agent]


def test_limits_above_the_papers_leave_the_others_as_they_are():
    """In this game the number of agents that wait depends on the slots."""
    config = run_config("lbf", "gpl-q", rules="reference")
    few: Any
    many: Any
    few, many = (evaluation_envs(config, limits) for limits in ((3, 5), (3, 5, 9)))
    for limit in (3, 5):
        assert few[limit].slots == many[limit].slots == 5
        assert few[limit].team.openness.population == many[limit].team.openness.population
    assert many[9].slots == 9


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"learner": "gpl"}, "Unknown learner 'gpl': it can be gpl-q, gpl-spi"),
        ({"steps": -5}, "steps -5 is too small"),
        ({"seed": -1}, "seed -1 is too small"),
        ({"rnk": 3}, "Unknown setting of gpl-q 'rnk'.*did you mean 'rank'"),
        ({"policy": "spi"}, "policy of gpl-q is 'q': it cannot be changed"),
        ({"rules": "ppaer"}, "Unknown rules 'ppaer'"),
        ({"team_limit": 1}, "Team limit 1 is too small"),
        ({"types": ["H77"]}, "Unknown type 'H77'"),
        ({"keep": 0}, "Keep 0 is too small"),
        ({"game_settings": {"team_limit": 4}}, "team limit is no setting of the game"),
        ({"game_settings": {"sise": 9}}, "Unknown setting of LBF 'sise'"),
        ({"game_settings": {"object_levels": 3}}, "There is no LBF with object_levels=3"),
    ],
)
def test_wrong_input_is_refused_and_leaves_nothing(tmp_path, changes, says):
    with pytest.raises(InputError, match=says):
        tiny.run(tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()
