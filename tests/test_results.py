"""The pages of results say what the runs that are kept beside them say."""

import json
import shlex
from pathlib import Path

import pytest

from dropin.cli import main
from dropin.core import registry
from dropin.experiments.kept import final_row, kept_name
from dropin.experiments.planning import find_runs, identity
from dropin.training.run_directory import RunDirectory

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
# The agents themselves are not kept there, so what was asked of them cannot be asked again.
PAGES = sorted(
    page
    for kind in ("reference", "small")
    for page in (RESULTS / kind).rglob("*.json")
    if page.stem in registry.experiments and not registry.experiments[page.stem].needs_agents
)


def test_there_are_pages():
    assert RESULTS / "reference" / "summary" / "summary.json" in PAGES
    assert RESULTS / "small" / "table2" / "table2.json" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: "-".join(page.parts[-3:-1]))
def test_a_page_is_what_its_command_makes(page, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    told = json.loads(page.read_text())
    command = shlex.split(told["command"])[1:]
    main([*command, "--directory", str(tmp_path), "--report", "none"])
    again = json.loads((tmp_path / page.stem / page.name).read_text())
    assert again["numbers"] == told["numbers"]
    assert again["missing"] == told["missing"]
    new = tmp_path / page.stem / page.name
    words, drawn = (each.with_suffix(".md").read_text() for each in (page, new))
    before = words.split("## How it was made")[0]
    assert drawn.split("## How it was made")[0] == before
    raw = page.with_suffix(".csv")
    assert raw.exists() == (page.stem == "summary")
    if raw.exists():
        assert new.with_suffix(".csv").read_text() == raw.read_text()
        assert told["made with"]["versions"]["jax"]
        assert all(run["versions"] for run in told["runs"] if run["progress"] == "done")


def test_the_page_of_the_benchmark_is_what_its_command_makes(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = RESULTS / "benchmark" / "report.json"
    told = json.loads(page.read_text())
    *command, place = shlex.split(told["command"])[1:]
    assert (command[-1], place) == ("--out", "docs/results/benchmark")
    main([*command, str(tmp_path)])
    assert json.loads((tmp_path / page.name).read_text())["numbers"] == told["numbers"]
    for name in ("report.md", "report-details.md"):
        drawn = (tmp_path / name).read_text().replace(str(tmp_path), place)
        assert drawn == (page.parent / name).read_text()
    assert not list(page.parent.rglob("*.safetensors"))


def test_what_the_campaign_lacks_is_what_is_not_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    arguments = ("--plan", "--report", "lines", "--use", "docs/results/learning")
    main(["campaign", *arguments, "--directory", str(tmp_path / "no-runs")])
    lines = capsys.readouterr().out.splitlines()
    shown = [line for line in lines if not line.startswith("The rest takes")]
    assert shown == (RESULTS / "campaign" / "plan.txt").read_text().splitlines()


@pytest.mark.parametrize("run", sorted(RESULTS.glob("campaign/*/*/run.json")), ids=str)
def test_a_kept_run_is_whole(run):
    (stored,) = find_runs([run.parent])[identity(RunDirectory(run.parent).config())]
    assert stored.is_done
    assert kept_name(stored.config) == run.parent.relative_to(RESULTS / "campaign")
    limits = {stored.config.team_limit, *stored.config.evaluation.team_limits}
    for limit in limits:
        last, best = (final_row(stored, agent, limit) for agent in ("last", "best"))
        assert last is not None
        assert best is not None
        assert (int(last["episodes"]), int(best["episodes"])) == (400, 400)
        assert (int(last["step"]), int(best["step"])) == (stored.final_step, stored.best_step)
