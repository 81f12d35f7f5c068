"""Make the GIF of a person who drops in: `python docs/arena_gif.py`, with Chromium installed."""

import io
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

OUT = Path(__file__).parent / "images" / "arena.gif"
SIZE = {"width": 1240, "height": 800}
WIDTH, COLOURS = 860, 96
WATCHED, PLAYED = 7, 22
"""Steps before and after the person comes."""
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


class Film:
    """Pictures of a page, and how long each is shown."""

    def __init__(self, page: Page):
        self.page = page
        self.pictures: list[Image.Image] = []
        self.times: list[int] = []

    def shoot(self, milliseconds: int) -> None:
        """Add a picture."""
        with Image.open(io.BytesIO(self.page.screenshot())) as shot:
            height = round(WIDTH * shot.height / shot.width)
            self.pictures.append(
                shot.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
            )
        self.times.append(milliseconds)

    def save(self, path: Path) -> None:
        """Write the GIF, with one palette for all pictures."""
        palette = self.pictures[len(self.pictures) // 2].quantize(COLOURS, dither=Image.Dither.NONE)
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
    for _ in range(PLAYED):
        length = page.evaluate("window.dropinArena.room.frames.length")
        page.keyboard.press(next_key(page.evaluate("window.dropinArena.room.last.scene")))
        wait(page, f"room.frames.length > {length}")
        page.wait_for_timeout(600)
        captured = page.evaluate("window.dropinArena.room.last.scene.marks.length > 0")
        film.shoot(1300 if captured else 380)
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
