"""train, evaluate, plot and play with an agent, one after another on the same runs."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import tiny
from test_cli import check_refused, run

from dropin.experiments.planning import find_runs
from dropin.training.parallel import cores
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import read_table


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two seeds of one learner, each trained by a process of its own."""
    directory = tmp_path_factory.mktemp("cli") / "runs"
    from dropin.cli import main

    main(
        ["train", "lbf", "gpl-q", "--seeds", "0,1", "--directory", str(directory), *tiny.ARGUMENTS]
    )
    return directory


def test_several_seeds_give_several_runs(runs):
    assert sorted(each.name for each in runs.iterdir()) == ["seed-0", "seed-1"]
    kept = json.loads((runs / "seed-1" / "run.json").read_text())["config"]
    assert (kept["seed"], kept["steps"], kept["settings"]["rank"]) == (1, 120, 2)
    agents = [(runs / seed / "agent.safetensors").read_bytes() for seed in ("seed-0", "seed-1")]
    assert agents[0] != agents[1]


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """The same two seeds, trained as one program."""
    directory = tmp_path_factory.mktemp("cli") / "together"
    from dropin.cli import main

    main(
        ["train", "lbf", "gpl-q", "--seeds", "0,1", "--together", "--directory", str(directory),
         "--tensorboard", "--report", "lines", *tiny.ARGUMENTS]
    )  # fmt: skip
    return directory


def test_seeds_that_train_together_leave_the_same_runs(runs, together, tmp_path, capsys):
    for seed in ("seed-0", "seed-1"):
        one, two = (read_table(each / seed / "metrics.csv") for each in (runs, together))
        for row, other in zip(one, two, strict=True):
            assert float(row["value_loss"]) == pytest.approx(float(other["value_loss"]), rel=1e-4)
            assert (row["step"], row["return"]) == (other["step"], other["return"])
        assert list((together / seed / "tensorboard").glob("events*"))
    assert set(find_runs([runs])) == set(find_runs([together]))  # For `dropin reproduce`.
    code, out, _ = run("plot", str(together), "--out", str(tmp_path / "a.png"), capsys=capsys)
    assert (code, "2 seeds" in out) == (0, True)
    code, out, _ = run("evaluate", str(together), "--episodes", "80", capsys=capsys)
    assert (code, "all 2 runs" in out) == (0, True)


@pytest.mark.parametrize("where", ["", "seed-1"])
def test_resume_of_runs_that_were_trained_together(together, where, capsys):
    arguments = ["train", "--resume", str(together / where), "--together", "--report", "lines"]
    code, out, _ = run(*arguments, capsys=capsys)
    named = ["seed-0: gpl-q in lbf, seed 0", "seed-1: gpl-q in lbf, seed 1"]
    alone = ["gpl-q in lbf, seed 1, from step 120 to 120"]
    done = f"Done. Draw the learning curve with: dropin plot {together / where}"
    assert (code, out.splitlines()) == (0, [*(alone if where else named), done])


def test_a_run_of_the_library_that_is_not_pinned_is_the_same(runs, tmp_path):
    tiny.run(tmp_path / "run")
    for name in ("metrics.csv", "evaluation.csv", "agent.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (runs / "seed-0" / name).read_bytes()


def test_evaluate_prints_each_run_and_all(runs, capsys):
    code, out, _ = run("evaluate", str(runs), "--episodes", "80", capsys=capsys)
    assert code == 0
    assert "all 2 runs" in out
    assert out.count("greedy") == 3
    code, wider, _ = run(
        "evaluate", str(runs / "seed-0"), "--team-limit", "4", "--estimator", "legacy",
        "--episodes", "80", capsys=capsys,
    )  # fmt: skip
    assert code == 0
    assert " 4 " in wider


def test_among_partners(runs, capsys):
    code, out, _ = run(
        "evaluate", str(runs / "seed-0"), "--partners", "--episodes", "1", capsys=capsys
    )
    assert (code, "80" in out) == (0, True)


def test_plot_draws_the_curves_and_the_authors(runs, tmp_path, capsys):
    picture = tmp_path / "out" / "curve.png"
    arguments = ("plot", str(runs), "--out", str(picture), "--published")
    code, out, _ = run(*arguments, capsys=capsys)
    assert code == 0
    assert "2 seeds" in out
    assert "gpl-q, published" in out
    assert "3.83 ± " in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, _, err = run(*arguments, capsys=capsys)
    assert (code, "exists already" in err) == (2, True)
    code, _, err = run(*arguments[:2], "--out", str(tmp_path / "b.png"), "--team-limit", "9",
                       capsys=capsys)  # fmt: skip
    assert (code, "no evaluation at team limit 9: it has 3, 4" in err) == (2, True)


def test_plot_names_the_directories_of_curves_that_are_called_the_same(runs, tmp_path, capsys):
    shutil.copytree(runs / "seed-0", tmp_path / "copy")
    directories = [str(runs / "seed-0"), str(tmp_path / "copy"), str(runs / "seed-1")]
    _, out, _ = run("plot", *directories, "--out", str(tmp_path / "a.png"), capsys=capsys)
    assert "(seed 0) in seed-0 " in out
    assert "(seed 0) in copy " in out
    assert "(seed 1) in" not in out


def test_play_with_an_agent(runs, capsys):
    code, out, _ = run("play", "lbf", "--agent", str(runs / "seed-0"), capsys=capsys)
    assert code == 0
    assert "The episode ends after" in out


def test_an_agent_of_the_package_plays_without_training(capsys):
    code, out, _ = run("play", "lbf", "--agent", "lbf/gpl-q", "--seed", "1", capsys=capsys)
    assert (code, "The episode ends after" in out) == (0, True)
    code, out, _ = run("evaluate", "lbf/gpl-q", "--episodes", "1", capsys=capsys)
    assert code == 0
    assert out.splitlines()[1].split()[:5] == ["lbf/gpl-q", "reference", "greedy", "3", "80"]
    check_refused(["play", "lbf", "--agent", "lbf/gplq"], "did you mean 'lbf/gpl-q'", capsys)
    check_refused(["evaluate", "lbf/gplq"], "did you mean 'lbf/gpl-q'", capsys)
    check_refused(["play", "wolfpack", "--agent", "lbf/gpl-q"], "cannot play 'wolfpack'", capsys)


def test_a_run_is_played_in_its_own_game(runs, tmp_path, capsys):
    """Three agents at most, without openness's ups and downs: the run says so, not the command."""
    other = tmp_path / "other"
    shutil.copytree(runs / "seed-0", other)
    kept = json.loads((other / "run.json").read_text())
    kept["config"] |= {"rules": "reference", "game_settings": {"horizon": 2}}
    (other / "run.json").write_text(json.dumps(kept))
    code, out, _ = run("play", "lbf", "--agent", str(other), capsys=capsys)
    assert (code, "ends after 2 steps" in out) == (0, True)
    code, out, _ = run("evaluate", str(other), "--episodes", "1", capsys=capsys)
    assert (code, "reference" in out) == (0, True)
    code, _, err = run("play", "wolfpack", "--agent", str(other), capsys=capsys)
    assert (code, "was trained in 'lbf' and cannot play 'wolfpack'" in err) == (2, True)
    # Two runs that differ in more than their seeds have no mean.
    shutil.copytree(runs / "seed-1", tmp_path / "seed-1")
    for command in (["evaluate"], ["plot", "--out", str(tmp_path / "curve.png")]):
        code, _, err = run(command[0], str(tmp_path), *command[1:], capsys=capsys)
        assert (code, "differ in more than their seeds (game_settings.horizon" in err) == (2, True)


def test_a_plot_of_what_was_not_told_is_refused(runs, tmp_path, capsys):
    where = ("--out", str(tmp_path / "curve.png"))
    code, _, err = run("plot", str(runs), "--estimator", "legacy", *where, capsys=capsys)
    assert (code, "legacy_mean_return" in err) == (2, True)


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    place = str(tmp_path / "file" / "run")
    code, _, err = run("train", "lbf", "gpl-q", "--directory", place, capsys=capsys)
    way_on = "Mend this and give the command again."
    assert (code, err) == (
        1,
        f"dropin: {place} cannot be read or written: Not a directory. {way_on}\n",
    )


def test_nobody_reads_to_the_end():
    command = f"{sys.executable} -m dropin.cli evaluate --help | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert (done.stdout[:5], done.stderr) == ("usage", "")


def test_resume_of_a_finished_run_and_of_another_config(runs, capsys):
    code, out, _ = run("train", "--resume", str(runs / "seed-0"), "--report", "none", capsys=capsys)
    assert (code, "Done." in out) == (0, True)
    code, _, err = run("train", "--resume", str(runs), "--steps", "500", capsys=capsys)
    assert code == 2
    assert "other settings (steps: 120, not 500)" in err


@pytest.mark.slow
@pytest.mark.parametrize("together", [[], ["--together"]], ids=["apart", "together"])
def test_ctrl_c_makes_all_runs_save(runs, tmp_path, together):
    """As a terminal does: the signal goes to the whole group of the command."""
    # In the background of a shell it is ignored, and would be by what is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    long = [*tiny.ARGUMENTS, "steps=100000000", "checkpoint_every=100000000"]
    seeds = range(2 if together else min(2, len(cores())))
    command = [
        sys.executable, "-m", "dropin.cli", "train", "lbf", "gpl-q",
        "--seeds", ",".join(map(str, seeds)), *together,
    ]  # fmt: skip
    process = subprocess.Popen(
        [*command, "--directory", tmp_path / "runs", *long],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    tables = [tmp_path / "runs" / f"seed-{seed}" / "metrics.csv" for seed in seeds]
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        if all(each.exists() and each.read_text().count("\n") > 2 for each in tables):
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    try:
        out, _ = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.terminate()
        raise
    assert process.returncode == 130
    where = " ".join([str(tmp_path / "runs"), *together])
    assert f"Continue with: dropin train --resume {where}\n" in out
    for table in tables:
        last = int(table.read_text().splitlines()[-1].split(",")[0])
        assert RunDirectory(table.parent).steps()[-1] == last > 0


def test_tensorboard_gets_the_numbers(tmp_path, capsys):
    directory = tmp_path / "run"
    code, _, err = run(
        "train", "lbf", "gpl-q", "--directory", str(directory), "--tensorboard",
        "--report", "lines", *tiny.ARGUMENTS, capsys=capsys,
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert list((directory / "tensorboard").glob("events*"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train"], "Give a game and a learner"),
        (["train", "lbf", "gpl"], "did you mean 'gpl-q'"),
        (["train", "chess", "gpl-q"], "Unknown game 'chess'"),
        (["train", "lbf", "gpl-q", "--steps", "-4"], "steps -4 is too small"),
        (["train", "lbf", "gpl-q", "--seed", "1", "--seeds", "0..3"], "not both"),
        (["train", "lbf", "gpl-q", "--seeds", "3..1"], "--seeds 3..1 is not a range"),
        (["train", "lbf", "gpl-q", "--seeds", "a"], "--seeds a is not a range"),
        (["train", "lbf", "gpl-q", "--together"], "--together trains several seeds in one"),
        (["train", "lbf", "gpl-q", "--together", "--seed", "1"], "give them, as in --seeds 0..7"),
        (["train", "--resume", "nowhere", "--together"], "There is no run in nowhere"),
        (["train", "lbf", "gpl-q", "--keep", "none"], "--keep none"),
        (["train", "lbf", "gpl-q", "--set", "rank"], "not a setting: write name=value"),
        (["train", "lbf", "gpl-q", "--set", "settings.rnk=3"], "did you mean 'rank'"),
        (["train", "lbf", "gpl-q", "--core", "999"], "There is no core 999"),
        (["train", "lbf", "gpl-q", "--types", "H99"], "Unknown type 'H99'"),
        (["train", "lbf", "gpl-q", "--team-limit", "90"], "too small for 3 objects and 90 agents"),
        (["train", "--resume", "nowhere"], "There is no run in nowhere"),
        (["train", "--resume", "a", "--seeds", "0..1"], "no --directory or --seeds"),
        (["evaluate", "nowhere/run"], "no file nowhere/run"),
        (["evaluate", "random"], "In which game"),
        (["evaluate", "random", "--game", "lbf", "--team-limit", "0"], "Team limit 0"),
        (["evaluate", "H6", "--game", "lbf", "--mode", "sampled"], "'H6' has one mode only"),
        (["train", "lbf", "gpl-q", "--set", "settings=3"], "settings 3 are not a group"),
        (["train", "lbf", "gpl-q", "--set", "types=H6"], "types 'H6' is not a list"),
        (
            ["train", "lbf", "gpl-q", "--set", "game_settings.size=abc"],
            "There is no LBF with size='abc'",
        ),
        (
            ["train", "lbf", "gpl-q", "--set", "training.epsilon.update_every=0"],
            "update every 0 is too small",
        ),
        (
            ["train", "lbf", "gpl-q", "--set", "training.epsilon.final=abc"],
            "final 'abc' is not a nu",
        ),
        (["evaluate", "random", "--game", "lbf", "--partners"], "'random' is not a trained agent"),
        (["plot", "nowhere"], "There is no run in nowhere"),
        (["play", "lbf", "--agent", "nowhere"], "no file nowhere"),
        (["train", "lbf", "gpl-q", "--report", "loud"], "Unknown report 'loud'"),
    ],
)
def test_wrong_input_is_one_sentence_and_leaves_nothing(
    arguments, says, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    check_refused(arguments, says, capsys)
    assert list(tmp_path.iterdir()) == []
