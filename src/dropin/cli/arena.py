"""Watch an open team in the browser, look into the learner's mind, and join: `dropin arena`."""

import os
import secrets
import socket
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path

from dropin.core.config import not_none
from dropin.core.errors import InputError, MissingExtraError, StoppedError

__all__ = ["arena"]

DEFAULT_PORT = 8642
INTERRUPTED = 130
"""The exit code of Ctrl-C, as in all commands."""


def arena(
    game: str | None = None,
    rules: str | None = None,
    team_limit: int | None = None,
    types: tuple[str, ...] | None = None,
    openness: str | None = None,
    agent: tuple[str, ...] = (),
    mode: str | None = None,
    seed: int = 0,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    token: str | None = None,
    open: bool = False,
    record: Path | None = None,
    replay: Path | None = None,
    study: Path | None = None,
) -> None:
    """Show an open team in the browser, to watch, to look into and to join. Ctrl-C stops it.

    The options choose the first room; others can be opened in the browser.

    Args:
        game: Name of the game, see `dropin games` (that of the agent, or lbf, if not given).
        rules: Name of a preset, see `dropin games` (that of the agent's training if not given).
        team_limit: Most agents at a time, the learner included (3 if not given).
        types: Teammates are drawn from these, see `dropin types`; from the pool if not given.
        openness: rules, closed, or a name, see `dropin games`; as the rules say if not given.
        agent: Who plays the learner: a trained agent (a name, see `dropin zoo list`, a file or a
            run's directory), a type, or random. Further ones can be chosen in the browser.
        mode: How the agent chooses actions: greedy, or sampled if it has a distribution.
        seed: The same seed gives the same episode.
        host: Address to listen on; any other than the machine's own needs a token.
        port: Port to listen on; 0 for any that is free.
        token: Part of the link that is printed: who does not have it is refused.
        open: Open the page in the browser.
        record: Write each episode to a file in this directory.
        replay: Show a recorded episode, simulated again and compared.
        study: Lead participants through the study in this file; needs --record.
    """
    if not 0 <= port < 65536:
        raise InputError(f"There is no port {port}: it is between 0 and 65535.")
    if study is not None and record is None:
        raise InputError("A study needs --record DIR, where its results are written.")
    if replay is not None and (study is not None or record is not None):
        raise InputError("A recording is shown alone: give --replay without --record and --study.")

    if any(find_spec(name) is None for name in ("starlette", "uvicorn", "websockets")):
        raise MissingExtraError("The arena", "web")

    from dropin.arena.hub import Hub, Options
    from dropin.arena.security import Access, check_token, is_loopback
    from dropin.arena.server import make_app, make_server
    from dropin.arena.study import load_study

    local = is_loopback(host)
    if token is not None:
        check_token(token)
    elif not local:
        raise InputError(
            f"Others can reach {host}, so it needs a token: give one, as in"
            f" --token {secrets.token_urlsafe(12)}"
        )
    room = not_none(
        game=game,
        rules=rules,
        team_limit=team_limit,
        types=types,
        openness=openness,
        mode=mode,
        seed=seed,
    )
    options = Options(
        room=room,
        agents=agent,
        record=record,
        replay=replay,
        study=None if study is None else load_study(study),
        access=Access(token, local),
    )
    hub = Hub(options)
    failures: list[BaseException] = []

    def stop(error: BaseException) -> None:
        failures.append(error)
        server.should_exit = True

    server = make_server(make_app(hub, stop), hub)
    with _listen(host, port) as listener:
        link = _link(host, listener.getsockname()[1], token, "/study" if study else "/")
        print(f"The arena is at {link} (Ctrl-C stops it).", flush=True)
        if not local:
            print("Others can reach it: only who has this link can use it.", flush=True)
        if open:
            webbrowser.open(link)
        interrupted = False
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            interrupted = True
    if failures:
        raise failures[0]
    if not interrupted and not server.started:
        raise StoppedError("The server could not start.")
    # Only Ctrl-C ends a server that has started, even if asyncio has swallowed the signal.
    if hub.is_preparing:  # Everything is closed; the end of a compilation is not awaited.
        sys.stdout.flush()
        os._exit(INTERRUPTED)
    raise KeyboardInterrupt


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    listener = None
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With the protocol named, asyncio sends small messages at once (TCP_NODELAY).
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise InputError(
            f"Cannot listen on {host}, port {port}: {error.strerror}. Give another --port (0 for"
            " any that is free) or --host."
        ) from None
    listener.listen(128)
    return listener


def _link(host: str, port: int, token: str | None, page: str) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}{page}{'' if token is None else f'?token={token}'}"
