"""The files of the web page: contrast, the content security policy, links between them."""

import re
from html.parser import HTMLParser

import pytest

from dropin.arena.assets import STATIC

TOKENS = (STATIC / "tokens.css").read_text()
PAGES = {"index.html": "main.js", "study.html": "study.js"}
SCRIPTS = sorted(STATIC.glob("*.js"))
AA_TEXT, AA_PARTS = 4.5, 3.0
"""Smallest contrast of text, and of parts of the page that have to be told apart (WCAG 2.2 AA)."""
MOST_SHADE = 0.42
"""How much of a colour the darkest cell of a table has, see panels.css."""

Colour = tuple[float, float, float]


def read_colours() -> dict[str, dict[str, Colour]]:
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", TOKENS)
    assert len(found) > 25
    names = ("light", "dark")
    return {
        theme: {name: as_rgb(values[which]) for name, *values in found}
        for which, theme in enumerate(names)
    }


def as_rgb(code: str) -> Colour:
    red, green, blue = (int(code[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue


def mix(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (share * a + (1 - share) * b for a, b in zip(one, other, strict=True))
    return red, green, blue


def luminance(colour: Colour) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Colour, other: Colour) -> float:
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


GROUNDS = ("bg", "surface", "raised")
AGENTS = (*(f"agent-{slot}" for slot in range(8)), "mate", "opponent")
TEXT = [
    *((ink, ground) for ink in ("ink", "muted") for ground in GROUNDS),
    *((ink, "surface") for ink in ("accent", "good", "bad", "newcomer")),
    *(("ink", ground) for ground in ("accent-soft", "newcomer-soft", "fort", "board-alt")),
    *(("on-agent", agent) for agent in AGENTS),
    ("on-accent", "accent"),
    ("newcomer", "newcomer-soft"),
    ("muted", "board-alt"),
    ("bg", "ink"),
]
PARTS = [
    *((agent, ground) for agent in AGENTS for ground in ("board", "board-alt")),
    *((what, "board-alt") for what in ("object", "prey", "fort-line", "bad", "newcomer", "good")),
    *(("edge", ground) for ground in ("surface", "raised", "newcomer-soft")),
    *(("focus", ground) for ground in GROUNDS),
    ("newcomer", "surface"),
    ("pair", "surface"),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_parts_can_be_told_from_their_ground(theme):
    colours = read_colours()[theme]
    for least, pairs in ((AA_TEXT, TEXT), (AA_PARTS, PARTS)):
        for front, ground in pairs:
            ratio = contrast(colours[front], colours[ground])
            assert ratio >= least, f"{front} on {ground}, {theme}: {ratio:.2f}"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("shade", ["accent", "bad"])
def test_numbers_can_be_read_in_the_darkest_cell(theme, shade):
    colours = read_colours()[theme]
    assert f"{MOST_SHADE:.0%}".replace("%", "") in (STATIC / "panels.css").read_text()
    ground = mix(colours[shade], colours["raised"], MOST_SHADE)
    assert contrast(colours["ink"], ground) >= AA_TEXT


def test_the_contrast_of_black_and_white_is_21():
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)


class Reader(HTMLParser):
    """Collects what a page refers to and what the content security policy would block."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.files: list[str] = []
        self.blocked: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if "id" in values:
            self.ids.append(values["id"] or "")
        for name in ("aria-labelledby", "aria-controls", "for"):
            self.references += (values.get(name) or "").split()
        for name, value in attrs:
            if name in ("src", "href") and (value or "").startswith("/static/"):
                self.files.append((value or "").removeprefix("/static/"))
            if name == "style" or name.startswith("on") or (value or "").startswith("http"):
                self.blocked.append(f"{tag} {name}")
        if tag in ("style", "base") or (tag == "script" and "src" not in values):
            self.blocked.append(tag)


def read_page(name: str) -> Reader:
    reader = Reader()
    reader.feed((STATIC / name).read_text())
    return reader


@pytest.mark.parametrize("page", [*PAGES, "refused.html"])
def test_pages_refer_to_files_and_elements_that_exist(page):
    reader = read_page(page)
    assert reader.blocked == []
    assert len(reader.ids) == len(set(reader.ids))
    assert set(reader.references) <= set(reader.ids)
    for file in reader.files:
        assert (STATIC / file).is_file(), file


def imports_of(script: str) -> set[str]:
    """Return a script and all that it imports."""
    found, waiting = set(), [script]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += re.findall(r'from "\./([\w.]+)"', (STATIC / name).read_text())
    return found


@pytest.mark.parametrize(("page", "script"), PAGES.items())
def test_scripts_exist_and_find_their_elements(page, script):
    ids = set(read_page(page).ids)
    for name in imports_of(script):
        source = (STATIC / name).read_text()
        # Classes that only the page of a room uses are in modules that it shares with a study.
        used = set(re.findall(r'byId\("([\w-]+)"\)', source))
        if page == "study.html":
            source = source.split("export class TakeDialog")[0]
            used = set(re.findall(r'byId\("([\w-]+)"\)', source))
        if page == "index.html" or name in ("study.js", "player.js", "board.js", "room.js"):
            assert used <= ids, (name, used - ids)


def test_every_script_is_used():
    used = set().union(*(imports_of(script) for script in PAGES.values()))
    assert {path.name for path in SCRIPTS} == used | {"theme.js"}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_text_of_others_never_becomes_markup(path):
    source = path.read_text()
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert name not in source
    assert not re.search(r"https?://", source)
