"""The page of an experiment and its files."""

import json
from html.parser import HTMLParser

import pytest
from made_up import make_experiment, write_run

from dropin.experiments import Options

OPTIONS = Options(steps=640, seeds=2, games=("lbf",), learners=("gpl-q", "ql"))


class Tags(HTMLParser):
    """Counts the cells of table rows, and checks that every tag is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.started = [], [], []

    def handle_starttag(self, tag, attrs):
        self.started.append((tag, dict(attrs)))
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
    for job in make_experiment(tmp_path / "out", "table2", OPTIONS).jobs:
        level = float(len(job.config.learner) + job.config.seed)
        write_run(job.run.path, job.config, {3: [0.0, level], 5: [0.0, level / 2]})
    return make_experiment(tmp_path / "out", "table2", OPTIONS)


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
    for tag, attributes in tags.started:
        if tag == "img":
            picture = html.parent / attributes["src"]
            assert picture.read_bytes().startswith(b"\x89PNG")
    page = json.loads((html.parent / "table2.json").read_text())
    assert page["numbers"]["lbf gpl-q"]["runs"] == [2.5, 3.0]
    assert page["small"]
    assert len(page["runs"]) == 4
    assert page["missing"] == []


def test_missing_runs_are_named(experiment):
    options = Options(steps=640, seeds=3, games=("lbf",))
    text = make_experiment(experiment.directory, "table2", options).write("x")[0].read_text()
    assert "20 of 24 runs are missing (lbf gpl-q seed 2, lbf gpl-spi seed 0," in text
    assert "and 14 more)" in text
