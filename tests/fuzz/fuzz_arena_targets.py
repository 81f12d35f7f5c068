"""What the arena reads: messages, rooms, headers, recordings, studies and their results."""

import json
import tempfile
import tomllib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_mutators import mutate_bytes, mutate_json, mutate_recording, mutate_toml, sign_lines
from fuzz_table import ROOT, folder, put, target


def messages() -> list[bytes]:
    values = [
        {"type": "hello", "name": "A", "token": "abcdefgh", "session": "s"}, {"type": "play"},
        {"type": "speed", "per_second": 2.5}, {"type": "take", "slot": 1},
        {"type": "ping", "t": 0.5}, {"type": "pair", "step": 1, "a": 0, "b": 1},
        {"type": "clock", "kind": "turns", "tick_ms": 250, "limit_ms": 5000},
        {"type": "act", "action": 1, "step": 2, "ms": 12.5},
    ]  # fmt: skip
    return [json.dumps(each).encode() for each in values]


@target(mutate_json, messages)
def message(data: bytes, path: Path) -> None:
    """A message from a browser: as text, and as bytes."""
    from dropin.arena.protocol import encode, parse_message
    from dropin.core.errors import InputError

    with suppress(InputError):
        parse_message(data)
    found = parse_message(data.decode(errors="replace"))
    encode("echo", values=dict(found.values)).encode()


def rooms() -> list[bytes]:
    values = [
        {"game": "lbf", "rules": "paper", "team_limit": 4, "types": ["H1"], "agent": "random"},
        {"game": "lbf", "openness": "scripted", "initial_slots": [1, 2], "team_limit": 4,
         "schedule": [[10, "leaves", 1], [12, "enters", 3]], "seed": 5, "mode": "greedy"},
        {"game": "fortattack", "clock": {"kind": "real_time", "tick_ms": 200}, "on_leave": "leave"},
        {"agent": "lbf/gpl-q", "openness": "closed"}, {"agent": "H1"},
    ]  # fmt: skip
    return [json.dumps(each).encode() for each in values]


@target(mutate_json, rooms)
def room(data: bytes, path: Path) -> None:
    """The settings of a room, as a browser sends them, with its openness."""
    from dropin.arena.config import RoomConfig
    from dropin.arena.protocol import parse_object
    from dropin.core.config import from_dict, to_dict

    config = from_dict(RoomConfig, {"game": "lbf", **parse_object(data)})
    hash(config)
    openness = config._openness()
    if openness is not None and not isinstance(openness, str):
        openness.validate((0,) * min(config.team_limit, 9), config.team_limit)
    json.dumps(to_dict(config)).encode()


@target(mutate_json, rooms)
def room_env(data: bytes, path: Path) -> None:
    """The same, up to the environment and the policy of the room."""
    from dropin.arena.protocol import parse_object

    _catalogue().room_config(parse_object(data))


@cache
def _catalogue():
    from dropin.arena.catalogue import Catalogue

    return Catalogue()


def headers() -> list[bytes]:
    return [
        b"host: 127.0.0.1:8000\norigin: http://127.0.0.1:8000\nauthorization: Bearer abcdefgh",
        b"host: [::1]:8000\norigin: https://[::1]:8000", b"host: localhost\norigin: null",
    ]  # fmt: skip


@target(mutate_bytes, headers)
def request_headers(data: bytes, path: Path) -> None:
    """The headers of a request: host, origin and token."""
    from starlette.datastructures import Headers

    from dropin.arena.security import Access, check_token
    from dropin.core.errors import InputError

    pairs = [line.partition(b":") for line in data.split(b"\n")]
    given = Headers(raw=[(name.strip().lower(), value.strip()) for name, _, value in pairs])
    access = Access("abcdefgh")
    for look in (access.check_source, access.check_bearer):
        with suppress(InputError):
            look(given)
    check_token(data.decode(errors="surrogateescape"))


def recordings() -> list[bytes]:
    header = {
        "kind": "header", "format": 1, "versions": {"jax": "1"}, "config": {"game": "lbf",
        "agent": "random"}, "seed": 0, "game_version": 1, "agent_checksum": None, "about": {},
        "actions": ["stay", "up"], "agent_features": ["x"], "shared_features": [], "types": ["H1"],
        "sides": [0, 0],
    }  # fmt: skip
    state = {"step": 0, "digest": "d", "present": [1, 1], "arrived": [1, 1], "types": [0, 0],
             "agents": [[0.5], [1]], "shared": [], "chosen": 1, "q": [0.5, 1],
             "probs": [[0.5, 0.5], [0, 1]]}  # fmt: skip
    played = {"forced": {"1": 0}, "people": {"1": "p"}, "keys": {"1": {"after_ms": 5.5,
              "latency_ms": None, "default": False}}, "actions": [1, 0], "acted": [1, 1],
              "rewards": [0, 1], "terminated": False, "truncated": False}  # fmt: skip
    change = {"kind": "change", "people": {}, "joined": [1], "replaced": [], "left": [], **state}
    lines = [
        header, {"kind": "state", **state}, {"kind": "step", **played, **state, "step": 1}, change,
        {"kind": "step", **played, **state, "step": 2}, {"kind": "rewind", "step": 1},
        {"kind": "step", **played, **state, "step": 2}, {"kind": "end"},
    ]  # fmt: skip
    texts = [json.dumps(each, separators=(",", ":")).encode() for each in lines]
    return [sign_lines(texts), sign_lines(texts[:3]), sign_lines(texts)[:-5]]


@target(mutate_recording, recordings)
def recording(data: bytes, path: Path) -> None:
    """A recorded episode: its arrays, its table and the settings of its room."""
    from dropin.arena.episodes import _rows, load_episodes
    from dropin.arena.recording import read_recording
    from dropin.core.errors import InputError

    put(path, data)
    with suppress(InputError):
        hash(read_recording(path).config)
    list(_rows(load_episodes(path)))


@cache
def _played() -> tuple[Any, list[bytes]]:
    """Return the simulation of a small room, and recordings of an episode in it."""
    from arena_rooms import room as small_room
    from arena_rooms import simulation

    from dropin.arena.recording import KeyPress, Recorder

    config = small_room("lbf", agent="random", openness="closed", types=("H1",), seed=4)
    played = simulation(config, "random")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "episode.jsonl"
        moments = [played.reset(4)]
        recorder = Recorder(path, played, config, moments[0], 4)
        moments[0] = played.change(moments[0], joined=[1])
        recorder.change(moments[0], joined=[1], people={1: "ada"})
        for number in range(3):
            moments.append(played.step(moments[-1], {1: number}))
            key = KeyPress(after_ms=120.5, latency_ms=3.25, default=False)
            recorder.step(moments[-1], {1: number}, people={1: "ada"}, keys={1: key})
        recorder.rewind(2)
        recorder.close()
        whole = path.read_bytes()
    first = [line[: line.rindex(b',"check":')] + b"}" for line in whole.splitlines()]
    return played, [whole, sign_lines([*first[:3], first[-1]])]


def replayed() -> list[bytes]:
    return _played()[1]


@target(mutate_recording, replayed)
def replay(data: bytes, path: Path) -> None:
    """A recorded episode that is simulated again, in the room in which it was played."""
    from dropin.arena import replay as module

    put(path, data)
    make = module._make_simulation
    module._make_simulation = lambda recording, find_agent: _played()[0]
    try:
        module.replay(path)
    finally:
        module._make_simulation = make


def studies() -> list[bytes]:
    small = b"""title = "Small"
consent = "Do you agree?"
debriefing = {text = "Thanks."}
completion_code = "CODE"
design = "within"
seed = 3
conditions = [{name = "a", agent = "random"}, {name = "b", agent = "H1", clock = {kind = "turns"}}]
questions = [{id = "how", kind = "scale", text = "How?", max = 5},
  {id = "which", kind = "choice", text = "Which?", options = ["x", "y"]},
  {id = "why", kind = "text", text = "Why?", required = false, max_length = 10}]
[room]
game = "lbf"
[rounds]
number = 2
[practice]
episodes = 2
[exclusion]
idle_share = 0.25
"""
    return [small, (ROOT / "examples" / "study.toml").read_bytes()]


@target(mutate_toml, studies)
def study(data: bytes, path: Path) -> None:
    """The file of a study: its pages, its rooms and how participants are assigned."""
    from dropin.arena.config import RoomConfig
    from dropin.arena.study import load_study
    from dropin.core.config import from_dict
    from dropin.core.errors import InputError

    put(path, data)
    found = load_study(path)
    found.assign([found.orders[0]], None)
    for order in found.orders[:2]:
        for page in found.pages(order):
            if page.kind in ("practice", "round"):
                with suppress(InputError):
                    from_dict(RoomConfig, {"game": "lbf", **found.room_values(page)})
    for values in found.all_rooms()[:3]:
        with suppress(InputError):
            from_dict(RoomConfig, {"game": "lbf", **values})
    found.with_agents(str)
    json.dumps([each.describe() for each in found.questions]).encode()
    f"{found.title}{found.consent.title}".encode()


def answers_given() -> list[bytes]:
    values = {"how": 3, "which": "x", "why": "because"}
    return [json.dumps({"answers": values}).encode(), b'{"answers": {"how": 1, "which": "y"}}']


@target(mutate_json, answers_given)
def answers(data: bytes, path: Path) -> None:
    """The answers of a participant, up to the export."""
    from dropin.arena.protocol import parse_object
    from dropin.arena.questions import check_answers
    from dropin.arena.study_store import export_csv, export_json

    found = parse_object(data)
    session = _session()
    session.rounds[0]["answers"] = check_answers(_study().questions, found.get("answers"))
    export_json([session]).encode()
    for line in export_csv([session]).splitlines():
        line.encode()


@cache
def _study():
    from dropin.arena.study import read_study

    return read_study(tomllib.loads(studies()[0].decode()))


def _session():
    from dropin.arena.study_store import Session

    values = json.loads(sessions()[0])
    return Session(**values)


def sessions() -> list[bytes]:
    episode = {"seed": 0, "steps": 5, "score": 0.5, "person_steps": 5, "idle_steps": 1,
               "recording": "r.jsonl"}  # fmt: skip
    round_ = {
        "number": 1,
        "practice": False,
        "condition": "a",
        "seed": 0,
        "rooms": ["r"],
        "episodes": [episode],
        "disconnections": 0,
        "answers": {"how": 3, "why": "=1+1"},
    }
    values = {
        "id": "ab" * 16, "participant": "p-1", "order": ["a", "b"], "started": 1.5,
        "finished": None, "page": 3, "times": [1.0, 2.0], "rounds": [round_], "format": 1,
        "exclusion": {"idle_share": 0.5, "disconnections": 3},
    }  # fmt: skip
    return [json.dumps(values).encode()]


@target(mutate_json, sessions)
def session(data: bytes, path: Path) -> None:
    """The results of a participant, their export and their deletion."""
    from dropin.arena.study_store import STUDY_FILE, StudyStore, export_csv, export_json
    from dropin.core.errors import InputError

    put(folder(path / "results" / "sessions") / "one.json", data)
    put(path / "results" / STUDY_FILE, data)
    with suppress(InputError):
        StudyStore(path / "none").claim(_study())
    store = StudyStore(path / "results")
    with suppress(InputError):
        store.claim(_study())
    export_json(store.sessions).encode()
    export_csv(store.sessions).encode()
    for each in store.sessions:
        store.delete(each.participant)
