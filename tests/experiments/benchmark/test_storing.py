"""Results of earlier calls stay when tasks and seeds are added, and nothing else is overwritten."""

import shutil
from dataclasses import replace

import pytest
from experiments.made_up import write_run
from made_up_records import record

from dropin.agents import agent_path
from dropin.cli import main
from dropin.core.errors import InputError
from dropin.experiments.benchmark import running
from dropin.experiments.benchmark.results import read_results
from dropin.experiments.benchmark.running import BEST_RESPONSE, Benchmark, Options, agent_name
from dropin.experiments.benchmark.storing import store_results
from dropin.experiments.benchmark.tasks import select_tasks

TURNCOAT, STRANGERS = select_tasks(["lbf/turncoat", "lbf/strangers-ciao"])


def measure(who, task, limit, *, learner, seed, checkpoint, step, episodes):
    """Play nothing: the mean return is 10 times the seed plus the team limit."""
    del who, episodes
    at = {"task": task.name, "version": task.version, "team_limit": limit}
    made = record(10.0 * seed + limit, seed=seed, **at)
    return replace(made, learner=learner, checkpoint=checkpoint, step=step)


@pytest.fixture(autouse=True)
def _made_up(monkeypatch):
    monkeypatch.setattr(running, "measure", measure)
    monkeypatch.setattr(running, "load_agent", lambda path: path)
    monkeypatch.setattr(running, "train_missing", lambda *_, **__: None)


def run(directory, tasks, seeds=1, command="a", learner="gpl-q", **changes):
    """Store the results of runs that are written first, as files that nobody reads as agents."""
    options = Options(seeds=seeds, directory=directory, scale=0.02, report="none")
    benchmark = Benchmark(learner, tasks, options, **changes)
    for job in benchmark.plan.jobs:
        if not job.run.path.exists():
            write_run(job.run.path, job.config, {3: [0.0, 7.0, 1.0], 5: [0.0] * 3}, agents=True)
    benchmark = Benchmark(learner, tasks, options, **changes)
    (path, *_) = store_results(benchmark, benchmark.run(), command)
    return read_results(path)


def test_tasks_and_seeds_are_added_to_the_results_of_earlier_calls(tmp_path):
    first = run(tmp_path, [TURNCOAT], seeds=2)
    before = {path.name: path.read_bytes() for path in (first.directory / "agents").iterdir()}
    shutil.rmtree(tmp_path / "runs")  # What is stored needs the runs no more.
    both = run(tmp_path, [STRANGERS], command="b")
    found = {(each.task, each.seed, each.checkpoint, each.team_limit) for each in both.records}
    tests = [(each, limit) for each in ("last", "best") for limit in (3, 5)]
    turncoat = {("lbf/turncoat", seed, *test) for seed in (0, 1) for test in tests}
    strangers = {("lbf/strangers-ciao", 0, *test) for test in tests}
    assert found == turncoat | strangers
    assert both.about.command == "a; b"
    assert all(said["agent"] in both.files for said in both.summaries)
    for name, content in before.items():
        assert (both.directory / "agents" / name).read_bytes() == content
    assert run(tmp_path, [TURNCOAT], command="b").about.command == "a; b"


def test_what_is_measured_anew_replaces_the_older_record(tmp_path):
    old = run(tmp_path, [TURNCOAT, STRANGERS])
    later = replace(TURNCOAT, version=TURNCOAT.version + 1)
    found = run(tmp_path, [later])
    assert len(found.records) == len(old.records)
    assert set(found.tasks) == {(later.name, later.version), (STRANGERS.name, STRANGERS.version)}


def test_small_versions_and_whole_ones_do_not_meet(tmp_path):
    small = run(tmp_path, [TURNCOAT])
    assert small.directory.name == "gpl-q-scale-0.02"
    options = Options(directory=tmp_path, report="none")
    benchmark = Benchmark("random", [TURNCOAT], options)
    (whole,) = store_results(benchmark, benchmark.run(), "c")
    assert whole.name == "random"
    names = {path.name for path in (tmp_path / "records").iterdir()}
    assert names == {"gpl-q-scale-0.02", "random"}


def test_results_that_cannot_be_joined_are_not_overwritten(tmp_path):
    directory = run(tmp_path, [TURNCOAT]).directory
    path = directory / "results.json"
    damaged = path.read_text().replace('"schema": 1', '"schema": 2')
    path.write_text(damaged)
    with pytest.raises(InputError, match=r"schema is 2.*Move .*gpl-q-scale-0.02 away"):
        run(tmp_path, [TURNCOAT])
    assert path.read_text() == damaged
    path.write_text(damaged.replace('"schema": 2', '"schema": 1').replace("gpl-q", "ql"))
    with pytest.raises(InputError, match="holds results of ql"):
        run(tmp_path, [TURNCOAT])
    run(tmp_path / "b", [TURNCOAT], references=True)
    best = read_results(tmp_path / "b" / "results" / f"{BEST_RESPONSE}-scale-0.02")
    assert best.about.training["learner"] == "gpl-q"
    with pytest.raises(InputError, match="holds the returns of gpl-q as references, and not of ql"):
        run(tmp_path / "b", [TURNCOAT], learner="ql", references=True)


def test_an_agent_does_not_take_tasks_whose_strangers_it_has_met(monkeypatch, tmp_path):
    monkeypatch.undo()
    benchmark = Benchmark("lbf/gpl-q", [TURNCOAT, STRANGERS])
    assert benchmark.tasks == [TURNCOAT]
    (note,) = benchmark.notes
    assert note == (
        "lbf/gpl-q was trained with types that are strangers in the test (H6, H7, H8, H9), so it"
        " cannot take lbf/strangers-ciao."
    )
    with pytest.raises(InputError, match="it cannot take lbf/strangers-ciao"):
        Benchmark("lbf/gpl-q", [STRANGERS])
    lonely = tmp_path / "agent.safetensors"
    lonely.write_bytes((agent_path("lbf/gpl-q") / "agent.safetensors").read_bytes())
    benchmark = Benchmark(str(lonely), [TURNCOAT, STRANGERS])
    assert len(benchmark.tasks) == 2
    assert "Nobody knows with which types" in benchmark.notes[0]
    other = [replace(TURNCOAT, rules="paper")]
    assert "under the rules reference, but" in Benchmark("lbf/gpl-q", other).notes[0]


def test_a_file_has_a_name_that_results_can_hold(tmp_path):
    assert agent_name("/runs/a b/agent.safetensors") == "runs/a-b/agent.safetensors"
    assert agent_name("./../runs/x") == "runs/x"
    assert agent_name("lbf/gpl-q") == "lbf/gpl-q"
    assert agent_name("H6") == "H6"


def test_what_was_measured_is_stored_even_if_something_failed(tmp_path, capsys, monkeypatch):
    def measure_small_teams(who, task, limit, **given):
        if limit == 5:
            raise InputError("There is no room.")
        return measure(who, task, limit, **given)

    monkeypatch.setattr(running, "measure", measure_small_teams)
    where = ("--directory", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["benchmark", "run", "random", "--tasks", "lbf/turncoat", *where])
    assert ended.value.code
    assert "lbf/turncoat limit 5: random: There is no room." in capsys.readouterr().err
    (only,) = read_results(tmp_path / "results" / "random").records
    assert only.team_limit == 3


def test_the_command_that_is_told_names_no_place_of_this_machine(tmp_path, monkeypatch):
    words = ["benchmark", "run", "random", "--tasks", "lbf/turncoat"]
    monkeypatch.setattr("sys.argv", ["dropin", *words, "--directory", "/a/b", "--use=/c/d", "e/f"])
    main([*words, "--directory", str(tmp_path)])
    told = read_results(tmp_path / "results" / "random").about.command
    assert told == f"dropin {' '.join(words)} --directory b --use=d e/f"


def test_the_command_looks_at_earlier_results_before_it_trains(tmp_path, capsys):
    path = tmp_path / "results" / "gpl-q" / "results.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    with pytest.raises(SystemExit):
        main(["benchmark", "run", "gpl-q", "--tasks", "lbf/turncoat", "--directory", str(tmp_path)])
    assert "Move" in capsys.readouterr().err
    assert path.read_text() == "{"
