"""A server that others can reach: the printed link opens it, any other does not."""

from collections.abc import Iterator

import pytest
from browsing import Arena, Visitors, open_page, serve, value, wait

from dropin.arena.hub import Hub, Options
from dropin.arena.security import Access

TOKEN = "a-secret_of.the~test"


@pytest.fixture(scope="module")
def guarded(browser) -> Iterator[Arena]:
    access = Access(TOKEN, local=False)
    yield from serve(Hub(Options(room={"game": "lbf", "agent": "lbf/gpl-q"}, access=access)))


def test_the_printed_link_opens_page_and_socket_and_can_be_passed_on(guarded, visitors: Visitors):
    page = visitors.page()
    open_page(page, f"{guarded.address}/?token={TOKEN}")
    wait(page, "room.frames.length > 1")
    assert page.url.startswith(f"{guarded.address}/r/")
    assert page.url.endswith(f"?token={TOKEN}")
    page.click("#open-share")
    link = page.input_value("#share-link")
    assert "this computer only" in page.inner_text("#share")
    assert link == page.url
    page.keyboard.press("Escape")
    page.reload()
    wait(page, "room?.frame")
    for to_new_room in (".brand", "#lost-new"):
        assert page.get_attribute(to_new_room, "href") == f"/?token={TOKEN}"
    first = page.url
    page.click(".brand")
    wait(page, "room?.frame")
    assert page.url != first
    assert page.url.endswith(f"?token={TOKEN}")
    page.go_back()
    wait(page, "room?.frame")
    assert page.url == first
    other = visitors.page()
    open_page(other, link)
    assert value(other, "room.id") == value(page, "room.id")
    assert page.context.cookies() == []


def test_without_the_token_a_page_says_no(guarded, visitors: Visitors):
    page = visitors.page(360, 740, color_scheme="dark")
    for path in ("/", "/?token=nonsense-nonsense", "/r/abc", "/study"):
        answer = page.goto(f"{guarded.address}{path}")
        assert answer is not None
        assert answer.status == 401
        assert "The token is missing or wrong." in page.inner_text("main")
        assert value(page, "document.documentElement.scrollWidth") <= 360
        assert value(page, "getComputedStyle(document.body).backgroundColor") == "rgb(16, 20, 24)"
    for method, path in (("get", "/api/catalogue"), ("post", "/api/rooms")):
        refused = getattr(page.request, method)(f"{guarded.address}{path}")
        assert refused.status == 401
        assert "open the link that was printed" in refused.json()["error"]
    heard = page.evaluate(
        """() => new Promise((done) => {
          const socket = new WebSocket(`ws://${location.host}/ws/abc`);
          socket.addEventListener("open", () => socket.send('{"type":"hello"}'));
          socket.addEventListener("close", ({ code }) => done(code));
        })"""
    )
    assert heard == 4001
    # The browser reports each page that was refused.
    visitors.faults[:] = [each for each in visitors.faults if "401" not in each]
