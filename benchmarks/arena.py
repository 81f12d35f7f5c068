"""The arena under load: from a key press to its state, many rooms at once, and a cold start.

    python benchmarks/arena.py [--agent lbf/gpl-q] [--rooms 50] [--seconds 30] [--presses 200]
    python benchmarks/arena.py --part start --repeat 3   # cold starts alone
    python benchmarks/arena.py --part sizes              # sizes of messages alone

A real server (`dropin arena`) runs in a process of its own; the clients are web sockets of this
process, on the same machine. Times are from sending a message to having received the answer, so a
browser adds what it needs to draw. Sizes of messages do not depend on what else the machine does.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from dropin.arena.catalogue import Catalogue
from dropin.arena.protocol import Limits
from dropin.arena.tables import from_table
from dropin.arena.timeline import Timeline
from dropin.core.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
PAUSES = (0.15, 0.04)
"""Seconds between a state and the key press: of a quick player, and near the allowed rate."""
LIMITS = (3, 5, 9)
"""Team limits of the sizes: of the paper, and the largest that a room has."""


@dataclass
class Server:
    """A running server."""

    process: "subprocess.Popen[str]"
    address: str
    started: float
    """When the process was started."""

    def request(self, path: str, body: Any = None) -> Any:
        """Return the answer to a request."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{self.address}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=300) as answer:
            content = answer.read()
        return json.loads(content) if path.startswith("/api") else content

    def cpu(self) -> float:
        """Return the seconds that the process has computed."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Return the resident memory in MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 2**20

    async def join(self, config: Any) -> ClientConnection:
        """Open a room and enter it."""
        room = (await asyncio.to_thread(self.request, "/api/rooms", config))["room"]
        socket = await connect(f"ws://{self.address}/ws/{room}", max_size=None)
        await say(socket, "hello")
        await hear(socket, "welcome")
        return socket


@contextlib.contextmanager
def serve(cache: str, agent: str, source: Path = ROOT) -> Iterator[Server]:
    """Run the server of a checkout with a cache of compiled programs."""
    environment = os.environ | {
        "PYTHONPATH": str(source / "src"),
        "JAX_PLATFORMS": "cpu",
        "DROPIN_CACHE": cache,
    }
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "dropin.cli", "arena", "--port", "0", "--agent", agent],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = re.search(r"http://([\d.:]+)/", process.stdout.readline())
        if address is None:
            raise SystemExit("The server did not start.")
        yield Server(process, address[1], started)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:  # On a busy machine; nothing is left behind.
            process.kill()
            process.wait()


async def say(socket: ClientConnection, kind: str, /, **values: Any) -> None:
    await socket.send(json.dumps({"type": kind, **values}))


async def hear(socket: ClientConnection, kind: str, /, **having: Any) -> Any:
    """Return the next message of a kind, with these values."""
    while True:
        message = json.loads(await asyncio.wait_for(socket.recv(), 300))
        if message["type"] == kind and having.items() <= message.items():
            return message


def measure_start(cache: str, agent: str, source: Path = ROOT) -> list[float]:
    """Return seconds from the command to its address, page, catalogue, first state, first step.

    The last number is the processor time that the server has used until then.
    """

    async def first_step(server: Server, config: Any) -> list[float]:
        socket = await server.join(config)
        shown = time.perf_counter()
        await hear(socket, "frame", step=1)
        stepped = time.perf_counter()
        await socket.close()
        return [shown - server.started, stepped - server.started]

    with serve(cache, agent, source) as server:
        times = [time.perf_counter() - server.started]
        while True:
            with contextlib.suppress(OSError):
                server.request("/")
                break
            time.sleep(0.005)
        times.append(time.perf_counter() - server.started)
        config = server.request("/api/catalogue")["default"]
        times.append(time.perf_counter() - server.started)
        return [*times, *asyncio.run(first_step(server, config)), server.cpu()]


async def measure_turns(server: Server, config: Any, presses: int, pause: float) -> list[float]:
    """Return the milliseconds from key presses to the states that follow, in turns."""
    socket = await server.join({**config, "clock": {"kind": "turns", "limit_ms": 60_000}})
    await say(socket, "take", slot=1)
    frame = await hear(socket, "frame")
    times: list[float] = []
    rng = np.random.default_rng(0)
    while len(times) < presses:
        if frame["done"]:
            await say(socket, "next")
            await hear(socket, "episode")
            frame = await hear(socket, "frame", step=0)
            continue
        if from_table(frame["agents"])[1]["present"]:
            await asyncio.sleep(pause)
            start = time.perf_counter()
            await say(socket, "act", action=int(rng.integers(5)), step=frame["step"])
            frame = await hear(socket, "frame", step=frame["step"] + 1)
            times.append(1000 * (time.perf_counter() - start))
        else:
            frame = await hear(socket, "frame")
    await socket.close()
    return times


@dataclass
class RealTime:
    """Milliseconds from key presses in real time."""

    echo: list[float] = field(default_factory=list)
    """To the word that the key has been accepted."""
    state: list[float] = field(default_factory=list)
    """To the state, the wait for the tick included."""
    beyond: list[float] = field(default_factory=list)
    """From the tick to the state."""


async def measure_real_time(server: Server, config: Any, presses: int) -> RealTime:
    """Press keys at random times of a tick of 150 ms."""
    tick = 0.15
    clock = {"kind": "real_time", "tick_ms": round(1000 * tick)}
    socket = await server.join({**config, "clock": clock})
    await say(socket, "take", slot=0)
    rng, found = np.random.default_rng(1), RealTime()
    frame = await hear(socket, "frame", step=1)
    arrivals: dict[tuple[int, int], float] = {}
    pressed: list[tuple[float, tuple[int, int]]] = []
    while len(pressed) < presses:
        frame = await hear(socket, "frame")
        arrivals[frame["episode"], frame["step"]] = time.perf_counter()
        if frame["done"] or frame["step"] == 0:
            continue
        await asyncio.sleep(float(rng.uniform(0, 0.8 * tick)))
        start = time.perf_counter()
        await say(socket, "act", action=int(rng.integers(5)), step=frame["step"])
        # A tick may have passed meanwhile: then the key counts for the state after it.
        acted = await hear(socket, "acted")
        found.echo.append(1000 * (time.perf_counter() - start))
        pressed.append((start, (frame["episode"], acted["step"] + 1)))
    frame = await hear(socket, "frame")
    arrivals[frame["episode"], frame["step"]] = time.perf_counter()
    for start, key in pressed:
        if key in arrivals:
            found.state.append(1000 * (arrivals[key] - start))
    found.beyond = lateness(arrivals, tick)
    await socket.close()
    return found


def lateness(arrivals: dict[tuple[int, int], float], interval: float) -> list[float]:
    """Return by how many milliseconds states came later than the earliest rhythm allows."""
    late: list[float] = []
    for episode in {episode for episode, _ in arrivals}:
        times = {step: at for (e, step), at in arrivals.items() if e == episode and step > 0}
        offsets = [at - step * interval for step, at in times.items()]
        if len(offsets) > 3:
            late += [1000 * (each - min(offsets)) for each in offsets]
    return late


@dataclass
class Load:
    """What many rooms lead to."""

    late: list[float]
    memory: float
    frames: int


async def measure_rooms(server: Server, config: Any, rooms: int, seconds: float) -> Load:
    """Watch many rooms at 4 states a second."""
    sockets = [await server.join({**config, "seed": 100 * number}) for number in range(rooms)]
    arrivals: list[dict[tuple[int, int], float]] = [{} for _ in sockets]
    start = time.perf_counter() + 1  # Let all of them begin.

    async def watch(socket: ClientConnection, seen: dict[tuple[int, int], float]) -> None:
        async for text in socket:
            now = time.perf_counter()
            if now > start:
                message = json.loads(text)
                if message["type"] == "frame":
                    seen[message["episode"], message["step"]] = now
            if now > start + seconds:
                return

    async def sample() -> float:
        largest = 0.0
        while time.perf_counter() < start + seconds:
            largest = max(largest, server.memory())
            await asyncio.sleep(0.5)
        return largest

    watching = zip(sockets, arrivals, strict=True)
    sampling = asyncio.create_task(sample())
    await asyncio.gather(*(watch(*each) for each in watching))
    memory = await sampling
    for socket in sockets:
        await socket.close()
    late = [each for seen in arrivals for each in lateness(seen, 0.25)]
    return Load(late, memory, sum(map(len, arrivals)))


def measure_size(catalogue: Catalogue, agent: str, limit: int) -> int:
    """Return the size of the largest message of a step in two episodes, in bytes.

    A person with random actions is in every place that people can take.
    """
    config = catalogue.room_config({"agent": agent, "team_limit": limit})
    playable = catalogue.prepare(config)
    people = {slot: f"{slot:08x}" for slot in range(min(playable.game["slots"], Limits().people))}
    rng, largest, timeline = np.random.default_rng(0), 0, Timeline()
    for seed in range(2):
        timeline.start(seed, playable.simulation.reset(seed))
        while not timeline.current.done:
            actions = {slot: int(rng.integers(len(playable.game["actions"]))) for slot in people}
            moment = playable.simulation.step(timeline.current, actions)
            timeline.push(moment, people, config.clock.limit_ms)
        largest = max(largest, *map(len, timeline.texts))
    return largest


def measure_sizes() -> None:
    """Print the largest messages of the trained agents that come with the package."""
    # Programs that are compiled in less time run longer, but their frames are as large.
    jax.config.update("jax_disable_most_optimizations", True)
    catalogue = Catalogue()
    print("\nLargest message of a step in bytes, with a person in every place")
    print(f"{'team limit':<24}" + "".join(f"{limit:>8}" for limit in LIMITS))
    for agent in catalogue.agents:
        print(f"{agent:<24}", end="", flush=True)
        for limit in LIMITS:
            try:
                size = str(measure_size(catalogue, agent, limit))
            except InputError:  # An input of fixed length, for fewer agents.
                size = "-"
            print(f"{size:>8}", end="", flush=True)
        print()


def show(name: str, times: Sequence[float], unit: str = "ms") -> None:
    low, middle, high, most = np.percentile(times, [5, 50, 95, 100])
    print(
        f"{name:<58}{middle:8.1f}{high:8.1f}{most:8.1f} {unit}  (5 %: {low:.1f}, n = {len(times)})",
        flush=True,
    )


def measure_starts(agent: str, source: Path, label: str = "") -> None:
    """Print the times of a start without and with the cache of compiled programs."""
    with tempfile.TemporaryDirectory() as cache:
        for kind in ("empty cache", "with the cache"):
            times = measure_start(cache, agent, source)
            name = f"{label}{kind}"
            print(f"{name:<30}" + "".join(f"{each:11.2f}" for each in times), flush=True)


def measure_service(chosen: argparse.Namespace) -> None:
    """Print the times of key presses, and what many rooms lead to."""
    with tempfile.TemporaryDirectory() as cache, serve(cache, chosen.agent) as server:
        config = server.request("/api/catalogue")["default"]
        print(f"\n{'':<58}{'median':>8}{'95 %':>8}{'most':>8}")
        for pause in PAUSES:
            times = asyncio.run(measure_turns(server, config, chosen.presses, pause))
            show(f"turns: from a key, {1000 * pause:.0f} ms after a state, to its state", times)
        real = asyncio.run(measure_real_time(server, config, chosen.presses))
        show("real time, tick of 150 ms: from a key to its echo", real.echo)
        show("real time: from a key to its state, wait for the tick included", real.state)
        show("real time: from the tick to its state", real.beyond)
        alone = server.memory()
        many = asyncio.run(measure_rooms(server, config, chosen.rooms, chosen.seconds))
        show(f"{chosen.rooms} rooms at 4 states a second: states late by", many.late)
        rate = many.frames / chosen.seconds
        print(
            f"{rate:.0f} states a second; memory {many.memory:.0f} MiB (one room before:"
            f" {alone:.0f} MiB)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", choices=("all", "start", "service", "sizes"), default="all")
    parser.add_argument("--agent", default="lbf/gpl-q")
    parser.add_argument("--rooms", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--presses", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=1, help="starts of each kind")
    parser.add_argument("--before", type=Path, help="another checkout, started in turns with this")
    chosen = parser.parse_args()
    load = ", ".join(f"{each:.2f}" for each in os.getloadavg())
    cores = len(os.sched_getaffinity(0))
    print(f"Python {platform.python_version()}, {cores} cores, load before: {load}")
    if chosen.part in ("all", "start"):
        heads = ("address", "page", "catalogue", "state", "step", "(CPU)")
        print(f"\n{'Seconds from the command to:':<30}" + "".join(f"{each:>11}" for each in heads))
        for _ in range(chosen.repeat):
            if chosen.before is not None:
                measure_starts(chosen.agent, chosen.before, "before: ")
            measure_starts(chosen.agent, ROOT)
    if chosen.part in ("all", "service"):
        measure_service(chosen)
    if chosen.part in ("all", "sizes"):
        measure_sizes()
    load = ", ".join(f"{each:.2f}" for each in os.getloadavg())
    print(f"\nLoad after: {load}")


if __name__ == "__main__":
    main()
