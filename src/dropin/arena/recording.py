"""Recordings of episodes: one file each, written line by line, that can be re-simulated.

A file holds JSON, one object a line: a header, then a line for every state, change and rewind, and
a last line when the episode is closed. Each line carries a checksum of all lines so far. What the
simulation computes can be computed again from the header and from what people did, so a file that
was changed, or that was recorded with other weights or another version, is found out.
"""

import json
import platform
import zlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from io import BufferedWriter
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

import dropin
from dropin.agents import Agent
from dropin.arena.config import RoomConfig
from dropin.arena.simulation import Moment, Simulation
from dropin.core import registry
from dropin.core.arrays import to_arrays
from dropin.core.config import PlainDict, PlainMapping, from_dict, misfit, to_dict
from dropin.core.errors import InputError
from dropin.core.files import checksum
from dropin.core.reading import MAX_JSON_BYTES, parse_json, read_file
from dropin.env import AnyEnv

__all__ = [
    "CHANGE",
    "END",
    "FORMAT",
    "HEADER",
    "REWIND",
    "STATE",
    "STEP",
    "SUFFIX",
    "KeyPress",
    "Recorder",
    "Recording",
    "agent_checksum",
    "describe_state",
    "describe_step",
    "make_header",
    "read_recording",
    "versions",
]

FORMAT = 1
"""Number of the file format."""
SUFFIX = ".jsonl"
"""How the names of files end."""
HEADER, STATE, STEP, CHANGE, REWIND, END = "header", "state", "step", "change", "rewind", "end"
"""The kinds of lines."""


@dataclass(frozen=True)
class KeyPress:
    """How an action of a person came about."""

    after_ms: float | None = None
    """Milliseconds from when the state was shown until the key was pressed, as the page says."""
    latency_ms: float | None = None
    """Milliseconds from the key press until the server had it."""
    default: bool = False
    """Whether nothing was pressed in time, so that the default action was taken."""


def agent_checksum(agent: Agent) -> str:
    """Return a checksum of an agent's weights and settings."""
    return checksum(to_arrays(agent.policy), f"{agent.learner} {agent.settings}")


class Recorder:
    """Writes the file of one episode, each line when it happens.

    A file of a process that is killed lacks at most the last line.

    Args:
        path: The file, which must not exist.
        simulation: The simulation.
        config: The settings of the room.
        first: The first moment of the episode.
        seed: The seed of the episode.
        agent: The trained agent that plays the learner, if one does.
        about: Plain values to keep in the header besides, such as the id of a participant.

    Raises:
        InputError: If the file cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        simulation: Simulation,
        config: RoomConfig,
        first: Moment,
        seed: int,
        *,
        agent: Agent | None = None,
        about: PlainMapping | None = None,
    ):
        self.path = Path(path)
        self._simulation, self._check = simulation, 0
        header = {**make_header(simulation.env, config, seed, agent), "about": dict(about or {})}
        state = describe_state(simulation, first)
        self._file = _create(self.path)
        self._write({"kind": HEADER, **header})
        self._write({"kind": STATE, **state})

    def step(
        self,
        moment: Moment,
        forced: Mapping[int, int],
        *,
        people: Mapping[int, str] | None = None,
        keys: Mapping[int, KeyPress] | None = None,
    ) -> None:
        """Write a step.

        Args:
            moment: The moment that `Simulation.step` returned.
            forced: What it was called with.
            people: Who played, by slot: any id.
            keys: How the forced actions came about, by slot.
        """
        line = {
            "kind": STEP,
            "forced": _by_slot(forced),
            "people": _by_slot(people or {}),
            "keys": _by_slot({slot: asdict(each) for slot, each in (keys or {}).items()}),
        }
        self._write({**line, **describe_step(self._simulation, moment)})

    def change(
        self,
        moment: Moment,
        *,
        joined: Collection[int] = (),
        replaced: Collection[int] = (),
        left: Collection[int] = (),
        people: Mapping[int, str] | None = None,
    ) -> None:
        """Write that people came or went.

        Args:
            moment: The moment that `Simulation.change` returned.
            joined: What it was called with, as the next two.
            replaced: See `Simulation.change`.
            left: See `Simulation.change`.
            people: Who plays from now on, by slot.
        """
        slots = {"joined": joined, "replaced": replaced, "left": left}
        line = {"kind": CHANGE, "people": _by_slot(people or {})}
        line |= {name: sorted(each) for name, each in slots.items()}
        self._write({**line, **describe_state(self._simulation, moment)})

    def rewind(self, step: int) -> None:
        """Write that the episode goes on from an earlier step.

        Args:
            step: Its number.
        """
        self._write({"kind": REWIND, "step": step})

    def close(self) -> None:
        """Write that the recording is complete, and close the file."""
        if not self._file.closed:
            self._write({"kind": END})
            self._file.close()

    def _write(self, line: PlainDict) -> None:
        body = json.dumps(line, separators=(",", ":"), allow_nan=False)
        self._check = zlib.crc32(body.encode(), self._check)
        # The checksum is the last member of the object.
        self._file.write(f'{body[:-1]},"check":{self._check}}}\n'.encode())
        self._file.flush()


def _create(path: Path) -> BufferedWriter:
    if path.exists():
        raise InputError(f"{path} exists already; recordings are never overwritten.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None


def make_header(env: AnyEnv, config: RoomConfig, seed: int, agent: Agent | None) -> PlainDict:
    """Return what has to be known to simulate an episode again, and to read its arrays.

    Args:
        env: The environment.
        config: The settings of the room.
        seed: The seed of the episode.
        agent: The trained agent that plays the learner, if one does.
    """
    interface = env.interface
    return {
        "format": FORMAT,
        "versions": versions(),
        "config": to_dict(config),
        "seed": seed,
        "game_version": registry.games[config.game].version,
        "agent_checksum": None if agent is None else agent_checksum(agent),
        "actions": list(interface.actions),
        "agent_features": list(interface.agent_features),
        "shared_features": list(interface.shared_features),
        "types": list(env.team.pool.names),
        "sides": list(env.sides),
    }


def _by_slot(values: Mapping[int, Any]) -> dict[str, Any]:
    return {str(slot): values[slot] for slot in sorted(values)}


def describe_state(simulation: Simulation, moment: Moment) -> PlainDict:
    """Return what a line says of a state; all of it can be computed again.

    Args:
        simulation: The simulation.
        moment: The state.
    """
    seen, mind, state = (
        simulation.observation(moment), simulation.mind(moment), simulation.state(moment),
    )  # fmt: skip
    return {
        "step": moment.step,
        "digest": moment.digest,
        "present": _plain(seen.present),
        "arrived": _plain(seen.arrived),
        "types": _plain(state.roster.type),
        "agents": _plain(seen.agents),
        "shared": _plain(seen.shared),
        "chosen": int(mind.chosen),
        "q": None if mind.q_values is None else _plain(mind.q_values),
        "probs": None if mind.teammate_probs is None else _plain(mind.teammate_probs),
    }


def describe_step(simulation: Simulation, moment: Moment) -> PlainDict:
    """Return what a line says of a step and the state that it led to.

    Args:
        simulation: The simulation.
        moment: That state.
    """
    outcome = simulation.time_step(moment)
    assert outcome is not None
    return {
        "actions": _plain(outcome.actions),
        "acted": _plain(outcome.acted),
        "rewards": _plain(outcome.rewards),
        "terminated": bool(outcome.terminated),
        "truncated": bool(outcome.truncated),
        **describe_state(simulation, moment),
    }


def _plain(array: Any) -> list[Any]:
    """Return an array as lists: 0 and 1 for booleans, the shortest exact form of floats."""
    array = np.asarray(array)
    if array.dtype == bool:
        return array.astype(int).tolist()
    if not np.issubdtype(array.dtype, np.floating):
        return array.tolist()
    short = array.astype(str).astype(np.float64)
    if np.isfinite(short).all():
        return short.tolist()
    return np.where(np.isfinite(short), short.astype(object), np.array(None)).tolist()


class _Config(TypedDict):
    """What tables say of a room."""

    game: str
    agent: str


class _Header(TypedDict):
    versions: Mapping[str, Any]
    config: _Config
    seed: int
    actions: list[str]
    agent_features: list[str]
    shared_features: list[str]
    types: list[str]
    sides: list[int]


@dataclass(frozen=True)
class Recording:
    """The content of a file."""

    path: Path
    header: PlainDict
    lines: list[PlainDict]
    """The first state, then steps, changes and rewinds."""
    complete: bool
    """Whether the recording was closed."""

    @property
    def config(self) -> RoomConfig:
        """The settings of the room."""
        try:
            return from_dict(RoomConfig, self.header["config"])
        except (TypeError, ValueError) as error:
            raise InputError(f"{self.path} has settings that cannot be used: {error}") from None


def read_recording(path: str | Path) -> Recording:
    """Read a recording.

    Args:
        path: The file. The recording may be incomplete, and its last line may be torn.

    Raises:
        InputError: If it is no recording, of another format, or damaged.
    """
    path = Path(path)
    *whole, torn = read_file(path).split(b"\n")
    lines, check = [], 0
    for number, row in enumerate(whole, start=1):
        line, check = _parse(row, check, f"{path}, line {number},")
        lines.append(line)
    if not lines or lines[0].get("kind") != HEADER:
        raise InputError(f"{path} is not a recording of an episode.")
    header, *lines = lines
    if header.get("format") != FORMAT:
        raise InputError(
            f"{path} has format {header.get('format')}, but this version reads {FORMAT}."
        )
    if expected := misfit(header, _Header):
        raise InputError(f"{path} is damaged: its header is not {expected}.")
    complete = bool(lines) and lines[-1]["kind"] == END and not torn
    return Recording(path, header, lines[:-1] if complete else lines, complete)


def _parse(row: bytes, check: int, place: str) -> tuple[PlainDict, int]:
    """Return a line and the checksum of all lines so far."""
    body, mark, stored = row.rpartition(b',"check":')
    check = zlib.crc32(body + b"}", check)
    if len(row) > MAX_JSON_BYTES:
        raise InputError(f"{place} is damaged: it is too long.")
    if not mark or stored != b"%d}" % check:
        raise InputError(f"{place} is damaged: its checksum does not fit.")
    try:
        line = parse_json(body + b"}", place)
        return {"kind": line.pop("kind"), **line}, check
    except (ValueError, KeyError, AttributeError):
        raise InputError(f"{place} is damaged.") from None


def versions() -> dict[str, str]:
    """Return the versions that the last bits of numbers depend on."""
    installed = {name: version(name) for name in ("jax", "jaxlib")}
    return {"dropin": dropin.__version__, **installed, "machine": platform.machine()}
