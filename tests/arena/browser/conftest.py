"""A real browser and a real server. Without a Chromium or Playwright these tests are skipped."""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import Arena, Visitors, serve

from dropin.arena.hub import Hub, Options

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = Path(__file__).parents[3] / "docs" / "images"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    """Return the path of a Chromium; None if there is none, or no Playwright to drive it."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    places = [os.environ.get("DROPIN_CHROMIUM"), "/usr/bin/chromium", *map(shutil.which, names)]
    path = next((place for place in places if place and Path(place).exists()), None)
    return path if importlib.util.find_spec("playwright") else None


CHROMIUM = find_chromium()
if CHROMIUM is None:
    # One test is left, which says why: it is skipped in one line instead of one for each test.
    collect_ignore_glob = ["test_[!a]*.py"]


# For a module, not for all of them: Playwright keeps an event loop running in this thread, which
# other tests of the same process could not use theirs beside.
@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    if CHROMIUM is None:
        pytest.skip(
            "The browser tests did not run: they need Chromium (as root: apt-get install chromium,"
            " or set DROPIN_CHROMIUM to its path) and the package playwright."
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def arena(browser) -> Iterator[Arena]:
    yield from serve(Hub(Options(room={"game": "lbf", "agent": "lbf/gpl-q"})))


@pytest.fixture
def visitors(browser) -> Iterator[Visitors]:
    visitors = Visitors(browser)
    yield visitors
    for context in visitors.contexts:
        context.close()
    assert visitors.faults == []


@pytest.fixture
def images(tmp_path) -> Path:
    """Where pictures go: into the documentation only if DROPIN_SCREENSHOTS is set."""
    if os.environ.get("DROPIN_SCREENSHOTS"):
        IMAGES.mkdir(exist_ok=True)
        return IMAGES
    return tmp_path
