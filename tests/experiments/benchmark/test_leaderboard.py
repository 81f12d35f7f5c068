"""The pages of the benchmark, from made-up results."""

import json
import re
from dataclasses import replace

import pytest
from made_up_records import runs

from dropin.core.errors import InputError
from dropin.experiments.benchmark.leaderboard import write_leaderboard
from dropin.experiments.benchmark.receipt import write_receipt
from dropin.experiments.benchmark.results import About, read_results, write_results
from dropin.experiments.benchmark.scores import BEST_RESPONSE, CHANCE
from dropin.experiments.benchmark.standing import collect
from dropin.experiments.benchmark.submission import Check
from dropin.experiments.benchmark.tasks import select_tasks
from dropin.training.tables import read_table

OURS = [2.0, 2.2, 1.8, 2.4, 2.1]
THEIRS = [1.5, 1.0, 1.4, 1.2, 1.3]
TASKS = [{"task": "lbf/strangers"}, {"task": "lbf/crowd", "team_limit": 5}]


def add(root, name, means, *, receipt=True, tasks=TASKS, **about):
    directory = root / name
    records = [
        replace(each, learner=about.get("learner", name))
        for task in tasks for each in runs(means, **task)
    ]  # fmt: skip
    write_results(directory, records, About(**({"learner": name} | about)))
    if receipt:
        write_receipt(Check([], read_results(directory)), quick=False)
    return directory


@pytest.fixture
def root(tmp_path):
    add(tmp_path / "root", "gpl-q", OURS)
    add(tmp_path / "root", "ql", THEIRS)
    add(tmp_path / "root", CHANCE, [0.5], kind="policy")
    add(tmp_path / "root", BEST_RESPONSE, [2.5, 3.5])
    return tmp_path / "root"


def page(root, out, which=0, **options):
    """The text of the main page, or of another one, in the order in which they are returned."""
    pages = write_leaderboard(collect([root]), out, "dropin benchmark leaderboard x", **options)
    return pages[which].read_text()


DETAILS = 2


def row(text, *starts):
    """The cells of the row that starts so."""
    (line,) = [each for each in text.splitlines() if each.startswith("| " + " | ".join(starts))]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_board_ranks_learners_by_scores_that_follow_from_the_numbers(root, tmp_path):
    text = page(root, tmp_path / "out")
    # A mean return of 2.1 between 0.5 and 3.0 is a score of 0.64, one of 1.28 of 0.31.
    assert "The largest mean score is that of gpl-q (0.64 (" in text
    assert "the next ql (0.31 (" in text
    assert "a run of the first is above one of the second in 100% of cases" in text
    table = text.split("Who is above whom**")[1].split("**")[0]
    assert row(table, "learner")[1:] == [BEST_RESPONSE, "gpl-q", "ql", CHANCE]
    assert row(table, "gpl-q")[3] == "1.00 (1.00 to 1.00), 2 tasks"
    assert row(text, "strangers", "3")[2:] == ["3.00", "2.10", "1.28", "0.50"]
    assert "](leaderboard-details.md)" in text
    text = page(root, tmp_path / "out", DETAILS)
    assert "](leaderboard.md)" in text
    assert row(text, "lbf/crowd (version 1)", "0.64")[2].startswith("0.31")
    returns = row(text, "lbf/strangers (version 1)", "3", "0.50", "3.00")
    assert returns[4].startswith("2.10 (")
    assert "n = 5" in returns[4]
    assert row(text, "lbf/crowd (version 1)", "5", "gpl-q", "H6", "1.10")
    assert row(text, "lbf/crowd (version 1)", "5", "gpl-q", "-0.100")
    numbers = json.loads((tmp_path / "out" / "leaderboard.json").read_text())["numbers"]["lbf"]
    assert numbers["aggregates"]["gpl-q"]["mean"]["mean"] == pytest.approx(0.64)
    for name in re.findall(r"\]\((.*\.png)\)", text):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
    assert {"profiles", "recovery", "accuracy"} == set(
        re.findall(r"leaderboard-details-(\w+)-lbf.png\)", text)
    )


def test_without_a_reference_there_are_raw_returns_and_a_sentence(tmp_path):
    add(tmp_path / "root", "gpl-q", OURS)
    add(tmp_path / "root", CHANCE, [0.5], kind="policy")
    text = page(tmp_path / "root", tmp_path / "out")
    assert "Without the best response there are raw returns, but no scores in any task." in text
    assert "score is that of" not in text
    assert row(text, "gpl-q", "no task has both references")
    assert row(text, BEST_RESPONSE, "no run", "all tasks")
    details = page(tmp_path / "root", tmp_path / "out", DETAILS)
    assert "profiles" not in details
    assert row(details, "lbf/strangers (version 1)", "3", "0.50", "–")[4].startswith("2.10")


def test_returns_are_compared_where_there_are_no_scores(tmp_path):
    add(tmp_path / "root", "gpl-q", OURS)
    # Below in the one task and above in the other, at the one team limit that both have.
    add(tmp_path / "root", "ql", THEIRS, tasks=TASKS[:1])
    higher = [{"task": "lbf/crowd", "team_limit": limit} for limit in (5, 7)]
    add(tmp_path / "root", "ql-am", [3.0] * 4, tasks=higher)
    text = page(tmp_path / "root", tmp_path / "out")
    assert "Nobody has a rank. By raw returns ql-am is above gpl-q in 1 of 1 task;" in text
    table = text.split("Who is above whom**")[1].split("**")[0]
    order = row(table, "learner")[1:]
    assert order == ["ql-am", "gpl-q", "ql"]
    assert row(table, "gpl-q")[1:] == ["0.00, 1 task", "–", "1.00 (1.00 to 1.00), 1 task"]
    assert row(table, "ql", "–", "0.00 (0.00 to 0.00), 1 task")
    # A mean over fewer team limits than others have is not comparable.
    assert row(text, "crowd", "5, 7")[2:] == ["3.00", "–", "–"]
    numbers = json.loads((tmp_path / "out" / "leaderboard.json").read_text())["numbers"]["lbf"]
    assert numbers["above"]["ql / gpl-q"]["probability"]["mean"] == 0


def test_what_is_missing_is_listed(root, tmp_path):
    some = [replace(each, seed=seed) for seed in (0, 2) for each in runs([2.0], **TASKS[0])]
    crowd = [
        each for limit in (5, 7) for each in runs([2.0] * 3, **TASKS[1] | {"team_limit": limit})
    ]
    write_results(root / "ql-am", [*some, *crowd[:5]], About("ql-am"))
    write_receipt(Check([], read_results(root / "ql-am")), quick=False)
    text = page(root, tmp_path / "out")
    missing = text.split("Not measured")[1]
    assert row(missing, "ql-am", "seed 1", "strangers")
    assert row(missing, "ql-am", "seed 2 at limit 7", "crowd")
    assert row(missing, "gpl-q", "all seeds at limit 7", "crowd")
    assert "| gpl-q | no run" not in missing
    # Without the best response at limit 7 there is no score of the crowd.
    assert "Scores over 1 task" in text
    tasks = select_tasks(["lbf/standard", "wolfpack/standard"])
    missing = page(root, tmp_path / "out", tasks=tasks).split("Not measured")[1]
    assert row(missing, "gpl-q", "no run", "standard")
    assert "wolfpack" not in missing


def test_an_agent_that_has_met_the_strangers_does_not_lack_their_tasks(tmp_path):
    task = [{"task": "lbf/standard", "version": 1}]
    tasks = select_tasks(["lbf/standard", "lbf/strangers-ciao", "lbf/strangers-mixed"])
    add(tmp_path / "root", "lbf-gpl-q", [2.0], tasks=task, learner="lbf/gpl-q")
    odd = {"types": list(tasks[2].train_types or ())}
    add(tmp_path / "root", "odd", [2.0], tasks=task, learner="lbf/odd", training=odd)
    missing = page(tmp_path / "root", tmp_path / "out", tasks=tasks).split("Not measured")[1]
    closed = "not for this agent: it was trained with types of the test"
    assert row(missing, "lbf/gpl-q", closed, "strangers-ciao, strangers-mixed")
    assert row(missing, "lbf/odd", closed, "strangers-ciao")
    assert row(missing, "lbf/odd", "no run", "strangers-mixed")


def test_invalid_results_are_listed_with_the_reason(root, tmp_path):
    add(root, "unchecked", OURS, receipt=False)
    changed = add(root, "changed", OURS) / "results.json"
    changed.write_text(changed.read_text().replace('"schema": 1', '"schema": 3'))
    text = page(root, tmp_path / "out")
    assert "results.json.schema is 3: it can be 1." in text
    assert "was not checked: run dropin benchmark submit" in text
    assert "| unchecked" not in text
    assert len(collect([root], need_receipt=False).results) == 5
    with pytest.raises(InputError, match="There are no results to show"):
        page(tmp_path / "out", tmp_path / "none")
    with pytest.raises(InputError, match="There is no directory"):
        collect([tmp_path / "nowhere"])


def test_small_versions_have_a_page_of_their_own(root, tmp_path):
    add(root, "small", OURS, scale=0.01)
    collected = collect([root])
    pages = write_leaderboard(collected, tmp_path / "out", "x")
    assert [path.name for path in pages] == [
        f"leaderboard{kind}.{ending}"
        for kind in ("", "-details", "-small", "-small-details")
        for ending in ("md", "html")
    ]  # fmt: skip
    assert "A small version" in pages[4].read_text()
    assert "| small |" not in pages[0].read_text()


def test_a_learner_without_every_task_is_not_ranked(root, tmp_path):
    add(root, "half", [3.0] * 5, tasks=TASKS[:1])
    text = page(root, tmp_path / "out")
    assert "The largest mean score is that of gpl-q" in text
    assert row(text, "half", "no complete run in crowd")
    assert "–" in row(text, "crowd", "5")


def test_few_runs_are_not_judged(tmp_path):
    for name, means in (
        ("a", OURS[:3]),
        ("b", THEIRS[:3]),
        (CHANCE, [0.5]),
        (BEST_RESPONSE, [3.0]),
    ):
        add(tmp_path / "root", name, means)
    text = page(tmp_path / "root", tmp_path / "out")
    assert "fewer than 5 runs do not show whether that is chance" in text


def test_the_commands_write_the_pages(root, tmp_path, capsys):
    from dropin.cli import main

    main(["benchmark", "leaderboard", str(root), "--out", str(tmp_path / "a"), "--csv"])
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "a" / name)
        for name in (
            "leaderboard.md",
            "leaderboard.html",
            "leaderboard-details.md",
            "leaderboard-details.html",
            "episodes.csv",
        )
    ]
    assert len(read_table(tmp_path / "a" / "episodes.csv")) == 13 * 2 * 15
    main(["benchmark", "report", str(root / "ql"), "--out", str(tmp_path / "b")])
    assert (tmp_path / "b" / "report.md").exists()
    with pytest.raises(SystemExit):
        main(["benchmark", "report", str(root), "--checkpoint", "first"])
    assert "Unknown checkpoint 'first'" in capsys.readouterr().err
