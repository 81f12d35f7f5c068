"""The pages of results say what the runs that are kept beside them say."""

import json
import shlex
from pathlib import Path

import pytest

from dropin.cli import main
from dropin.core import registry

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
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: "-".join(page.parts[-3:-1]))
def test_a_page_is_what_its_command_makes(page, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    told = json.loads(page.read_text())
    command = shlex.split(told["command"])[1:]
    main([*command, "--directory", str(tmp_path), "--report", "none"])
    again = json.loads((tmp_path / page.stem / page.name).read_text())
    assert again["numbers"] == told["numbers"]
    assert again["missing"] == told["missing"]
    words, drawn = (
        each.with_suffix(".md").read_text() for each in (page, tmp_path / page.stem / page.name)
    )
    before = words.split("## How it was made")[0]
    assert drawn.split("## How it was made")[0] == before
