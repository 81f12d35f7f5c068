"""What the page looks like: themes, phones, and the pictures of the documentation."""

import pytest
from browsing import open_page, value, wait, wait_until
from PIL import Image

LBF = {"game": "lbf", "rules": "paper", "agent": "lbf/gpl-q", "team_limit": 3, "seed": 3}
PHONE = {"device_scale_factor": 2, "has_touch": True, "is_mobile": True}
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def play_to(page, step: str) -> None:
    """Let a room run to the step that an expression gives (-1: not yet), and stop there."""
    page.locator("#speed").focus()
    page.keyboard.press("End")
    wait(page, f"{step} >= 0 && room.frames.length > {step} + 1")
    page.click("#play")
    wait(page, "!room.playing")
    value(page, f"room.seek({step})")
    value(page, "room.send({ type: 'speed', per_second: 4 })")
    page.locator("#stage").focus()
    page.wait_for_timeout(700)


def take(page, slot: int) -> None:
    page.click(f"#team [data-take='{slot}']")
    page.fill("#take-name", "Ada")
    page.click("#take-confirm")
    wait(page, f"room.mySlot === {slot}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_in_both_themes(arena, visitors, scheme):
    page = visitors.page(360, 740, color_scheme=scheme, **PHONE)
    open_page(page, arena.open_room(page, **LBF))
    take(page, 1)
    page.wait_for_timeout(100)
    for panel in ("predictions", "utilities", "pairs", "types", "story"):
        page.click(f"#tab-{panel}")
        page.wait_for_timeout(50)
        assert value(page, OVERFLOW) == 0, panel
        # Numbers may be long: then a table scrolls, not the page.
        page.evaluate(
            "for (const cell of document.querySelectorAll('td')) cell.textContent = '-0.00001234'"
        )
        assert value(page, OVERFLOW) == 0, panel
    for button in page.locator("#player button:visible").all():
        box = button.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
        assert box["height"] >= 32
    page.click("#open-setup")
    sheet = "document.getElementById('setup')"
    assert value(page, f"{sheet}.scrollWidth - {sheet}.clientWidth") == 0
    assert value(page, OVERFLOW) == 0
    ground = value(page, "getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("Escape")
    page.evaluate("scrollTo(0, 0)")
    page.click("#theme")
    other = value(page, "getComputedStyle(document.body).backgroundColor")
    assert {ground, other} == {"rgb(244, 243, 239)", "rgb(16, 20, 24)"}
    page.reload()
    wait(page, "room?.frame")
    assert value(page, "getComputedStyle(document.body).backgroundColor") == other


def test_controls_have_names_and_can_be_reached_by_tab(arena, visitors):
    page = visitors.page()
    open_page(page, arena.open_room(page, **LBF))
    page.wait_for_timeout(100)
    nameless = """[...document.querySelectorAll("button, input, select, a, canvas[role]")]
        .filter((each) => !(each.ariaLabel || each.textContent.trim() || each.labels?.length))
        .map((each) => each.outerHTML)"""
    assert value(page, nameless) == []
    reached = []
    for _ in range(45):
        page.keyboard.press("Tab")
        reached.append(value(page, "document.activeElement.id || document.activeElement.className"))
    for name in ("open-setup", "open-share", "theme", "open-help", "seek", "play", "restart"):
        assert name in reached
    assert {"board", "next-episode", "speed", "tab-predictions", "types-team"} <= set(reached)
    assert "agent-select" in reached


@pytest.mark.slow
def test_pictures_of_the_documentation(arena, visitors, images):
    page = visitors.page(1360, 860)
    open_page(page, arena.open_room(page, **LBF | {"team_limit": 5, "seed": 4}))
    page.click("#tab-predictions")
    play_to(page, "room.frames.findIndex((each) => each.entered.length)")
    page.screenshot(path=images / "arena-lbf.png")
    page.locator(".mind").screenshot(path=images / "arena-predictions.png")

    page = visitors.page(1360, 860, color_scheme="dark")
    wolves = {"game": "wolfpack", "agent": "wolfpack/gpl-q", "team_limit": 4, "seed": 3}
    open_page(page, arena.open_room(page, **wolves))
    page.click("#tab-pairs")
    page.check("#show-edges")
    play_to(page, "34")
    page.screenshot(path=images / "arena-wolfpack-dark.png")
    page.click("#tab-types")
    page.check("#types-map")
    page.wait_for_timeout(200)
    page.locator(".mind").screenshot(path=images / "arena-types-dark.png")

    page = visitors.page(1360, 860)
    known = page.request.get(f"{arena.address}/api/catalogue").json()["agents"]
    trained = any(each["id"] == "fortattack/gpl-q" for each in known)
    agent = "fortattack/gpl-q" if trained else "G4"
    open_page(page, arena.open_room(page, game="fortattack", agent=agent, team_limit=3, seed=3))
    hits = "each.scene.lasers.some((laser) => laser.hits)"
    play_to(page, f"room.frames.findIndex((each) => {hits})")
    page.screenshot(path=images / "arena-fortattack.png")
    page.click("#open-setup")
    page.wait_for_timeout(200)
    page.screenshot(path=images / "arena-setup.png")

    page = visitors.page(360, 760, **PHONE)
    open_page(page, arena.open_room(page, **wolves))
    wait(page, "room.frames.length > 5")
    take(page, 1)
    for key in ("ArrowDown", "ArrowRight"):
        length = value(page, "room.frames.length")
        page.keyboard.press(key)
        wait(page, f"room.frames.length > {length}")
    wait_until(page, lambda: not page.locator("#notes li").count())
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=images / "arena-phone.png")
    for path in images.glob("arena-*.png"):
        with Image.open(path) as image:
            assert len(image.convert("RGB").getcolors(1 << 24) or ()) > 100, path
