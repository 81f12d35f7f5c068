"""A participant is led through a study to the completion code."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import Arena, serve, value, wait, wait_until

from dropin.arena.hub import Hub, Options
from dropin.arena.study import load_study

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
EXAMPLE = Path(__file__).parents[3] / "examples" / "study.toml"
SHORT = """
title = "Foraging with a partner"
completion_code = "CODE-1"

[consent]
title = "Consent"
text = "First.\\n\\nSecond <b>paragraph</b>."

[room]
game = "lbf"
rules = "paper"
team_limit = 3
agent = "lbf/gpl-q"
clock = { kind = "turns", limit_ms = 400 }

[rounds]
title = "Round {number}"
text = "Collect."

[[conditions]]
name = "only"

[[questions]]
id = "good"
kind = "scale"
text = "My partners understood what I wanted to do."
low = "not at all"
high = "completely"

[[questions]]
id = "again"
kind = "choice"
text = "Would you play with these partners again?"
options = ["yes", "no"]

[[questions]]
id = "words"
kind = "text"
text = "Is there anything that you noticed?"
required = false

[debriefing]
text = "This was it."
"""


def start(study: Path, record: Path) -> Iterator[Arena]:
    yield from serve(Hub(Options(room={}, study=load_study(study), record=record)))


@pytest.fixture
def short_study(browser, tmp_path) -> Iterator[Arena]:
    file = tmp_path / "study.toml"
    file.write_text(SHORT)
    yield from start(file, tmp_path / "results")


@pytest.fixture
def example_study(browser, tmp_path) -> Iterator[Arena]:
    yield from start(EXAMPLE, tmp_path / "results")


def go_on(page) -> None:
    """Press the button of a page and wait for the next one."""
    before = progress(page)
    page.click("#continue")
    wait_until(page, lambda: progress(page) != before or fault(page), "the next page")
    assert not fault(page)


def fault(page) -> str:
    """The sentence that says why the page cannot be left, if there is one."""
    error = page.locator("#page-error")
    return error.inner_text() if error.is_visible() else ""


def progress(page) -> str | None:
    return page.get_attribute("#progress", "aria-valuenow")


def play(page, keys: list[str]) -> None:
    """Play a round to its end."""
    before = progress(page)
    page.click("#continue")
    wait(page, "room?.mySlot === 1")
    for k in range(10_000):
        if page.locator("#round-over").is_visible():
            break
        step = value(page, "room.last?.step")
        page.keyboard.press(keys[k % len(keys)])
        wait_until(
            page,
            lambda step=step: (
                page.locator("#round-over").is_visible() or value(page, "room.last?.step") != step
            ),
        )
    page.click("#round-next")
    wait_until(page, lambda: progress(page) != before, "the page after a round")


def test_a_short_study_to_its_code(short_study, visitors, images):
    page = visitors.page(360, 740)
    page.goto(f"{short_study.address}/study?participant=P01")
    page.get_by_text("First.").wait_for()
    assert page.locator("#page-text p").count() == 2
    assert page.locator("#page-text b").count() == 0
    go_on(page)
    assert page.inner_text("#page-title") == "Round 1"
    play(page, ["ArrowUp", "ArrowLeft", " ", "ArrowDown", "ArrowRight", " "])
    page.click("#continue")
    wait_until(page, lambda: fault(page))
    assert page.locator(".question.unanswered").count() == 2
    page.locator("[data-question=good] input").nth(4).check(force=True)
    page.get_by_label("no", exact=True).check()
    page.fill("[data-question=words] textarea", "<script>alert(1)</script>")
    page.reload()
    page.get_by_text("My partners understood").wait_for()
    assert value(page, OVERFLOW) == 0
    page.set_viewport_size({"width": 900, "height": 780})
    page.screenshot(path=images / "arena-study.png")
    page.locator("[data-question=good] input").nth(4).check(force=True)
    page.get_by_label("no", exact=True).check()
    go_on(page)
    assert page.inner_text("#page-text") == "This was it."
    go_on(page)
    assert page.inner_text("#completion-code") == "CODE-1"
    assert page.locator("#continue").is_hidden()


@pytest.mark.slow
def test_the_example_study_to_its_code(example_study, visitors):
    study, page = load_study(EXAMPLE), visitors.page()
    page.goto(f"{example_study.address}/study?participant=P01")
    page.get_by_text(study.consent.title).wait_for()
    go_on(page)
    rounds = len(study.conditions) * study.rounds.number
    for number in range(rounds + 1):
        play(page, ["ArrowUp", " ", "ArrowLeft", " ", "ArrowDown", " ", "ArrowRight", " "])
        if number > 0:
            page.locator("[data-question=understood] input").nth(2).check(force=True)
            page.get_by_label("yes", exact=True).check()
            go_on(page)
    assert page.inner_text("#page-title") == study.debriefing.title
    go_on(page)
    assert page.inner_text("#completion-code") == study.completion_code
