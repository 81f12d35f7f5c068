"""What the browser tests share: a server in a thread, visitors, and values of a page."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dropin.arena.hub import Hub
from dropin.arena.server import make_app, make_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

PATIENCE = 120.0
"""Seconds to wait for the browser at most; the machine may be busy and programs have to compile."""


@dataclass
class Arena:
    """A server in a thread of its own."""

    hub: Hub
    address: str

    def open_room(self, page: "Page", **config: Any) -> str:
        """Open a room with a request of a page; return its address."""
        answer = page.request.post(f"{self.address}/api/rooms", data=config)
        assert answer.ok, answer.text()
        return f"{self.address}/r/{answer.json()['room']}"


def serve(hub: Hub) -> Iterator[Arena]:
    """Run a server until the generator is closed."""
    server = make_server(make_app(hub, _fail), hub)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield Arena(hub, f"http://127.0.0.1:{listener.getsockname()[1]}")
        server.should_exit = True
        thread.join(PATIENCE)
    assert not thread.is_alive()


def _fail(error: BaseException) -> None:
    raise error


@dataclass
class Visitors:
    """Opens pages, each of a visitor of its own, and notes what goes wrong in them."""

    browser: "Browser"
    contexts: "list[BrowserContext]" = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def page(self, width: int = 1360, height: int = 900, **options: Any) -> "Page":
        viewport: Any = {"width": width, "height": height}
        context = self.browser.new_context(viewport=viewport, **options)
        context.set_default_timeout(1000 * PATIENCE)
        self.contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._note)
        return page

    def _note(self, entry: "ConsoleMessage") -> None:
        if entry.type == "error":
            self.faults.append(entry.text)


def value(page: "Page", expression: str) -> Any:
    """Return a value of the page; `room` is what it knows about its room."""
    return page.evaluate(f"() => {{ const room = window.dropinArena?.room; return {expression}; }}")


def wait(page: "Page", expression: str) -> None:
    """Wait until an expression is true.

    Playwright's own function for this would need a weaker content security policy.
    """
    wait_until(page, lambda: value(page, expression), expression)


def wait_until(page: "Page", is_true: Callable[[], Any], what: str = "") -> None:
    end = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < end, f"{what} did not come true; {value(page, 'room?.last')}"
        page.wait_for_timeout(10)


def open_page(page: "Page", address: str) -> None:
    """Open a page of a room and wait for its first state."""
    page.goto(address)
    wait(page, "room?.frame")
