"""The site builds, its tables come from the code, and the code on its pages runs."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

import dropin
from dropin.core import registry
from dropin.env import make

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def blocks(page: Path) -> list[str]:
    """The Python on a page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def test_the_site_builds_and_its_tables_say_what_the_code_says(tmp_path):
    # One test, so that the site is built once however many processes the tests are spread over.
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"JAX_PLATFORMS": "cpu", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for game in registry.games:
        for rules in ("paper", "reference"):
            check_game(text_of(tmp_path, f"games/{game}"), game, rules)
            check_types(text_of(tmp_path, "teammates"), game, rules)
    check_commands(re.sub(r"<[^>]+>", "", text_of(tmp_path, "commands")))
    for page in tmp_path.rglob("*.html"):
        check_page(page.read_text())
    assert not list(tmp_path.rglob("hooks*"))


def text_of(site: Path, page: str) -> str:
    return html.unescape((site / page / "index.html").read_text())


SETTINGS = {
    "lbf": ["LBF.horizon", "LBF.object_border", "Durations.initial_extra", "Observer.sight_radii"],
    "wolfpack": [
        "Wolfpack.horizon",
        "Wolfpack.shaping_weight",
        "Churn.probability",
        "WaitingTraits.radius",
    ],
    "fortattack": ["FortAttack.horizon", "FortAttack.fort_radius", "Shooting.max_waiting_time"],
}
DURATIONS = {
    ("lbf", "paper"): "(15, 25)",
    ("lbf", "reference"): "(11, 20)",
    ("wolfpack", "paper"): "(25, 35)",
    ("wolfpack", "reference"): "0.05",
    ("fortattack", "paper"): "200",
    ("fortattack", "reference"): "0.15",
}


def check_game(page, game, rules):
    agent, shared = make(game, rules=rules, team_limit=5).game.features(5)
    for each in [*agent, *shared]:
        row = rf"<td>{each.name}</td>\s*<td>{each.description}</td>\s*<td>{each.low:g}</td>"
        assert re.search(rf"{row}\s*<td>{each.high:g}</td>\s*<td>{each.absent:g}</td>", page)
    for setting in SETTINGS[game]:
        assert f"<code>{setting}</code>" in page
    assert f"<code>{DURATIONS[game, rules]}</code>" in page


def check_types(page, game, rules):
    for each in make(game, rules=rules).team.pool.types:
        assert re.search(rf"<td><code>{each.name}</code></td>\s*<td>{each.summary}</td>", page)


def check_commands(page):
    assert "$ dropin play lbf" in page
    assert "The episode ends after" in page
    assert "--team-limit" in page


def check_page(text):
    """No marker is left, and nothing is fetched from elsewhere."""
    markers = (
        "features|types|settings|recipes|agents|captures|tried|learner|fights|options|run|example"
    )
    markers += "|file|names|benchmark"
    assert not re.search(rf"<!-- ({markers}) ", text)
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="?https?:', text)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem
)
def test_the_code_on_a_page_runs(page):
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), {"__name__": "page"})


def test_every_public_module_has_its_place_in_the_reference():
    """Commands are on their own page, and packages that only pass names on are left out."""
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    for file in (ROOT / "src" / "dropin").rglob("*.py"):
        name = ".".join(file.relative_to(ROOT / "src").with_suffix("").parts)
        if (
            "._" not in name
            and not name.startswith("dropin.cli.")
            and "__all__" in file.read_text()
        ):
            assert f"::: {name}\n" in pages, name


def test_the_walks_of_the_design_page_are_counted_and_can_be_followed():
    text = (ROOT / "docs" / "design.md").read_text()
    walks = text.split("## Three walks through the code")[1].split("\n## ")[0].split("\n### ")[1:]
    assert len(walks) == 3
    for walk in walks:
        rows = re.findall(r"^\| (\d+) \| `(\S+)` \| \[?`(\S+\.py)`", walk, re.MULTILINE)
        assert [int(number) for number, _, _ in rows] == list(range(1, len(rows) + 1))
        files = {file for _, _, file in rows}
        assert f"{len(rows)} functions in {len(files)} files" in walk
        for _, function, file in rows:
            source = (ROOT / "src" / "dropin" / file).read_text()
            for name in function.split("."):
                defined = rf"^( *(def|class) {name}\b|{name} = )"
                assert re.search(defined, source, re.MULTILINE), (file, name)


@pytest.mark.slow
def test_the_training_of_the_readme_runs(tmp_path, monkeypatch):
    """With less training."""
    monkeypatch.chdir(tmp_path)

    def train(game, learner, directory, steps):
        assert (game, steps) == ("lbf", 960_000)
        return tiny.run(directory, learner)

    monkeypatch.setitem(vars(dropin), "train", train)
    names = {}
    exec(blocks(ROOT / "README.md")[1], names)
    assert names["env"].team.pool.names == ("H6", "gpl-q")


def test_other_code_of_the_readme_is_run_elsewhere():
    batch, _, gymnasium = blocks(ROOT / "README.md")
    assert (ROOT / "examples" / "batch.py").read_text().endswith(batch)
    assert gymnasium in blocks(ROOT / "docs" / "views.md")
