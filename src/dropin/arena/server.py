"""The web server of the arena: pages, requests and web sockets."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from dropin.arena.assets import Asset, load_assets
from dropin.arena.connection import Connection, DroppedError
from dropin.arena.hub import Hub
from dropin.arena.patience import make_protocol
from dropin.arena.people import Person
from dropin.arena.protocol import Message, parse_object
from dropin.arena.security import RefusedError, SecureHeaders
from dropin.arena.study_desk import StudyDesk
from dropin.core.config import PlainDict
from dropin.core.errors import InputError

__all__ = ["make_app", "make_server"]

_LOG = logging.getLogger("dropin.arena")
_PING_SECONDS = 10.0
"""How often a silent connection is tried, and how long an answer may take."""
_STOP_SECONDS = 2
Endpoint = Callable[["Server", Request], Awaitable[Response]]


class Server:
    """Answers requests for the rooms of a hub.

    Args:
        hub: The rooms.
        assets: The files of the web page.
    """

    def __init__(self, hub: Hub, assets: Mapping[str, Asset]) -> None:
        self.hub, self.assets = hub, assets
        self.access, self.limits = hub.options.access, hub.options.limits

    # Pages and requests.

    def asset(self, request: Request, name: str, status: int = 200) -> Response:
        """Return a file of the web page."""
        asset = self.assets.get(name)
        if asset is None:
            raise RefusedError(404, "There is no such page.")
        headers = {"ETag": asset.tag, "Cache-Control": "no-cache"}
        if status == 200 and request.headers.get("if-none-match") == asset.tag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, status, headers, asset.media_type)

    async def page(self, request: Request) -> Response:
        """Return the page of the arena, or that of a study; one that says no without the token."""
        try:
            self.access.check_given(request.query_params.get("token", ""))
        except RefusedError as error:
            return self.asset(request, "refused.html", error.status)
        of_study = self.hub.desk is not None or request.url.path == "/study"
        return self.asset(request, "study.html" if of_study else "index.html")

    async def static(self, request: Request) -> Response:
        """Return a style sheet, a script or a picture."""
        return self.asset(request, request.path_params["name"])

    async def catalogue(self, request: Request) -> Response:
        """Return what can be chosen."""
        self.access.check_bearer(request.headers)
        return JSONResponse(await self.hub.describe())

    async def open_room(self, request: Request) -> Response:
        """Open a room."""
        room = await self.hub.open_room(await self.body(request))
        return JSONResponse({"room": room.name})

    @property
    def desk(self) -> StudyDesk:
        """The study that this server leads through."""
        if self.hub.desk is None:
            raise RefusedError(404, "There is no study here.")
        return self.hub.desk

    async def start_study(self, request: Request) -> Response:
        """Begin with a participant."""
        return JSONResponse(await self.desk.start(await self.body(request)))

    async def study_page(self, request: Request) -> Response:
        """Return the page that a participant is on."""
        self.access.check_bearer(request.headers)
        return JSONResponse(await self.desk.page(request.path_params["session"]))

    async def next_page(self, request: Request) -> Response:
        """Go on to the next page of a participant."""
        session, values = request.path_params["session"], await self.body(request)
        return JSONResponse(await self.desk.next(session, values))

    async def body(self, request: Request) -> PlainDict:
        """Return the JSON object that was sent, from a page of this server that has the token.

        Raises:
            RefusedError: If it is too large, or not JSON.
        """
        self.access.check_bearer(request.headers)
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise RefusedError(400, "The content type has to be application/json.")
        content = b""
        async for part in request.stream():
            content += part
            if len(content) > self.limits.body_bytes:
                raise RefusedError(413, f"A request has at most {self.limits.body_bytes} bytes.")
        return parse_object(content)

    # Web sockets.

    async def socket(self, socket: WebSocket) -> None:
        """Serve one person for as long as the connection lasts."""
        try:
            self.access.check_source(socket.headers)
        except RefusedError:
            await socket.close()  # Not accepted yet, so this is status 403.
            return
        await socket.accept()
        connection = Connection(socket, self.limits)
        if self.hub.connections >= self.limits.connections:
            await connection.hang_up(
                DroppedError(4013, "Too many people are here: try again later.")
            )
            return
        self.hub.connections += 1
        writer = asyncio.create_task(connection.write())
        reader = asyncio.create_task(self._serve(connection, socket.path_params["room"]))
        try:
            tasks = {reader, connection.dropped}
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if reader.done() and not connection.dropped.done():
                why = reader.result()
                connection.close(why.reason)
                async with asyncio.timeout(1):
                    await writer
            else:
                why = connection.dropped.result()
        except TimeoutError:
            why = DroppedError(4010, "Your connection is too slow for this room.")
        finally:
            self.hub.connections -= 1
            for task in (reader, writer):
                task.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)
        await connection.hang_up(why)

    async def _serve(self, connection: Connection, name: str) -> DroppedError:
        """Read messages of one person; return why they end."""
        room = person = None
        try:
            async with asyncio.timeout(self.limits.hello_seconds):
                hello = await connection.read()
            person, room = self._admit(connection, name, hello)
            while True:
                room.post(person, await connection.read())
        except TimeoutError:
            return DroppedError(4001, "You have not said hello.")
        except DroppedError as dropped:
            return dropped
        except InputError as error:
            connection.send_error(str(error))
            status = error.status if isinstance(error, RefusedError) else 403
            return DroppedError({401: 4001, 404: 4004}.get(status, 4003), str(error))
        finally:
            if room is not None and person is not None:
                room.leave(person)

    def _admit(self, connection: Connection, name: str, hello: Message) -> Any:
        if hello.type != "hello":
            raise InputError("The first message has to be hello.")
        self.access.check_given(hello.values.get("token", ""))
        room = self.hub.find(name)
        values = hello.values
        person = Person(connection, values.get("name", ""), values.get("session", ""))
        room.join(person)
        return person, room


def _error(status: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status)


async def _on_input_error(request: Request, error: Exception) -> Response:
    del request
    return _error(error.status if isinstance(error, RefusedError) else 400, str(error))


async def _on_http_error(request: Request, error: Exception) -> Response:
    del request
    status = error.status_code if isinstance(error, HTTPException) else 500
    sentences = {404: "There is no such page.", 405: "This page cannot be used in this way."}
    return _error(status, sentences.get(status, "The request cannot be used."))


class _Checked:
    """Checks where a request comes from, and turns what goes wrong into one sentence."""

    def __init__(self, server: Server, endpoint: Callable[[Request], Awaitable[Response]]) -> None:
        self.server, self.endpoint = server, endpoint

    async def __call__(self, request: Request) -> Response:
        try:
            self.server.access.check_source(request.headers)
            return await self.endpoint(request)
        except InputError as error:
            return await _on_input_error(request, error)
        except Exception:
            _LOG.exception("A request has failed.")
            return _error(500, "The server has made an error.")


def make_app(hub: Hub, on_failure: Callable[[BaseException], None]) -> Starlette:
    """Make the web application.

    Args:
        hub: The rooms; they are closed when the application ends.
        on_failure: Called if the options of the server turn out to be wrong.
    """
    server = Server(hub, load_assets())

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        hub.start(on_failure)
        try:
            yield
        finally:
            await hub.close()

    def route(
        path: str, endpoint: Callable[[Request], Awaitable[Response]], *methods: str
    ) -> Route:
        return Route(path, _Checked(server, endpoint).__call__, methods=methods or ["GET"])

    app = Starlette(
        routes=[
            route("/", server.page),
            route("/r/{room:str}", server.page),
            route("/study", server.page),
            route("/static/{name:path}", server.static),
            route("/api/catalogue", server.catalogue),
            route("/api/rooms", server.open_room, "POST"),
            route("/api/study/start", server.start_study, "POST"),
            route("/api/study/{session:str}", server.study_page),
            route("/api/study/{session:str}/next", server.next_page, "POST"),
            WebSocketRoute("/ws/{room:str}", server.socket),
        ],
        middleware=[Middleware(SecureHeaders)],
        exception_handlers={HTTPException: _on_http_error},
        lifespan=lifespan,
    )
    # A redirect would go to whatever host the request names.
    app.router.redirect_slashes = False
    return app


def make_server(app: Starlette, hub: Hub) -> uvicorn.Server:
    """Make the server for an application.

    Args:
        app: The application.
        hub: Its rooms, whose limits it keeps.
    """
    config = uvicorn.Config(
        app,
        # Its own configuration would close the handlers of other packages, and with them stderr.
        log_config=None,
        log_level="critical",
        lifespan="on",
        http=make_protocol(hub.limits),
        ws="websockets-sansio",
        # A little more than what is allowed, so that somebody who is just above is told so.
        ws_max_size=4 * hub.limits.message_bytes,
        ws_ping_interval=_PING_SECONDS,
        ws_ping_timeout=_PING_SECONDS,
        ws_per_message_deflate=False,
        server_header=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    return uvicorn.Server(config)
