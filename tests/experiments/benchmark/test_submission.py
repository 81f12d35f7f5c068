"""A submission is refused for the right reason, and gets a receipt when all is well."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from made_up_records import record, runs, sums

from dropin.agents import agent_path
from dropin.core.errors import InputError
from dropin.experiments.benchmark.episode_file import EPISODES_FILE
from dropin.experiments.benchmark.receipt import check_receipt, write_receipt
from dropin.experiments.benchmark.results import About, read_results, write_results
from dropin.experiments.benchmark.submission import (
    TaskRules,
    check_submission,
    record_differences,
)

TASKS = [
    TaskRules("lbf/strangers", 1, (3, 5), 1000, 5),
    TaskRules("lbf/open", 2, (3,), 1000, 5),
    TaskRules("wolfpack/strangers", 1, (3,), 1000, 5),
]
CHECKPOINTS = ("last", "best")
KINDS = [({"task": "lbf/strangers", "team_limit": limit}) for limit in (3, 5)]
KINDS += [{"task": "lbf/open", "version": 2}]
RECORDS = [
    each for kind in KINDS for at in CHECKPOINTS for each in runs([1.0, 2.0], checkpoint=at, **kind)
]
AGENTS = {
    (task, limit, seed, at): agent_path("lbf/gpl-q") / "agent.safetensors"
    for task, limit in (("lbf/strangers", 3), ("lbf/strangers", 5), ("lbf/open", 3))
    for seed in (0, 1)
    for at in CHECKPOINTS
}


class Replayed:
    """Plays records again: each comes out as it was, but for what is changed."""

    def __init__(self, records=RECORDS, change=None):
        self.records, self.change, self.played = records, change, []

    def __call__(self, record, agent):
        self.played.append((record, agent))
        same = [each for each in self.records if not record_differences(record, each)]
        assert same
        return self.change(record) if self.change else same[0]


@pytest.fixture
def directory(tmp_path):
    return submit(tmp_path / "results")


def submit(path, records=RECORDS, agents=AGENTS, **about):
    write_results(path, records, About.here("gpl-q", **about), agents)
    return path


def problems(directory, replay=None):
    return check_submission(directory, TASKS, replay or Replayed()).problems


def test_a_whole_submission_is_right_and_gets_a_receipt(directory):
    replay = Replayed()
    check = check_submission(directory, TASKS, replay)
    assert check.problems == []
    assert check.summary == "12 of 12 records were played again, 12 with equal numbers."
    (agent,) = (directory / "agents").iterdir()  # All are the same file.
    assert {path for _, path in replay.played} == {agent}
    write_receipt(check, quick=False)
    receipt = check_receipt(read_results(directory))
    assert (receipt["equal"], receipt["close"], receipt["records"], receipt["quick"]) == (
        12, 0, 12, False,
    )  # fmt: skip
    # The agents may be left out now, but nothing may be changed.
    for path in (directory / "agents").iterdir():
        path.unlink()
    assert check_receipt(read_results(directory)) == receipt


def test_a_receipt_is_of_these_results_and_no_others(directory):
    with pytest.raises(InputError, match="was not checked: run dropin benchmark submit"):
        check_receipt(read_results(directory))
    check = check_submission(directory, TASKS, Replayed())
    write_receipt(check, quick=False)
    path = directory / "results.json"
    path.write_text(path.read_text().replace('"who": ""', '"who": "Somebody else"'))
    with pytest.raises(InputError, match="is of other results"):
        check_receipt(read_results(directory))
    with pytest.raises(InputError, match="gets no receipt"):
        write_receipt(replace(check, problems=["Something."]), quick=False)
    (directory / "checked.json").write_text('{"schema": 1}')
    with pytest.raises(InputError, match="has no key 'results'"):
        check_receipt(read_results(directory))


def test_a_wrong_schema_is_refused(directory):
    path = directory / "results.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 7'))
    assert problems(directory) == ["results.json.schema is 7: it can be 1."]


def test_scores_that_are_not_numbers_are_refused(directory):
    path = directory / "results.json"
    path.write_text(path.read_text().replace('"mean_return": 1.0', '"mean_return": NaN', 1))
    (problem,) = problems(directory)
    assert "NaN is no number of JSON" in problem


def test_every_missing_record_is_named(tmp_path):
    left = [each for each in RECORDS if not (each.seed == 0 and each.team_limit == 5)]
    assert problems(submit(tmp_path / "results", left)) == [
        "There is no record of lbf/strangers (version 1), team limit 5, last agent, seed 0.",
        "There is no record of lbf/strangers (version 1), team limit 5, best agent, seed 0.",
    ]
    # Without the first seed throughout, it is the seeds that do not start at 0.
    left = [each for each in RECORDS if each.seed == 1]
    found = problems(submit(tmp_path / "second", left, {k: v for k, v in AGENTS.items() if k[2]}))
    assert len(found) == 6
    assert all("seed 0" in each for each in found)


def test_other_steps_are_refused(tmp_path):
    other = [replace(each, step=900 + 150 * each.seed) for each in RECORDS]
    found = problems(submit(tmp_path / "results", other))
    assert found[0] == (
        "lbf/open (version 2), team limit 3, last agent, seed 0 was trained for 900 steps: it is"
        " 1,000."
    )
    # The best agent may be an earlier one, but not one from after the end.
    assert sum("best agent, seed 0" in each for each in found) == 0
    assert sum("best agent, seed 1 was trained for 1,050 steps: it is at most" in each
               for each in found) == 3  # fmt: skip


def test_other_numbers_of_episodes_are_refused(tmp_path):
    other = [replace(each, **vars(record(1.0, num_episodes=4, seed=each.seed))
                     | {"task": each.task, "version": each.version, "team_limit": each.team_limit,
                        "checkpoint": each.checkpoint})
             if each.task == "lbf/open" else each for each in RECORDS]  # fmt: skip
    found = problems(submit(tmp_path / "results", other))
    assert found[0].endswith("last agent, seed 0 was tested in 4 episodes: it is 5.")
    assert len(found) == 4


def test_changed_missing_and_new_files_are_refused(tmp_path):
    ((key, path), *_) = AGENTS.items()
    another = agent_path("lbf/gpl-spi") / "agent.safetensors"
    directory = submit(tmp_path / "results", agents=AGENTS | {key: another})
    agent, other = sorted(
        (directory / "agents").iterdir(), key=lambda file: file.read_bytes() != path.read_bytes()
    )
    agent.write_bytes(agent.read_bytes()[:-1] + b"x")
    (directory / "more.txt").write_text("")
    found = problems(directory)
    assert found[:2] == [
        f"The file agents/{agent.name} was changed: its checksum is not that of results.json.",
        "The file more.txt is not listed in results.json.",
    ]
    agent.write_bytes(path.read_bytes())
    (directory / "more.txt").unlink()
    other.unlink()
    found = problems(directory)
    assert found[0] == f"The file agents/{other.name} is missing."
    assert "does not exist" in found[1]


def test_changed_episodes_are_refused(directory):
    path = directory / EPISODES_FILE
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    (problem,) = problems(directory)
    assert "is damaged: its checksum does not fit" in problem


def test_an_agent_of_another_game_is_refused(tmp_path):
    wrong = agent_path("wolfpack/gpl-q") / "agent.safetensors"
    directory = submit(tmp_path / "r", agents=AGENTS | {("lbf/open", 3, 1, "best"): wrong})
    assert problems(directory) == [
        "The agent agents/lbf-open-limit-3-seed-1-best.safetensors plays wolfpack, but its task is"
        " lbf/open."
    ]
    few = {key: path for key, path in AGENTS.items() if key != ("lbf/open", 3, 0, "last")}
    assert problems(submit(tmp_path / "few", agents=few)) == [
        "lbf/open (version 2), team limit 3, last agent, seed 0 has no file with its agent."
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "lbf/stranger"}, "Unknown task 'lbf/stranger'.*did you mean 'lbf/strangers'"),
        ({"version": 7}, r"lbf/open \(version 7\) is out of date: the task is at version 2\."),
        ({"team_limit": 4}, r"lbf/open \(version 2\) has no test at team limit 4\."),
    ],
)
def test_tasks_are_those_of_the_benchmark(tmp_path, change, message):
    records = [replace(each, **change) if each.task == "lbf/open" else each for each in RECORDS]
    found = " ".join(problems(submit(tmp_path / "results", records)))
    assert re.search(message, found)
    if "team_limit" not in change:
        assert (
            "The task lbf/open (version 2) is missing: a submission has all tasks of lbf" in found
        )


def test_agents_that_play_otherwise_are_found(directory):
    def otherwise(record):
        changed = record.episodes.returns + np.float32(1e-6) * (record.team_limit == 5)
        by_age = sums([0], [0]) if record.task == "lbf/open" else record.correct_by_age
        episodes = replace(record.episodes, returns=changed)
        return replace(record, episodes=episodes, correct_by_age=by_age)

    found = problems(directory, Replayed(change=otherwise))
    assert len(found) == 8
    assert found[0] == (
        "lbf/open (version 2), team limit 3, last agent, seed 0 was played again with other"
        " predictions: the mean return is 1.0000, not 1.0000."
    )
    assert "team limit 5, last agent, seed 0 was played again with other returns" in found[4]

    def impossible(record):
        raise InputError("No.")

    assert "cannot be played again: No." in problems(directory, Replayed(change=impossible))[0]


def test_on_another_machine_noise_is_allowed_and_more_is_not(tmp_path):
    def moved(by):
        return lambda record: replace(
            record,
            episodes=replace(record.episodes, returns=record.episodes.returns + np.float32(by)),
        )

    directory = submit(tmp_path / "results", hardware="Another processor, 2 cores")
    # The standard error of the difference of two means of these episodes is about 0.11.
    check = check_submission(directory, TASKS, Replayed(change=moved(0.3)))
    assert (check.problems, check.num_equal, check.num_close) == ([], 0, 12)
    assert "and 12 with equal means but for noise" in check.summary
    check = check_submission(directory, TASKS, Replayed(change=moved(0.6)))
    assert len(check.problems) == 13
    assert (
        "made with another machine or other versions (hardware: Another processor,"
        in (check.problems[-1])
    )
    # On the same kind of machine there is no noise.
    here = submit(tmp_path / "here")
    assert len(problems(here, Replayed(change=moved(0.3)))) == 12


def test_a_quick_check_plays_a_sample_that_the_checksum_chooses(directory, tmp_path):
    def played(directory):
        replay = Replayed()
        check = check_submission(directory, TASKS, replay, quick=True)
        assert check.summary.startswith("3 of 12 records were played again")
        return [
            (each.task, each.team_limit, each.seed, each.checkpoint) for each, _ in replay.played
        ]

    assert played(directory) == played(directory)
    others = [played(submit(tmp_path / str(at), who=str(at))) for at in range(3)]
    assert any(other != played(directory) for other in others)


def test_nobody_has_to_play(directory):
    check = check_submission(directory, TASKS, None)
    assert check.problems == []
    assert check.summary == "None of the 12 records was played again: not re-evaluated."
    write_receipt(check, quick=False)
    assert check_receipt(read_results(directory))["equal"] == 0


def test_a_foreign_policy_needs_neither_agents_nor_a_best_checkpoint(tmp_path):
    last = [each for each in RECORDS if each.checkpoint == "last"]
    directory = submit(tmp_path / "results", last, {}, kind="foreign")
    assert problems(directory, Replayed(last)) == []
    assert len(problems(submit(tmp_path / "ours", last, {}))) > 6


def test_summaries_are_checked(directory):
    values = json.loads((directory / "results.json").read_text())
    values["records"][0]["mean_return"] = 9.0
    (directory / "results.json").write_text(json.dumps(values))
    assert problems(directory) == [
        "results.json.records[0].mean_return is 9, but the mean of its episodes is 1."
    ]
