"""The live table of several runs."""

from rich.console import Console

from dropin.training.parallel import show_state
from dropin.training.reporters import Board, Lines

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
