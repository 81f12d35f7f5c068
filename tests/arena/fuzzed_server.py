"""A server without limits on the rate of messages, with a real game, for `test_fuzz`."""

import socket
import sys

from dropin.arena.hub import Hub, Options
from dropin.arena.protocol import Limits
from dropin.arena.server import make_app, make_server


def main() -> None:
    """Print the port and serve until the process is stopped."""
    limits = Limits(messages_per_second=1e9, message_burst=10**9, rooms_per_minute=1e9)
    hub = Hub(Options(room={"agent": "random"}, limits=limits))
    server = make_server(make_app(hub, lambda error: sys.exit(str(error))), hub)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        print(listener.getsockname()[1], flush=True)
        server.run(sockets=[listener])


if __name__ == "__main__":
    main()
