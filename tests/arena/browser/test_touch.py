"""A phone: everything is done with a finger."""

from browsing import open_page, value, wait

ROOM = {"game": "lbf", "rules": "paper", "agent": "lbf/gpl-q", "team_limit": 3, "seed": 3}
PHONE = {"device_scale_factor": 2, "has_touch": True, "is_mobile": True}


class Finger:
    """Touches a page where the browser itself says that a finger is."""

    def __init__(self, page) -> None:
        self.page = page
        self.session = page.context.new_cdp_session(page)

    def send(self, kind: str, *points: tuple[float, float]) -> None:
        touched = [{"x": x, "y": y} for x, y in points]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touched})

    def drag(self, locator, start: float, end: float) -> None:
        """Drag along an element, from one share of its width to another."""
        locator.scroll_into_view_if_needed()
        box = locator.bounding_box()
        y = box["y"] + box["height"] / 2
        at = [box["x"] + box["width"] * (start + (end - start) * k / 8) for k in range(9)]
        self.send("touchStart", (at[0], y))
        for x in at[1:]:
            self.send("touchMove", (x, y))
            self.page.wait_for_timeout(16)
        self.send("touchEnd")


def test_a_place_is_taken_and_played_with_a_finger(arena, visitors):
    page = visitors.page(360, 740, **PHONE)
    open_page(page, arena.open_room(page, **ROOM))
    page.locator("#play").tap()
    wait(page, "!room.playing")
    board = page.locator("#board")
    board.scroll_into_view_if_needed()
    at = value(
        page,
        """(() => {
          const { board } = window.dropinArena;
          return board.painter.pixels(room.frame.scene, board.size, board.to.get("agent 1"));
        })()""",
    )
    board.tap(position={"x": at["x"], "y": at["y"]})
    assert "mate 1" in page.inner_text("#take-title")
    page.locator("#take-confirm").tap()
    wait(page, "room.mySlot === 1")
    taken = value(page, "room.last.step")
    for name in ("north", "west", "load", "south"):
        action, step = value(page, f"[room.game.actions.indexOf('{name}'), room.last.step]")
        page.locator(f"#player [data-action='{action}']").tap()
        wait(page, f"room.last.step > {step}")
        # Once: a tap is a touch, and the click that browsers make of it.
        assert value(page, "[room.last.step, room.last.actions[1]]") == [step + 1, action]
    assert value(page, "scrollX") == 0

    last = value(page, "room.last.step")
    assert last == taken + 4
    end = value(page, "Number(document.getElementById('seek').max)")
    finger, slider = Finger(page), page.locator("#seek")
    finger.drag(slider, last / end, 0.0)
    assert value(page, "room.cursor") == 0
    assert not value(page, "room.live")
    page.wait_for_timeout(50)
    assert page.inner_text("#seek-readout") == f"step 0 of {last}"
    finger.drag(slider, 0.0, 0.99)
    assert value(page, "[room.cursor, room.live]") == [last, True]
    assert value(page, "scrollX") == 0
    page.locator("#release").tap()
    wait(page, "room.mySlot === null")
