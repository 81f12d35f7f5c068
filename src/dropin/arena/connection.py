"""The web socket of one person."""

import asyncio
import contextlib

from starlette.websockets import WebSocket, WebSocketDisconnect

from dropin.arena.protocol import Bucket, Limits, Message, encode, parse_message
from dropin.core.errors import InputError

__all__ = ["Connection", "DroppedError"]

_REASON_BYTES = 120
"""What a close frame can hold."""
_CLOSE_SECONDS = 1.0


class DroppedError(Exception):
    """The connection is to be closed.

    Args:
        code: The close code: from 4000 on, the browser is not to connect again by itself.
        reason: One sentence for the person.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class Connection:
    """A web socket with a bounded queue of messages to send: a `Sink`.

    Args:
        socket: The accepted web socket.
        limits: Its limits.
    """

    def __init__(self, socket: WebSocket, limits: Limits) -> None:
        self._socket, self._limits = socket, limits
        self._outgoing: asyncio.Queue[str | DroppedError] = asyncio.Queue()
        self._bucket = Bucket(limits.messages_per_second, limits.message_burst)
        self._refused = 0
        self._ended = False
        self.dropped = asyncio.get_running_loop().create_future()
        """Done as soon as the person cannot be served any more; its result is a `DroppedError`."""

    def send(self, text: str) -> None:
        """Queue a message; whoever does not read is dropped."""
        if self._ended:
            return
        if self._outgoing.qsize() >= self._limits.outgoing:
            self._drop(DroppedError(4010, "Your connection is too slow for this room."))
        else:
            self._outgoing.put_nowait(text)

    def close(self, reason: str) -> None:
        """Close the connection after what has been queued."""
        if not self._ended:
            self._ended = True
            self._outgoing.put_nowait(DroppedError(4000, reason))

    def _drop(self, why: DroppedError) -> None:
        self._ended = True
        if not self.dropped.done():
            self.dropped.set_result(why)

    async def write(self) -> None:
        """Send what is queued, until the connection ends."""
        while True:
            each = await self._outgoing.get()
            if isinstance(each, DroppedError):
                self._drop(each)
                return
            try:
                async with asyncio.timeout(self._limits.send_seconds):
                    await self._socket.send_text(each)
            except TimeoutError:
                self._drop(DroppedError(4010, "Your connection is too slow for this room."))
                return
            except (WebSocketDisconnect, RuntimeError, OSError):
                self._drop(DroppedError(1006, "The connection is lost."))
                return

    async def read(self) -> Message:
        """Return the next message that is well-formed and within the rate.

        Raises:
            DroppedError: If the person has left, or has to.
        """
        while True:
            try:
                received = await self._socket.receive()
            except (WebSocketDisconnect, RuntimeError):
                raise DroppedError(1006, "The connection is lost.") from None
            if received["type"] == "websocket.disconnect":
                raise DroppedError(1000, "The person has left.")
            if not self._bucket.take():
                self._refuse()
                continue
            text = received.get("text")
            if text is None or len(text.encode(errors="replace")) > self._limits.message_bytes:
                size = self._limits.message_bytes
                self.send_error(f"A message is a text of at most {size} bytes.")
                continue
            try:
                return parse_message(text)
            except InputError as error:
                self.send_error(str(error))

    def _refuse(self) -> None:
        """Ignore a message beyond the rate: with a word the first time, the end if it goes on."""
        self._refused += 1
        if self._refused > self._limits.refused_messages:
            raise DroppedError(4008, "You have sent far too many messages.")
        if self._refused == 1:
            rate = self._limits.messages_per_second
            self.send_error(f"Too many messages: at most {rate:g} a second are read.")

    def send_error(self, sentence: str) -> None:
        """Tell the person what went wrong.

        Args:
            sentence: One sentence.
        """
        self.send(encode("error", message=sentence))

    async def hang_up(self, why: DroppedError) -> None:
        """Close the web socket, without waiting long for somebody who does not read.

        Args:
            why: The close code and the reason.
        """
        self._ended = True
        reason = why.reason.encode()[:_REASON_BYTES].decode(errors="ignore")
        with contextlib.suppress(TimeoutError, WebSocketDisconnect, RuntimeError, OSError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._socket.close(why.code, reason)
