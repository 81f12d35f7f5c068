"""The benchmark from plan to records: with agents that nobody trained, and from end to end."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from any_record import make_record
from experiments.made_up import write_run

from dropin.agents import agent_path
from dropin.cli import main
from dropin.core.errors import InputError, StoppedError
from dropin.core.files import file_checksum
from dropin.experiments.benchmark import running
from dropin.experiments.benchmark.records import Record
from dropin.experiments.benchmark.running import BEST_RESPONSE, Benchmark, Options
from dropin.experiments.benchmark.storage import load_records
from dropin.experiments.benchmark.tasks import select_tasks
from dropin.training.run_directory import RunDirectory

TASKS = select_tasks(["lbf/turncoat", "lbf/strangers-ciao"])


@pytest.fixture
def measured(monkeypatch):
    """The measurements that were asked for; nothing is played and no file is read as an agent."""
    asked = []

    def measure(who, task, limit, *, learner, seed, checkpoint, step, episodes) -> Record:
        asked.append((task.name, limit, learner, seed, checkpoint, step, episodes))
        if who == "H9" and limit == 3:
            raise InputError("H9 is ill.")
        record = make_record(seed, learner)
        changes = {"task": task.name, "team_limit": limit, "checkpoint": checkpoint, "step": step}
        return Record(**{**vars(record), **changes})

    monkeypatch.setattr(running, "measure", measure)
    monkeypatch.setattr(running, "load_agent", lambda path: path)
    monkeypatch.setattr(running, "train_missing", lambda *_, **__: None)
    return asked


def finished(directory, **changes):
    """Write the runs of two seeds for the two tasks, of which the second checkpoint is best."""
    options = Options(seeds=2, directory=directory, scale=0.02, report="none")
    benchmark = Benchmark("gpl-q", TASKS, options, **changes)
    for job in benchmark.plan.jobs:
        write_run(job.run.path, job.config, {3: [0.0, 7.0, 1.0]}, agents=True)
    return lambda: Benchmark("gpl-q", TASKS, options, **changes)


def test_the_last_and_the_best_agent_of_each_seed_take_every_test(tmp_path, measured):
    records = finished(tmp_path)().run()
    assert len(records) == len(measured) == 2 * 2 * 2 * 2
    by_checkpoint = {(each.checkpoint, each.step) for each in records}
    assert by_checkpoint == {("last", 128_000), ("best", 64_000)}
    assert {each.team_limit for each in records} == {3, 5}
    assert {each[-1] for each in measured} == {80}
    assert len(load_records(tmp_path)) == 16


def test_only_records_of_other_agents_are_measured_again(tmp_path, measured):
    again = finished(tmp_path)
    again().run()
    measured.clear()
    assert len(again().run()) == 16
    assert measured == []
    job = again().plan.jobs[0]
    RunDirectory(job.run.path).agent_at(128_000).write_bytes(b"another one")
    assert len(again().run()) == 16
    assert {(each[0], each[3], each[4]) for each in measured} == {("lbf/turncoat", 0, "last")}
    assert len(measured) == 2
    measured.clear()
    next((tmp_path / "records").rglob("*.safetensors")).write_bytes(b"broken")
    again().run()
    assert len(measured) == 1


def test_without_training_the_runs_that_are_done_are_measured(tmp_path, monkeypatch, measured):
    finished(tmp_path)
    trained = []
    monkeypatch.setattr(running, "train_missing", lambda jobs, **_: trained.extend(jobs))
    options = Options(seeds=3, directory=tmp_path, scale=0.02, report="none", train=False)
    assert len(Benchmark("gpl-q", TASKS, options).run()) == 16
    assert measured
    assert trained == []
    with pytest.raises(InputError, match="None of the 6 runs is done"):
        Benchmark("ql", TASKS, options).run()


def test_references_are_chance_and_learners_of_the_tests(tmp_path, measured):
    records = finished(tmp_path, references=True)().run()
    names = [(each.learner, each.task, each.team_limit) for each in records]
    for task in TASKS:
        assert names.count(("random", task.name, 3)) == names.count(("random", task.name, 5)) == 1
        assert names.count((BEST_RESPONSE, task.name, 3)) == 4
        # Runs at the limit 5 were evaluated at 3 only, so they are not done.
        assert names.count((BEST_RESPONSE, task.name, 5)) == 0


def test_a_policy_is_measured_without_training(tmp_path, measured):
    options = Options(directory=tmp_path)
    assert len(Benchmark("random", TASKS, options).run()) == 4
    with pytest.raises(StoppedError, match="limit 3: H9: H9 is ill"):
        Benchmark("H9", TASKS, options).run()
    assert {each.learner for each in load_records(tmp_path)} == {"random", "H9"}
    assert {each[-1] for each in measured} == {800}


def test_wrong_input_is_named(tmp_path):
    with pytest.raises(InputError, match=r"Unknown learner, type or agent 'gpl-Q'.*'gpl-q'"):
        Benchmark("gpl-Q", TASKS)
    with pytest.raises(InputError, match="plays wolfpack, but no task"):
        Benchmark("wolfpack/gpl-q", TASKS)
    with pytest.raises(InputError, match="Unknown learner 'random'"):
        Benchmark("random", TASKS, references=True)
    with pytest.raises(InputError, match="scale 2 is out of range"):
        Options(scale=2.0)
    with pytest.raises(InputError, match="number of seeds is 0"):
        Options(seeds=0)


def command(*arguments):
    try:
        main(["benchmark", *arguments])
    except SystemExit as ended:
        return ended.code
    return 0


def test_the_commands_list_and_plan(tmp_path, capsys):
    assert command("tasks", "lbf") == 0
    out = capsys.readouterr().out
    assert all(task.name in out for task in select_tasks(["lbf"]))
    assert "wolfpack" not in out
    where = ("--tasks", "lbf/standard", "lbf/crowd", "--directory", str(tmp_path / "new"))
    assert command("run", "gpl-q", *where, "--seeds", "3", "--plan") == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["lbf", "standard", "6,400,000", "0", "0", "3"]
    assert "About" in out
    assert not (tmp_path / "new").exists()
    assert command("references", *where, "--seeds", "1", "--plan") == 0
    assert "crowd at 9" in capsys.readouterr().out
    assert command("run", "gpl-q", "--tasks", "lbf/standrad") == 2
    assert "did you mean 'lbf/standard'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_benchmark_that_is_killed_goes_on_and_is_checked(tmp_path):
    arguments = ["run", "gpl-q", "--tasks", "lbf", "--seeds", "2", "--scale", "0.02"]
    arguments += ["--directory", str(tmp_path / "out"), "--report", "lines"]
    start = [sys.executable, "-m", "dropin.cli", "benchmark", *arguments]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(start, stdout=log, stderr=log)
        until = time.monotonic() + 900
        while not list((tmp_path / "out").rglob("step-*.safetensors")):
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        done = subprocess.run(start, stdout=log, stderr=log, timeout=3000, check=False)
    assert done.returncode == 0, (tmp_path / "log").read_text()
    records = load_records(tmp_path / "out")
    situations = sum(len(task.test_limits) for task in select_tasks(["lbf"]))
    assert len(records) == situations * 2 * 2
    assert {each.step for each in records if each.checkpoint == "last"} == {128_000}
    exodus = [each for each in records if each.task == "lbf/script-exodus"]
    assert min(each.episodes.entries.max() for each in exodus) == 12
    results = tmp_path / "out" / "results" / "gpl-q-scale-0.02"
    for number, (damage, sentence) in enumerate(DAMAGES):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(results, copy)
        damage(copy)
        said = subprocess.run(
            [*start[:4], "submit", str(copy)], capture_output=True, text=True, check=False
        )
        assert said.returncode == 2
        assert sentence in said.stderr
        assert "Traceback" not in said.stderr
        assert not (copy / "checked.json").exists()
    said = subprocess.run(
        [*start[:4], "submit", str(results)], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    assert f"{len(records)} of {len(records)} records were played again" in said.stdout
    assert (results / "checked.json").exists()


def _replaced(old, new):
    """Damage results.json by replacing the first occurrence of a text."""

    def damage(directory):
        path = directory / "results.json"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    return damage


def _other_agent(directory):
    """Replace an agent by one of another game, with its right checksum."""
    agent = sorted((directory / "agents").iterdir())[0]
    path, before = directory / "results.json", file_checksum(agent)
    shutil.copy(agent_path("wolfpack/gpl-q") / "agent.safetensors", agent)
    path.write_text(path.read_text().replace(before, file_checksum(agent)))


def _changed_agent(directory):
    agent = sorted((directory / "agents").iterdir())[0]
    agent.write_bytes(agent.read_bytes()[:-1] + b"x")


DAMAGES = [
    (_replaced('"schema": 1', '"schema": 3'), "results.json.schema is 3: it can be 1"),
    (_replaced('"step": 128000', '"step": 64000'), "was trained for 64,000 steps: it is 128,000"),
    (_replaced('"mean_return": ', '"mean_return": NaN, "x": '), "NaN is no number of JSON"),
    (_changed_agent, "was changed: its checksum is not that of results.json"),
    (_other_agent, "plays wolfpack, but its task is lbf/"),
]
