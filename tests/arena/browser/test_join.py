"""Dropping in: with the keyboard alone, with others in the room, and after a lost connection."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from browsing import open_page, value, wait, wait_until

AGENT = "lbf/gpl-q"
ROOM = {"game": "lbf", "rules": "paper", "agent": AGENT, "team_limit": 3, "seed": 3}
MOVES = {"ArrowUp": (-1, 0), "ArrowDown": (1, 0), "ArrowLeft": (0, -1), "ArrowRight": (0, 1)}


def take(page, slot: int, name: str) -> None:
    """Take a place with the mouse."""
    page.click(f"#team [data-take='{slot}']")
    page.fill("#take-name", name)
    page.click("#take-confirm")
    wait(page, f"room.mySlot === {slot}")


def cell(page, slot: int) -> list[int]:
    found = f"room.last.scene.agents.find((each) => each.slot === {slot})"
    return value(page, f"[{found}.row, {found}.column]")


def press(page, key: str) -> None:
    """Press a key in turns, and wait for the next state."""
    length = value(page, "room.frames.length")
    page.keyboard.press(key)
    wait(page, f"room.frames.length > {length} || room.last.done")


def press_until_moved(page, slot: int) -> tuple[str, list[int], list[int]]:
    """Try directions until one is free; return the key and both cells."""
    for key in MOVES:
        before = cell(page, slot)
        press(page, key)
        if cell(page, slot) != before:
            return key, before, cell(page, slot)
    raise AssertionError("No direction was free.")


def test_a_place_is_taken_and_played_with_the_keyboard_alone(arena, visitors):
    page = visitors.page()
    open_page(page, arena.open_room(page, **ROOM))
    page.locator("#team [data-take='1']").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "take-name"
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    wait(page, "room.mySlot === 1")
    assert value(page, "room.me.name") == "Ada"
    step = value(page, "room.last.step")
    assert value(page, "room.last.entered") == [1]
    assert value(page, "room.last.mind.accuracy[1]") == [0, 0]
    page.wait_for_timeout(100)
    assert page.inner_text("#player-name") == "You are mate 1"
    assert page.inner_text("#player-state") == "Your move."
    assert page.locator("#countdown").is_visible()
    page.wait_for_timeout(300)
    assert value(page, "room.last.step") == step
    key, before, after = press_until_moved(page, 1)
    assert [after[k] - before[k] for k in (0, 1)] == list(MOVES[key])
    times = value(page, "window.dropinArena.latency")
    assert times
    assert all(0 < each["drawn"] < 5000 for each in times)
    page.locator("#release").focus()
    page.keyboard.press("Enter")
    wait(page, "room.mySlot === null")
    page.wait_for_timeout(50)
    assert page.locator("#player").is_hidden()


def test_a_place_is_taken_on_the_board_and_played_with_buttons(arena, visitors):
    page = visitors.page()
    open_page(page, arena.open_room(page, **ROOM))
    page.click("#play")
    at = value(
        page,
        """(() => {
          const { board } = window.dropinArena;
          return board.painter.pixels(room.frame.scene, board.size, board.to.get("agent 2"));
        })()""",
    )
    page.locator("#board").click(position={"x": at["x"], "y": at["y"]})
    assert "mate 2" in page.inner_text("#take-title")
    page.click("#take-confirm")
    wait(page, "room.mySlot === 2")
    north = value(page, "room.game.actions.indexOf('north')")
    length = value(page, "room.frames.length")
    page.click(f"#player [data-action='{north}']")
    wait(page, f"room.frames.length === {length + 1}")
    assert value(page, "room.last.actions[2]") == north


def test_two_people_share_a_room(arena, visitors):
    address = arena.open_room(page := visitors.page(), **ROOM)
    other = visitors.page()
    open_page(page, address)
    take(page, 1, "Ada")
    open_page(other, address)
    take(other, 2, "Ben <b>")
    wait(page, "room.people.length === 2 && room.people.some((each) => each.slot === 2)")
    page.wait_for_timeout(100)
    assert "Ben <b> (mate 2)" in page.inner_text("#team")
    assert page.locator("#team b").count() == 0
    step = value(page, "room.last.step")
    page.keyboard.press("ArrowUp")
    wait(page, "room.waitingFor.join() === '2'")
    page.wait_for_timeout(200)
    assert value(page, "room.last.step") == step
    assert page.inner_text("#player-state") == "Waiting for Ben <b>."
    other.keyboard.press("ArrowDown")
    for each in (page, other):
        wait(each, f"room.last.step === {step + 1}")
    assert value(page, "JSON.stringify(room.last)") == value(other, "JSON.stringify(room.last)")
    other.context.close()
    wait(page, "room.people.length === 1")
    assert value(page, "room.last.agents[2].person") is None


@contextmanager
def proxy(port: int) -> "Iterator[tuple[int, Cut]]":
    """A line to a port that can be cut."""
    cut = Cut()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=cut.accept, args=(listener, port), daemon=True)
        thread.start()
        yield listener.getsockname()[1], cut
        cut.through()
    listener.close()


class Cut:
    """Passes bytes on between sockets, until it is told to cut them."""

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []
        self.dead = False

    def accept(self, listener: socket.socket, port: int) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            if self.dead:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", port))
            self.sockets += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.pass_on, args=(one, other), daemon=True).start()

    def pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def through(self) -> None:
        """Cut all connections, and let nobody through."""
        self.dead = True
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self.sockets.clear()


def test_a_lost_connection_gives_the_place_away_and_comes_back(arena, visitors):
    page, witness = visitors.page(), visitors.page()
    address = arena.open_room(page, **ROOM)
    with proxy(int(arena.address.rpartition(":")[2])) as (port, cut):
        open_page(page, address.replace(arena.address, f"http://127.0.0.1:{port}"))
        open_page(witness, address)
        take(page, 1, "Ada")
        wait(witness, "room.last.agents[1].person !== null")
        press(page, "ArrowUp")
        before = value(page, "room.you")
        cut.through()
        wait(page, "room.connection.state !== 'open'")
        page.wait_for_timeout(100)
        assert page.locator("#lost").is_visible()
        wait(witness, "room.last.agents[1].person === null")
        assert value(witness, "room.people.length") == 1
        length = value(witness, "room.frames.length")
        wait(witness, f"room.frames.length > {length} || room.episode > 0")
        cut.dead = False
        wait(page, f"room.you !== '{before}' && room.people.length === 2")
        assert value(page, "room.connection.state") == "open"
        assert value(page, "room.mySlot") is None
        page.wait_for_timeout(100)
        assert page.locator("#lost").is_hidden()
        assert "Your place was given away" in page.inner_text("#notes")
        page.close()
    # The browser reports that it could not connect meanwhile.
    visitors.faults[:] = [each for each in visitors.faults if "WebSocket" not in each]


@pytest.mark.slow
def test_real_time_goes_on_without_a_key_and_repeats_one_that_is_held(arena, visitors):
    page = visitors.page()
    clock = {"kind": "real_time", "tick_ms": 200}
    open_page(page, arena.open_room(page, **ROOM, clock=clock))
    take(page, 1, "Ada")
    length = value(page, "room.frames.length")
    wait(page, f"room.frames.length > {length + 2}")
    assert value(page, "room.last.actions[1]") == value(page, "room.game.default_action")
    page.keyboard.down("ArrowUp")
    north = value(page, "room.game.actions.indexOf('north')")
    wait_until(
        page,
        lambda: value(page, "room.frames.slice(-2).map((each) => each.actions[1])") == [north] * 2,
    )
    page.keyboard.up("ArrowUp")


def test_a_room_is_set_up_and_a_wrong_schedule_is_explained(arena, visitors):
    page = visitors.page()
    open_page(page, arena.open_room(page, **ROOM))
    page.click("#open-setup")
    page.select_option("#setup-openness", "scripted")
    page.click("#schedule-add")
    page.click("#schedule-add")
    page.locator("#schedule-rows input").nth(0).fill("2")
    page.locator("#schedule-rows input").nth(1).fill("2")
    page.locator("#schedule-rows select").nth(2).select_option("2")
    page.click("#setup-start")
    page.locator("#setup-error").wait_for(state="visible")
    assert "slot 2 enters, but it is there already" in page.inner_text("#setup-error")
    # The text is the server's, and so is the refusal that the browser reports.
    visitors.faults[:] = [each for each in visitors.faults if "400" not in each]
    page.locator("#schedule-rows select").nth(2).select_option("1")
    before = page.url
    page.click("#setup-start")
    wait_until(page, lambda: page.url != before)
    wait(page, "room?.frame")
    assert value(page, "room.config.schedule") == [[2, "leaves", 1], [2, "enters", 1]]
    assert value(page, "room.config.openness") == "scripted"
    wait(page, "room.frames.length > 3")
    assert value(page, "[room.frames[2].left, room.frames[2].entered]") == [[1], [1]]


def test_openness_sends_a_person_away_and_lets_her_come_back_as_a_newcomer(arena, visitors):
    page = visitors.page()
    schedule = [[4, "leaves", 1], [8, "enters", 1]]
    room = {**ROOM, "openness": "scripted", "schedule": schedule}
    open_page(page, arena.open_room(page, **room))
    page.click("#play")
    wait(page, "!room.playing")
    value(page, "room.send({ type: 'restart' })")
    wait(page, "room.frames.length === 1")
    take(page, 1, "Ada")
    for _ in range(3):
        press(page, "ArrowUp")
    page.wait_for_timeout(50)
    assert page.inner_text("#player-state") == "Your move."
    # While she is away, nobody is waited for; a slower room leaves time to read.
    value(page, "room.send({ type: 'speed', per_second: 0.5 })")
    press(page, "ArrowUp")
    wait(page, "room.me.waiting")
    page.wait_for_timeout(50)
    away = "You are out of the team for now, for {} more steps. You come back as a newcomer."
    assert page.inner_text("#player-state") == away.format(4)
    assert "back in 4" in page.inner_text("#team [data-slot='1']")
    assert page.locator("#player [data-action='1']").is_disabled()
    assert value(page, "room.last.left") == [1]
    page.keyboard.press("ArrowUp")
    wait(page, "room.last.step === 5")
    page.wait_for_timeout(50)
    assert page.inner_text("#player-state") == away.format(3)
    value(page, "room.send({ type: 'speed', per_second: 30 })")
    wait(page, "room.last.step >= 8")
    assert value(page, "[room.last.step, room.me.waiting, room.mySlot]") == [8, False, 1]
    assert value(page, "[room.last.entered, room.last.mind.accuracy[1]]") == [[1], [0, 0]]
    assert value(page, "room.frames.slice(5).map((each) => each.actions[1])") == [None] * 4
    page.wait_for_timeout(300)
    assert page.inner_text("#player-state") == "Your move."
    (played,) = (each for each in arena.hub.rooms.values() if each.name == value(page, "room.id"))
    assert played.playable.simulation.state(played.timeline.current).arrived.tolist()[1]
    press(page, "ArrowDown")
    assert value(page, "room.last.mind.accuracy[1][1]") == 1
