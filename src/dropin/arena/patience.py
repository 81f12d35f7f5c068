"""How long the server waits for a browser: for a whole request, and until a response is read."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from dropin.arena.protocol import Limits

__all__ = ["make_protocol"]

_CHECKS = 4
"""How often a connection is looked at in the time that it has."""


def make_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Make the HTTP protocol of a server that does not wait for ever.

    Uvicorn itself ends a connection that is silent between two requests, but neither one that sends
    a request byte by byte, nor one that does not read the response.

    Args:
        limits: How long a request may take, and how many connections there may be.
    """

    class PatientProtocol(H11Protocol):
        """HTTP with an end to waiting; the time that the server takes itself does not count."""

        _check: asyncio.TimerHandle | None = None
        _stalled = 0

        def connection_made(self, transport: Any) -> None:
            """Begin to watch a connection; one too many ends at once."""
            super().connection_made(transport)
            if len(self.connections) > limits.sockets:
                transport.abort()
                return
            self._look_again()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop watching."""
            if self._check is not None:
                self._check.cancel()
            super().connection_lost(exc)

        def _look_again(self) -> None:
            wait, look = limits.request_seconds / _CHECKS, self._look
            self._check = self.loop.call_later(wait, look)

        def _look(self) -> None:
            if self.transport.is_closing() or self.transport.get_protocol() is not self:
                return  # It is a web socket now, which has limits of its own.
            incomplete = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
            unread = self.transport.get_write_buffer_size() > 0
            self._stalled = self._stalled + 1 if incomplete or unread else 0
            if self._stalled >= _CHECKS:
                self.transport.abort()
            else:
                self._look_again()

    return PatientProtocol
