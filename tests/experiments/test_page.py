"""The page of an experiment, its files, and the command that makes it."""

import json
from html.parser import HTMLParser

import pytest
from made_up import make_up

from dropin.cli import main
from dropin.experiments.answers import Answers
from dropin.experiments.choices import Choices
from dropin.experiments.items import ITEMS
from dropin.experiments.reproduce import Experiment
from dropin.experiments.runs import Kept
from dropin.training.config import run_config

CHOICES = Choices(steps=640, seeds=2, games=("lbf",), learners=("gpl-q", "ql"))
OPTIONS = ("--steps", "640", "--seeds", "2", "--games", "lbf", "--learners", "gpl-q", "ql")


class Tags(HTMLParser):
    """Counts what is opened, and sees that it is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.seen = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += 1
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def experiment(tmp_path):
    whole = Experiment(ITEMS["table2"], CHOICES, tmp_path / "out")
    for job in whole.plan():
        level = float(len(job.config.learner) + job.config.seed)
        make_up(job.kept.path, job.config, {3: [0.0, level], 5: [0.0, level / 2]})
    return whole


def test_markdown_html_and_json_say_the_same(experiment):
    markdown, html = experiment.write("dropin reproduce table2 <&>")
    text = markdown.read_text()
    assert "# Generalisation to larger teams (table 2)" in text
    assert "A small version: runs of 640 steps." in text
    assert "$ dropin reproduce table2 <&>" in text
    assert "2.75 ± 3.18" in text
    tables = [block for block in text.split("\n\n") if block.startswith("| ")]
    assert len(tables) == 3
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1
    tags = Tags()
    tags.feed(html.read_text())
    assert tags.open == []
    lengths = [line.count("|") - 1 for table in tables for line in table.splitlines()]
    assert len(tags.rows) == len(lengths) - len(tables)
    assert "&lt;&amp;&gt;" in html.read_text()
    assert "A small version" in html.read_text()
    for tag, attributes in tags.seen:
        if tag == "img":
            picture = html.parent / attributes["src"]
            assert picture.read_bytes().startswith(b"\x89PNG")
    told = json.loads((html.parent / "table2.json").read_text())
    assert told["numbers"]["lbf gpl-q"]["runs"] == [2.5, 3.0]
    assert told["small"]
    assert len(told["runs"]) == 4
    assert told["missing"] == []


def test_what_is_missing_is_said(experiment):
    more = Experiment(ITEMS["table2"], Choices(steps=640, seeds=3, games=("lbf",)),
                      experiment.directory)  # fmt: skip
    text = more.write("x")[0].read_text()
    assert "20 of 24 runs are missing (lbf gpl-q seed 2, lbf gpl-spi seed 0," in text


def test_an_answer_is_worked_out_once(tmp_path, monkeypatch):
    run = Kept(tmp_path, run_config("lbf", "ql"))
    monkeypatch.setattr(Kept, "agent", lambda self, step: f"agent of {step}")
    answers, asked = Answers(tmp_path / "answers"), []

    def find(agent):
        asked.append(agent)
        return {"found": 1.5}

    for _ in range(2):
        assert answers.ask("what", run, 7, find, steps=3) == {"found": 1.5}
    assert asked == ["agent of 7"]
    answers.ask("what", run, 8, find, steps=3)
    answers.ask("what", run, 7, find, steps=4)
    answers.ask("else", run, 7, find, steps=3)
    assert len(asked) == 4
    for each in (tmp_path / "answers").iterdir():
        each.write_text("{")
    assert answers.ask("what", run, 7, find, steps=3) == {"found": 1.5}
    assert len(asked) == 5


def command(*arguments):
    try:
        main(["reproduce", *arguments])
    except SystemExit as ended:
        return ended.code
    return 0


def test_the_list_names_every_experiment(capsys):
    assert command("--list") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ITEMS)


def test_the_plan_says_how_much_is_left(experiment, capsys, tmp_path):
    place = ("--directory", str(experiment.directory))
    assert command("table2", *OPTIONS, *place, "--plan") == 0
    out = capsys.readouterr().out
    assert "A small version: runs of 640 steps." in out
    assert "About" not in out
    assert command("table2", *OPTIONS, "--directory", str(tmp_path / "empty"), "--plan") == 0
    out = capsys.readouterr().out
    assert "About" in out
    assert not (tmp_path / "empty").exists()


def test_drawing_trains_nothing(experiment, capsys, tmp_path):
    place = ("--directory", str(tmp_path / "new"), "--use", str(experiment.directory))
    assert command("table2", *OPTIONS, *place, "--draw") == 0
    pages = capsys.readouterr().out.splitlines()[-2:]
    assert [each.rsplit("/", 1)[1] for each in pages] == ["table2.md", "table2.html"]
    assert sorted(each.name for each in (tmp_path / "new").iterdir()) == ["table2"]


@pytest.mark.parametrize(
    ("arguments", "said"),
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
def test_wrong_input_gets_one_sentence(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command(*arguments) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
