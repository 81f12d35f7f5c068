"""Make the GIF of a person who drops in: `python docs/arena_gif.py`, with Chromium installed."""

import io
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

OUT = Path(__file__).parent / "images" / "arena.gif"
SIZE = {"width": 1240, "height": 880}
WIDTH, COLOURS = 860, 200
LEAST_DIFFERENCE, MOST_COUNTED = 4, 2000
"""Between two colours of the palette, and how often a colour counts in one picture."""
WATCHED, CAPTURES, AFTERWARDS, LONGEST = 7, 2, 3, 40
"""Steps before the person comes; its captures; steps after the last, and with the person in all."""
SLOT = 2
KEYS = {(-1, 0): "ArrowUp", (1, 0): "ArrowDown", (0, -1): "ArrowLeft", (0, 1): "ArrowRight"}
COMMAND = "arena --game wolfpack --agent wolfpack/gpl-q --team-limit 4 --seed 3 --port 0"


def wait(page: Page, expression: str) -> None:
    """Wait until an expression about `room` is true."""
    function = f"() => {{ const room = window.dropinArena?.room; return Boolean({expression}); }}"
    while not page.evaluate(function):
        time.sleep(0.02)


def next_key(scene: dict) -> str:
    """Return the key that leads the person towards the nearest prey, around the others."""
    agents = {each["slot"]: (each["row"], each["column"]) for each in scene["agents"]}
    row, column = agents[SLOT]
    prey = [(each["row"], each["column"]) for each in scene["items"] if not each["captured"]]
    taken = {*agents.values(), *prey}

    def distance(cell: tuple[int, int]) -> int:
        return min((abs(cell[0] - r) + abs(cell[1] - c) for r, c in prey), default=0)

    moves = [(row + down, column + right) for down, right in KEYS]
    free = [cell for cell in moves if cell not in taken and min(cell) >= 0 and max(cell) < 10]
    best = min([(row, column), *free], key=distance)
    return KEYS.get((best[0] - row, best[1] - column), ".")


def common_colours(pictures: list[Image.Image]) -> Image.Image:
    """Return a palette of the most frequent colours that differ from each other.

    The page has few colours, but some of them only on small figures: methods that average lose
    these.
    """
    counts: Counter[tuple[int, int, int]] = Counter()
    for picture in pictures:
        found = picture.getcolors(1 << 24) or []
        counts.update({colour: min(n, MOST_COUNTED) for n, colour in found})  # pyright: ignore
    chosen: list[tuple[int, int, int]] = []
    for colour, _ in counts.most_common(20_000):
        near = (max(abs(a - b) for a, b in zip(colour, each, strict=True)) for each in chosen)
        if min(near, default=255) >= LEAST_DIFFERENCE:
            chosen.append(colour)
        if len(chosen) == COLOURS:
            break
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for colour in chosen for value in colour])
    return palette


class Film:
    """Pictures of a page, and how long each is shown."""

    def __init__(self, page: Page):
        self.page = page
        self.pictures: list[Image.Image] = []
        self.times: list[int] = []

    def shoot(self, milliseconds: int) -> None:
        """Add a picture."""
        self.page.evaluate("scrollTo(0, 0)")
        with Image.open(io.BytesIO(self.page.screenshot())) as shot:
            height = round(WIDTH * shot.height / shot.width)
            self.pictures.append(
                shot.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
            )
        self.times.append(milliseconds)

    def save(self, path: Path) -> None:
        """Write the GIF, with one palette for all pictures."""
        palette = common_colours(self.pictures)
        frames = [
            each.quantize(palette=palette, dither=Image.Dither.NONE) for each in self.pictures
        ]
        frames[0].save(
            path,
            save_all=True,
            append_images=frames[1:],
            duration=self.times,
            loop=0,
            optimize=True,
            disposal=1,
        )


def act(page: Page) -> Film:
    """Watch for a while, take a place, and hunt."""
    film = Film(page)
    wait(page, "room?.frames.length > 1")
    page.click("#play")
    page.locator("#stage").focus()
    for _ in range(WATCHED):
        length = page.evaluate("window.dropinArena.room.frames.length")
        page.click("#step-forward")
        wait(page, f"room.frames.length > {length}")
        page.wait_for_timeout(600)
        film.shoot(350)
    page.click(f"#team [data-take='{SLOT}']")
    page.wait_for_timeout(300)
    film.shoot(700)
    page.keyboard.type("Ada")
    film.shoot(900)
    page.keyboard.press("Enter")
    wait(page, f"room.mySlot === {SLOT}")
    page.wait_for_timeout(900)
    film.shoot(1400)
    left, captures = LONGEST, 0
    while left > 0:
        length = page.evaluate("window.dropinArena.room.frames.length")
        page.keyboard.press(next_key(page.evaluate("window.dropinArena.room.last.scene")))
        wait(page, f"room.frames.length > {length}")
        page.wait_for_timeout(600)
        marks = page.evaluate("window.dropinArena.room.last.scene.marks")
        mine = any(SLOT in each["slots"] for each in marks)
        film.shoot(1500 if mine else 380)
        captures += mine
        left = min(left - 1, AFTERWARDS) if mine and captures == CAPTURES else left - 1
    return film


def main() -> None:
    chromium = os.environ.get("DROPIN_CHROMIUM") or shutil.which("chromium")
    command = [sys.executable, "-c", "from dropin.cli import main; main()", *COMMAND.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found is not None, "The arena has not started."
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
                )
                page = browser.new_page(viewport=SIZE)  # pyright: ignore[reportArgumentType]
                page.goto(found[0])
                act(page).save(OUT)
                browser.close()
        finally:
            server.terminate()
    print(f"{OUT}: {OUT.stat().st_size / 2**20:.2f} MiB")


if __name__ == "__main__":
    main()
