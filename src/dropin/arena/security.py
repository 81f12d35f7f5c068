"""Who may use the server: hosts, origins, the token, and the headers of every response."""

import ipaddress
import re
import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dropin.core.errors import InputError

__all__ = ["HEADERS", "Access", "RefusedError", "SecureHeaders", "check_token", "is_loopback"]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; connect-src 'self'; img-src 'self' data:; style-src 'self';"
        " script-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self';"
        " object-src 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Sent with every response."""
_TOKEN = re.compile(r"[A-Za-z0-9._~-]{8,128}")


class RefusedError(InputError):
    """A request that is refused, with its HTTP status.

    Args:
        status: The status.
        message: One sentence.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is that of the own machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_token(token: str) -> str:
    """Return a token if it can be part of a link.

    Raises:
        InputError: If it is too short, too long, or has other characters.
    """
    if not _TOKEN.fullmatch(token):
        raise InputError(
            "A token has 8 to 128 letters, digits and the characters . _ ~ - as part of a link."
        )
    return token


@dataclass(frozen=True)
class Access:
    """Checks requests of browsers.

    Args:
        token: What has to be sent with each request; None if everybody may use the server.
        local: Whether only the own machine can reach the server. Then it has to be addressed as
            such, so that a page of somebody else cannot reach it under a name that it gave it.
    """

    token: str | None = None
    local: bool = True

    def check_source(self, headers: Headers) -> None:
        """Raise `RefusedError` if a request comes from a page of another server.

        Args:
            headers: Those of the request.
        """
        host = headers.get("host", "")
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if self.local and not is_loopback(name):
            raise RefusedError(403, "This server answers only to the address of its own machine.")
        origin = headers.get("origin")
        if origin is not None and urlsplit_netloc(origin) != host:
            raise RefusedError(403, "Another site cannot use this server.")

    def check_bearer(self, headers: Headers) -> None:
        """Raise `RefusedError` if a request does not carry the token.

        Args:
            headers: Those of the request.
        """
        scheme, _, given = headers.get("authorization", "").partition(" ")
        self.check_given(given if scheme.lower() == "bearer" else "")

    def check_given(self, given: str) -> None:
        """Raise `RefusedError` if this is not the token.

        Args:
            given: What was sent as the token.
        """
        expected = self.token or ""
        if self.token is not None and not secrets.compare_digest(
            given.encode(errors="replace"), expected.encode()
        ):
            raise RefusedError(
                401, "The token is missing or wrong: open the link that was printed."
            )


def urlsplit_netloc(origin: str) -> str | None:
    """Return the host and port of an origin; None if it is not one of a web page."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc if parts.scheme in ("http", "https") else None


class SecureHeaders:
    """Adds `HEADERS` to every response.

    Args:
        app: What makes the responses.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Args:
            scope: What is asked for.
            receive: Gives the parts of the request.
            send: Takes the parts of the response.
        """
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, send_with_headers)
