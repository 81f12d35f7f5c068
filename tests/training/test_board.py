"""The live table of several runs."""

import json
from io import StringIO

import pytest
from rich.console import Console

from dropin.training.parallel import show_state
from dropin.training.reporters import Board, Json, Lines, OneOfSeveral, Reporter
from dropin.training.services import Separate, Several

ROW = {
    "step": 640, "steps": 6400, "rate": 1234.0, "left": "0:05", "return": 1.5, "episodes": 2,
    "value_loss": 0.25, "epsilon": 1.0, "team_size": 3.0, "temperature": None, "state": "",
}  # fmt: skip


def text(board):
    with board.console.capture() as captured:
        board.console.print(board._draw())
    return captured.get()


def test_a_few_runs_are_all_in_the_table():
    board = Board(Console(width=160))
    show_state(board, "first", "waiting")
    show_state(board, "second", "done")
    board.show("third", **ROW)
    show_state(board, "fourth", "failed: there was no room")
    lines = text(board).splitlines()
    assert [line.split()[0] for line in lines] == ["run", "first", "second", "third", "fourth"]
    assert "waiting" in lines[1]
    assert "done" in lines[2]
    assert "1,234" in lines[3]
    assert "1.50" in lines[3]
    assert lines[4].strip() == "fourth failed: there was no room"


def test_of_many_runs_the_idle_ones_are_counted():
    board = Board(Console(width=160))
    for number in range(40):
        show_state(board, f"run {number}", "waiting" if number > 20 else "done")
    board.show("run 20", **ROW)
    show_state(board, "run 21", "failed: it ended")
    lines = text(board).splitlines()
    assert lines[0] == "40 runs: 18 waiting, 20 done"
    assert [line.split(maxsplit=2)[:2] for line in lines[2:]] == [["run", "20"], ["run", "21"]]


def test_lines_say_how_a_run_ended(capsys):
    lines = Lines()
    show_state(lines, "one", "waiting")
    show_state(lines, "one", "done")
    show_state(lines, "two", "failed: it ended")
    assert capsys.readouterr().out.splitlines() == ["one: done", "two: failed: it ended"]


METRICS = {"step": 640, "return": 1.5, "value_loss": 0.25, "team_size": 3.0}
EVALUATION = {
    "step": 640, "team_limit": 5, "teammates": "strangers", "mode": "greedy", "mean_return": 2.5,
    "ci_low": 2.0, "ci_high": 3.0, "unshaped_mean_return": None,
}  # fmt: skip


def report(reporter):
    """What two runs report, one of which has begun only."""
    for name in ("one", "two"):
        OneOfSeveral(reporter, name).begin(f"the title of {name}", 0, 6400)
    one = OneOfSeveral(reporter, "one")
    one.begin("the title of one", 0, 6400)
    one.metrics(METRICS)
    one.evaluation(EVALUATION)
    one.say("hello")


def test_the_table_has_a_row_for_each_run_in_one_process():
    printed = StringIO()
    board = Board(Console(width=160, file=printed))
    report(board)
    lines = text(board).splitlines()
    assert [line.split()[0] for line in lines] == ["run", "one", "two"]
    assert "1.50" in lines[1]
    assert "compiling" in lines[2]
    assert "title" not in lines[0]
    said = ["one: step 640, greedy, team limit 5: return 2.50 (2.00 to 3.00)", "one: hello"]
    assert printed.getvalue().splitlines() == said


def test_lines_have_the_name_of_the_run(capsys):
    report(Lines())
    titles = [f"{name}: the title of {name}" for name in ("one", "two", "one")]
    said = ["one: step 640, greedy, team limit 5: return 2.50 (2.00 to 3.00)", "one: hello"]
    assert capsys.readouterr().out.splitlines() == [*titles, *said]


def test_json_has_the_name_of_the_run(capsys):
    report(Json())
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["run"], each["kind"]) for each in found] == [
        ("one", "begin"), ("two", "begin"), ("one", "begin"), ("one", "metrics"),
        ("one", "evaluation"), ("one", "say"),
    ]  # fmt: skip
    assert found[4] == {"run": "one", "kind": "evaluation", **EVALUATION}


class Rows(Reporter):
    """Keeps everything."""

    def __init__(self):
        self.found = []

    def begin(self, title, step, steps):
        self.found.append((title, step, steps))

    def metrics(self, row):
        self.found.append(row)

    def evaluation(self, row):
        self.found.append(row)

    def say(self, sentence):
        self.found.append(sentence)

    def __exit__(self, *error):
        self.found.append("ended")


def test_a_reporter_of_ones_own_gets_the_names_of_the_runs():
    reporter = Rows()
    report(Several([reporter]))
    assert reporter.found[1:] == [
        ("two: the title of two", 0, 6400),
        ("one: the title of one", 0, 6400),
        {"run": "one", **METRICS},
        {"run": "one", **EVALUATION},
        "one: hello",
    ]


def test_logs_are_kept_apart():
    logs = {"one": Rows(), "two": Rows()}
    with Separate(logs) as reporter:
        report(reporter)
    assert logs["one"].found == [METRICS, EVALUATION, "ended"]
    assert logs["two"].found == ["ended"]
    with pytest.raises(KeyError):
        OneOfSeveral(reporter, "three").evaluation(EVALUATION)
