"""The command `dropin reproduce`, with runs that nobody trained."""

import json
import sys
from collections import Counter

import pytest
from made_up import make_experiment, write_run

from dropin.cli import main
from dropin.core import registry
from dropin.core.specs import ExperimentSpec
from dropin.experiments import ExperimentResult, Grid, Options, Sheet, planning
from dropin.training import tables

OPTIONS = Options(steps=640, seeds=2, games=("lbf",), learners=("gpl-q", "ql"))
ARGUMENTS = ("--steps", "640", "--seeds", "2", "--games", "lbf", "--learners", "gpl-q", "ql")


@pytest.fixture
def directory(tmp_path):
    """A directory with the runs of a small table 2."""
    for job in make_experiment(tmp_path / "out", "table2", OPTIONS).jobs:
        level = float(len(job.config.learner) + job.config.seed)
        write_run(job.run.path, job.config, {3: [0.0, level], 5: [0.0, level / 2]})
    return tmp_path / "out"


def command(*arguments):
    try:
        main(["reproduce", *arguments])
    except SystemExit as ended:
        return ended.code
    return 0


def test_the_list_names_every_experiment(capsys):
    assert command("--list") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in registry.experiments)


def test_the_plan_says_how_much_is_left(directory, capsys, tmp_path):
    assert command("table2", *ARGUMENTS, "--directory", str(directory), "--plan") == 0
    out = capsys.readouterr().out
    assert "A small version: runs of 640 steps." in out
    assert "About" not in out
    assert command("table2", *ARGUMENTS, "--directory", str(tmp_path / "empty"), "--plan") == 0
    out = capsys.readouterr().out
    assert "About" in out
    assert not (tmp_path / "empty").exists()


def test_drawing_trains_nothing(directory, capsys, tmp_path):
    new = tmp_path / "new"
    arguments = ("--directory", str(new), "--use", str(directory), "--draw")
    assert command("table2", *ARGUMENTS, *arguments) == 0
    pages = capsys.readouterr().out.splitlines()[-2:]
    assert [each.rsplit("/", 1)[1] for each in pages] == ["table2.md", "table2.html"]
    assert sorted(each.name for each in new.iterdir()) == ["table2"]


def test_the_page_has_the_command_that_made_it(directory, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest", "-x"])
    new = tmp_path / "a new place"
    arguments = ("--directory", str(new), "--use", str(directory), "--draw", "--scale", "1.0")
    assert command("table2", *ARGUMENTS, *arguments) == 0
    page = json.loads((new / "table2" / "table2.json").read_text())
    assert page["command"] == (
        f"dropin reproduce table2 --draw --seeds 2 --steps 640 --games lbf --learners gpl-q ql"
        f" --directory '{new}' --use {directory}"
    )


def test_a_plan_is_made_once_and_runs_are_read_once(directory, monkeypatch):
    searches, reads = [], Counter()
    find_runs, read_table = planning.find_runs, tables.read_table

    def count_search(roots):
        searches.append(roots)
        return find_runs(roots)

    def count_read(path, *needs):
        reads[path] += 1
        return read_table(path, *needs)

    monkeypatch.setattr(planning, "find_runs", count_search)
    monkeypatch.setattr(planning, "read_table", count_read)
    arguments = (*ARGUMENTS, "--directory", str(directory))
    for how in ((), ("--draw",)):
        searches.clear()
        reads.clear()
        assert command("table2", *arguments, *how) == 0
        assert len(searches) == 1
        assert len(reads) == 4
        assert set(reads.values()) == {1}


@pytest.fixture
def own_experiment():
    """A plug-in's experiment: the best return of each learner."""

    def result(runs):
        rows = [
            (game, learner, str(max(runs.best_checkpoint(group).training_returns)))
            for game in runs.games
            for learner, group in runs.by_learner(game).items()
        ]
        numbers = {f"{game} {learner}": float(best) for game, learner, best in rows}
        return ExperimentResult([Sheet("Best", ("game", "learner", "best"), rows)], numbers=numbers)

    registry.register_experiment(
        ExperimentSpec(name="mine", grids=lambda options: {"": Grid()}, result=result)
    )
    yield "mine"
    del registry.experiments._items["mine"], registry.experiments._sources["mine"]


def test_an_experiment_of_ones_own(own_experiment, directory, capsys):
    assert command("--list") == 0
    assert own_experiment in capsys.readouterr().out
    arguments = (*ARGUMENTS, "--directory", str(directory), "--draw")
    assert command(own_experiment, *arguments) == 0
    text = (directory / own_experiment / f"{own_experiment}.md").read_text()
    assert text.startswith("# mine\n")
    assert "| lbf | gpl-q | 6.0 |" in text
    page = json.loads((directory / own_experiment / f"{own_experiment}.json").read_text())
    assert page["numbers"] == {"lbf gpl-q": 6.0, "lbf ql": 3.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Give an experiment"),
        (("table3",), "Unknown experiment 'table3'"),
        (("table2", "--draw"), "No run of table2 is done yet"),
        (("table2", "--scale", "2"), "The scale 2 is out of range"),
        (("table2", "--on", "mars"), "Unknown place 'mars'"),
        (("table2", "--learners", "gpl"), "Unknown learner 'gpl'"),
        (("table2", "--use", "nowhere"), "There is no directory nowhere."),
        (("table2", "--set", "training"), "'training' is not a setting"),
        (("partners", "--learners", "ql"), "Nothing is left of the experiment"),
    ],
)
def test_wrong_input_gets_one_sentence(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command(*arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.strip().splitlines()) == 1
