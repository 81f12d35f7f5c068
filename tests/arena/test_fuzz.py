"""Nonsense by the hundred thousand: the server goes on, and does not grow."""

import asyncio
import collections
import contextlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving import Client
from test_protocol import GOOD
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

NUM_MESSAGES, CONNECTIONS, BATCH = 100_000, 8, 1000
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 3, 7, 10**6, 10**30, 1.5, -1e300, "", "x", "é" * 20, "\ud800", [], {},
    [[[[]]]], {"a": {"b": 1}}, "../../etc/passwd", "<img src=x>", "real_time", "turns", "watch",
)  # fmt: skip


def message(rng: random.Random) -> str | bytes:
    """Return a message that is right, nearly right, or nonsense."""
    kind = rng.choice(list(GOOD))
    values: dict[str, Any] = {"type": kind, **GOOD[kind]}
    for _ in range(rng.choice((0, 0, 1, 2, 4))):
        values[rng.choice([*values, "colour", "slot", "step"])] = rng.choice(ODD)
    text = json.dumps(values)
    what = rng.random()
    if what < 0.6:
        return text
    if what < 0.75:
        return text[: rng.randrange(len(text))]
    if what < 0.9:
        letters = list(text)
        for _ in range(rng.randrange(1, 6)):
            letters[rng.randrange(len(letters))] = chr(rng.randrange(1, 0x3000))
        return "".join(letters)
    if what < 0.94:
        return rng.randbytes(rng.randrange(200))
    if what < 0.97:
        return rng.choice('[{"') * rng.randrange(1500)
    return "x" * rng.choice((2047, 2048, 2049, 8000, 20_000))


def rss(process: "subprocess.Popen[str]") -> int:
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


async def fuzz(client: Client, rng: random.Random, process: "subprocess.Popen[str]") -> list[int]:
    """Send everything; return the memory of the server after each batch."""
    rooms = [client.open_room(clock={"kind": kind}) for kind in ("watch", "real_time", "turns")]
    sizes: list[int] = []
    sockets: list[ClientConnection | None] = [None] * CONNECTIONS
    readers: set[asyncio.Task[None]] = set()

    answers = collections.Counter[str]()

    async def read(socket: ClientConnection) -> None:
        with contextlib.suppress(WebSocketException):
            async for text in socket:
                answers[json.loads(text)["type"]] += 1

    async def join(room: str) -> ClientConnection:
        socket = await connect(f"ws://127.0.0.1:{client.port}/ws/{room}", close_timeout=0.2)
        if rng.random() < 0.9:
            await socket.send('{"type": "hello"}')
        task = asyncio.create_task(read(socket))
        readers.add(task)
        task.add_done_callback(readers.discard)
        return socket

    for number in range(NUM_MESSAGES):
        index = rng.randrange(CONNECTIONS)
        try:
            socket = sockets[index]
            if socket is None:
                sockets[index] = socket = await join(rng.choice(rooms))
            await socket.send(message(rng))
            if rng.random() < 0.001:
                await socket.close()
                sockets[index] = None
        except (WebSocketException, OSError):
            sockets[index] = None
        if number % BATCH == BATCH - 1:
            assert process.poll() is None, "The server has ended."
            await asyncio.sleep(0.05)
            sizes.append(rss(process))
    for socket in sockets:
        if socket is not None:
            await socket.close()
    await asyncio.gather(*readers, return_exceptions=True)
    print(dict(answers))
    # Most of it was read and answered, the right messages among it too.
    assert answers["error"] > NUM_MESSAGES / 3
    assert answers["pong"] > NUM_MESSAGES / 100
    assert answers["frame"] > 100
    return sizes


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="The memory is read from /proc.")
def test_nonsense_neither_ends_the_server_nor_makes_it_grow(tmp_path):
    script = Path(__file__).parent / "fuzzed_server.py"
    log = tmp_path / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        assert process.stdout is not None
        client = Client(int(process.stdout.readline()), None)  # pyright: ignore[reportArgumentType]
        sizes = asyncio.run(fuzz(client, random.Random(0), process))
        # The rooms are as they were: they let people in and play.
        with client.person(client.open_room()) as player:
            player.say("speed", per_second=30)
            step = player.wait("frame", timeout=60)["step"]
            assert player.wait("frame")["step"] == step + 1
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()
    later = np.array(sizes[len(sizes) // 3 :], float)
    slope = np.polyfit(BATCH * np.arange(len(later)), later, 1)[0]
    print(f"{later[-1] / 2**20:.0f} MiB at the end, {slope:.1f} bytes more a message")
    assert slope < 100
    assert "Traceback" not in log.read_text()
