"""The campaign runs what is missing, in its order, and keeps what is done."""

import dataclasses
import os
import time

import pytest
from made_up import write_run

from dropin.cli import main
from dropin.core import registry
from dropin.core.errors import InputError, StoppedError
from dropin.experiments import Experiment, campaign, kept
from dropin.experiments.analyses import AnalysisCache, KeptAnalyses
from dropin.experiments.campaign import BLOCKS, PARTS, Campaign, MachineSpeed, Part
from dropin.experiments.planning import Progress, StoredRun
from dropin.experiments.runs import PAPER_LEARNERS
from dropin.experiments.timing import estimate_seconds
from dropin.training.config import run_config
from dropin.training.tables import read_table

RETURNS = {3: [float(each) for each in range(8)], 5: [0.0] * 8}
FRESH = {"step": 640, "team_limit": 3, "mode": "greedy", "mean_return": 1.0, "agent": "last"}
SMALL = (Part(1, "table2", 2, ("lbf",), ("gpl-q", "ql")), Part(2, "table2", 1, ("lbf",), ("gnn",)))


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make a campaign of short runs whose agents nobody evaluates."""
    monkeypatch.setattr(kept, "fresh_evaluations", lambda run: [FRESH])

    def of(parts=SMALL, *search):
        return Campaign(tmp_path / "home", tmp_path / "results", search, parts, steps=640)

    return of


def names(jobs):
    return [f"{job.config.game} {job.config.learner} {job.config.seed}" for job in jobs]


def test_the_campaign_is_that_of_the_paper_in_its_order(tmp_path):
    whole = Campaign(tmp_path / "home", tmp_path / "results")
    assert [part.block for part in PARTS] == sorted(part.block for part in PARTS)
    assert set(BLOCKS) == {part.block for part in PARTS}
    jobs = whole.jobs
    assert len({job.run.path for job in jobs}) == len(jobs)
    # All learners in both games with seed 0 come before any with seed 1.
    first = names(jobs[:128])
    both = {f"{game} {learner}" for game in ("lbf", "wolfpack") for learner in PAPER_LEARNERS}
    for seed in range(8):
        of_seed = first[16 * seed : 16 * (seed + 1)]
        assert set(of_seed) == {f"{kind} {seed}" for kind in both}
    assert names(jobs[128:134]) == [
        f"fortattack {learner} {seed}" for seed in range(3) for learner in ("gpl-q", "gpl-spi")
    ]
    baselines = PAPER_LEARNERS[2:]
    assert names(jobs[134:146]) == [
        f"fortattack {learner} {seed}" for seed in range(2) for learner in baselines
    ]
    assert {job.config.rules for job in jobs[:-18]} == {"reference"}
    assert {job.config.rules for job in jobs[-18:]} == {"paper"}
    for job in jobs:
        evaluation = job.config.evaluation
        assert (evaluation.num_envs, evaluation.episodes) == (16, 5)
    names_kept = [kept.kept_name(job.config) for job in jobs]
    assert len(set(names_kept)) == len(jobs)


def test_runs_that_exist_are_not_trained_again(make, tmp_path, monkeypatch):
    first, second = make().jobs[:2]
    # One is somewhere else, without agents; one is in the campaign's own directory.
    write_run(tmp_path / "old" / "run", first.config, RETURNS)
    write_run(second.run.path, second.config, RETURNS, agents=True)
    started = {}
    monkeypatch.setattr(campaign, "run_all", lambda jobs, report, **hooks: started.update(jobs))
    whole = make(SMALL, tmp_path / "old")
    assert [job.progress for job in whole.jobs] == [Progress.DONE] * 2 + [Progress.MISSING] * 3
    whole.run("none")
    assert list(started) == [
        "lbf-gpl-q-reference/seed-1", "lbf-ql-reference/seed-1", "lbf-gnn-reference/seed-0",
    ]  # fmt: skip
    # Only the run with agents could be evaluated again, so only that one is kept.
    kept_runs = sorted(each.parent for each in (tmp_path / "results").rglob("run.json"))
    assert kept_runs == [tmp_path / "results" / "lbf-ql-reference" / "seed-0"]
    # A run that is only kept, without agents, is done as well.
    home = tmp_path / "home"
    home.rename(tmp_path / "gone")
    assert names(job for job in make().jobs if job.progress is Progress.DONE) == ["lbf ql 0"]


def test_each_run_is_created_when_it_starts_and_kept_when_it_ends(make, tmp_path, monkeypatch):
    whole = make()
    jobs = {str(kept.kept_name(job.config)): job for job in whole.jobs}
    seen = []

    def train_all(commands, report, on_start, on_end):
        for index, name in enumerate(commands):
            path = jobs[name].run.path
            assert commands[name] == ["--resume", str(path)]
            assert not path.exists()
            on_start(name)
            assert sorted(each.name for each in path.iterdir()) == ["run.json"]
            if index == 1:
                on_end(name, "A loss was not finite.")
                continue
            (path / "run.json").unlink()
            write_run(path, jobs[name].config, RETURNS, agents=True)
            on_end(name, "")
            assert (tmp_path / "results" / name / "fresh.csv").exists()
            seen.append(name)
        raise StoppedError("1 of 5 runs failed.")

    monkeypatch.setattr(campaign, "run_all", train_all)
    with pytest.raises(StoppedError):
        whole.run("none")
    assert len(seen) == 4
    failed = list(jobs)[1]
    assert sorted(each.name for each in (tmp_path / "results" / failed).iterdir()) == [
        "failure.json"
    ]
    assert names(job for job in make().jobs if job.progress is not Progress.DONE) == ["lbf ql 0"]


def test_a_run_that_cannot_be_evaluated_does_not_end_the_campaign(make, monkeypatch):
    def fail(run):
        raise StoppedError("The state was not finite.")

    monkeypatch.setattr(kept, "fresh_evaluations", fail)
    job = make().jobs[0]
    write_run(job.run.path, job.config, RETURNS, agents=True)
    monkeypatch.setattr(campaign, "run_all", lambda jobs, report, **hooks: None)
    with pytest.warns(UserWarning, match="is not kept: The state was not finite"):
        make().run("none")


def test_analyses_are_kept_with_the_runs_so_their_agents_may_go(make, tmp_path, monkeypatch):
    parts = (Part(1, "wolfpack-utilities", 2),)
    first, second = make(parts).jobs
    # A run elsewhere, without agents, is of no use to the analysis.
    write_run(tmp_path / "old" / "run", first.config, RETURNS)
    assert make(parts, tmp_path / "old").jobs[0].progress is Progress.MISSING
    analysed = []

    def analyse(runs):
        (run,) = runs.by_learner("wolfpack")["gpl-q"][-1:]
        analysed.append(len(runs.jobs))
        for each in runs.by_learner("wolfpack")["gpl-q"]:
            found = runs.analyses.get("hunting", each, 0, lambda agent: [agent], envs=8)
            assert found == [f"agent of {each.config.seed}"]
        return run

    spec = registry.experiments["wolfpack-utilities"]
    monkeypatch.setitem(
        registry.experiments._items, spec.name, dataclasses.replace(spec, result=analyse)
    )
    monkeypatch.setattr(StoredRun, "agent", lambda self, _: f"agent of {self.config.seed}")
    monkeypatch.setattr(campaign, "run_all", lambda jobs, report, **hooks: None)
    # The best checkpoint is that of all seeds, so nothing is analysed before all are done.
    write_run(first.run.path, first.config, RETURNS, agents=True)
    make(parts).run("none")
    assert not analysed
    write_run(second.run.path, second.config, RETURNS, agents=True)
    make(parts).run("none")
    assert analysed == [2]
    (tmp_path / "home").rename(tmp_path / "gone")
    after = make(parts)
    assert [job.progress for job in after.jobs] == [Progress.DONE] * 2
    for job in after.jobs:
        stored = job.run.kept_analyses
        assert stored.experiments == {"wolfpack-utilities"}
        ((key, result),) = [(each["key"], each["result"]) for each in stored.results.values()]
        assert (key["run"], result) == (job.run.identity, [f"agent of {job.config.seed}"])
    # The page is drawn from what is kept, without an agent.
    monkeypatch.setattr(StoredRun, "agent", lambda *_: pytest.fail("There are no agents."))
    options = parts[0].options(640)
    Experiment(spec, options, tmp_path / "pages", [tmp_path / "results"]).completed_runs()
    cache = AnalysisCache(tmp_path / "pages")
    for job in after.jobs:
        found = cache.get("hunting", job.run, 0, lambda _: None, envs=8)
        assert found == [f"agent of {job.config.seed}"]


def test_a_run_that_was_trained_again_replaces_the_kept_one(make, tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "run_all", lambda jobs, report, **hooks: None)
    (job,) = make((Part(1, "table2", 1, ("lbf",), ("ql",)),)).jobs
    write_run(job.run.path, job.config, RETURNS, agents=True)
    kept_at = kept.publish(job.run.reloaded(), tmp_path / "results")
    (kept_at / "analyses.json").write_text('{"experiments": ["diversity"], "results": []}')
    kept.publish(job.run.reloaded(), tmp_path / "results")
    assert (kept_at / "analyses.json").exists()
    again = write_run(tmp_path / "again", job.config, {3: RETURNS[5], 5: RETURNS[3]}, agents=True)
    kept.publish(StoredRun(again.path, job.config), tmp_path / "results")
    rows = read_table(kept_at / "evaluation.csv")
    assert [row["mean_return"] for row in rows if row["team_limit"] == "5"] == list("01234567")
    assert not (kept_at / "analyses.json").exists()


def test_kept_analyses_that_are_damaged_are_refused(tmp_path):
    for text in ("[]", '{"experiments": [], "results": [{"key": 1}]}', "{"):
        (tmp_path / "analyses.json").write_text(text)
        with pytest.raises(InputError, match=r"analyses\.json"):
            KeptAnalyses.read(tmp_path)


def write_times(run, seconds, pause=0.0):
    """Set the times of a run's agents, with a pause in the middle."""
    files = sorted((run.path / "agents").iterdir())
    start = time.time() - 1e6
    for index, file in enumerate(files):
        when = start + index * seconds + (pause if index > len(files) // 2 else 0)
        os.utime(file, (when, when))


def test_the_speed_of_the_machine_is_that_of_its_runs(tmp_path):
    paths = {"gpl-q": 2.0, "ql": 6.0}
    runs = []
    for learner, factor in paths.items():
        config = run_config("lbf", learner)
        files = write_run(tmp_path / learner, config, RETURNS, agents=True)
        run = StoredRun(files.path, config)
        write_times(run, factor * estimate_seconds(config) / 7, pause=1e5)
        runs.append(run)
    speed = MachineSpeed(runs)
    assert speed.num_runs == 2
    for game, learner, factor in (("lbf", "gpl-q", 2), ("lbf", "ql", 6), ("wolfpack", "gnn", 4)):
        config = run_config(game, learner)
        assert speed.seconds(config) == pytest.approx(factor * estimate_seconds(config))
    # Copied files say nothing, and neither do runs that are not done or have no agents.
    for run in runs:
        write_times(run, 0.01)
    config = run_config("lbf", "gpl-q", seed=1)
    no_agents = StoredRun(write_run(tmp_path / "no agents", config, RETURNS).path, config)
    speed = MachineSpeed([*runs, no_agents, StoredRun(tmp_path / "nothing", config)])
    assert speed.num_runs == 0
    assert speed.seconds(config) == estimate_seconds(config)


def command(*arguments):
    try:
        main(["campaign", *arguments])
    except SystemExit as ended:
        return ended.code
    return 0


def test_the_plan_of_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command("--plan", "--blocks", "2", "4") == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert ["2", "table2", "reference", "fortattack", "gpl-q", "0-2"] in lines
    assert ["2", "table2", "reference", "fortattack", "ql", "0-1"] in lines
    assert ["4", "table2", "paper", "wolfpack", "gnn-am", "0-1"] in lines
    assert "0 of 36 runs are done" in out
    assert "judged by the speed of another machine" in out
    assert not list(tmp_path.iterdir())


def test_what_is_done_can_be_kept_without_training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kept, "fresh_evaluations", lambda run: [])
    monkeypatch.setattr(campaign, "run_all", lambda *_, **__: pytest.fail("It trains."))
    job = campaign.Campaign(tmp_path / "campaign", tmp_path / "results").jobs[0]
    write_run(job.run.path, job.config, RETURNS, agents=True)
    assert command("--keep", "--report", "none", "--results", "results") == 0
    (found,) = (tmp_path / "results").rglob("run.json")
    assert found.parent == tmp_path / "results" / kept.kept_name(job.config)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--blocks", "7"), "There is no block 7: it can be 1, 2, 3, 4."),
        (("--nice", "20"), "--nice 20 is out of range"),
        (("--cores", "999"), "There is no core 999"),
        (("--use", "nowhere"), "There is no directory nowhere."),
    ],
)
def test_wrong_input_gets_one_sentence(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command("--plan", *arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_small_campaign_from_start_to_end(tmp_path):
    part = Part(1, "table2", 1, ("lbf",), ("ql", "maddpg"))
    whole = Campaign(tmp_path / "home", tmp_path / "results", (), [part], steps=1280)
    whole.run("none")
    for learner, teammates in (("ql", 1), ("maddpg", 2)):
        directory = tmp_path / "results" / f"lbf-{learner}-reference" / "seed-0"
        rows = read_table(directory / "fresh.csv")
        greedy = [row for row in rows if row["mode"] == "greedy"]
        assert len(greedy) == 2 * 2 * teammates
        assert {row["episodes"] for row in rows} == {"400"}
    again = Campaign(tmp_path / "home", tmp_path / "results", (), [part], steps=1280)
    assert all(job.progress is Progress.DONE for job in again.jobs)
