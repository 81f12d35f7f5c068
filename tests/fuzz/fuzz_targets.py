"""Everything that Dropin reads from files, pages and command lines: a small function each.

A target is given the bytes of an input and a path in a directory of its own. It reads them in the
way in which the commands do, and does with the result what the commands do first.
"""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import safetensors.numpy
from fuzz_benchmark_targets import existing
from fuzz_mutators import (
    Mutate,
    mutate_bytes,
    mutate_json,
    mutate_recording,
    mutate_safetensors,
    mutate_table,
    mutate_toml,
    mutate_words,
    sign_lines,
    sign_safetensors,
)

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(__file__).parent / "corpus"
"""Inputs that once failed, a directory for each target."""
Read = Callable[[bytes, Path], object]


@dataclass(frozen=True)
class Target:
    """Something that is read."""

    name: str
    read: Read
    mutate: Mutate
    seeds: Callable[[], Iterable[bytes]]
    """Inputs that are right, to begin with."""
    weight: float = 1.0
    """Share of the time that it gets, relative to others."""

    @property
    def failed(self) -> list[Path]:
        """The inputs that once failed."""
        return sorted((CORPUS / self.name).glob("*"))


TARGETS: dict[str, Target] = {}


def target(
    mutate: Mutate, seeds: Callable[[], Iterable[bytes]], weight: float = 1.0
) -> Callable[[Read], Read]:
    """Add a function to the targets, under its name.

    Args:
        mutate: Makes an input of another one.
        seeds: Returns the first inputs.
        weight: Share of the time that it gets, relative to others.
    """

    def add(read: Read) -> Read:
        name = read.__name__.replace("_", "-")
        TARGETS[name] = Target(name, read, mutate, seeds, weight)
        return read

    return add


# Agents, checkpoints and other arrays.


@cache
def small_agent() -> tuple[dict[str, np.ndarray], dict[str, object]]:
    """Return the arrays and the description of an agent with small networks."""
    import tiny
    from arena_rooms import room

    from dropin.agents import Agent, describe
    from dropin.core import registry
    from dropin.core.arrays import array_paths
    from dropin.training.config import TrainConfig

    env, spec = room().make_env(), registry.learners["gpl-q"]
    settings = spec.default_settings("lbf", **tiny.SETTINGS)
    policy = spec.make(settings, TrainConfig()).policy_template(env.interface)
    agent = Agent(policy, spec.name, settings)
    arrays = {name: np.zeros(each.shape, each.dtype) for name, each in array_paths(policy)}
    return arrays, {"kind": "agent", **describe(agent)}


def _file(arrays: dict[str, np.ndarray], about: object) -> bytes:
    metadata = {"dropin": f"x {json.dumps(about)}"}
    return sign_safetensors(safetensors.numpy.save(dict(arrays), metadata))


def agents() -> list[bytes]:
    arrays, about = small_agent()
    names = {name: name for name in arrays}
    checkpoint = {**about, "kind": "checkpoint", "step": 3, "policy_arrays": names}
    return [_file(arrays, about), _file(arrays, checkpoint)]


def tables_of_arrays() -> list[bytes]:
    arrays = {"a": np.arange(6, dtype=np.int32).reshape(2, 3), "b": np.zeros((), np.float32)}
    more = {"x.y": np.ones((2, 0), bool), "k": np.zeros(2, np.uint32), "h": np.ones(3, np.float16)}
    return [_file(arrays, {"kind": "test", "list": [1, 2]}), _file(more, {})]


@target(mutate_safetensors, tables_of_arrays)
def arrays(data: bytes, path: Path) -> None:
    """A safetensors file: agents, checkpoints, weights of types, states of recipes."""
    from dropin.core.files import read_arrays

    path.write_bytes(data)
    read, about = read_arrays(path)
    assert all(isinstance(name, str) for name in read)
    assert isinstance(about, dict)


def descriptions() -> list[bytes]:
    _, about = small_agent()
    old = {"format": 1, "learner": "gpl-q", "meets": {"game": "lbf", "agents": ["x"], "shared": [],
           "actions": ["a"], "absent": [0.0], "sides": 1}, "config": {"type_units": 4}}  # fmt: skip
    names = {"policy_arrays": {"a": "a", "b": "b"}}
    values = [
        about, {**about, "kind": "checkpoint", **names}, {**old, "kind": "agent"},
        {**old, "kind": "checkpoint", "temperature": 0.5},
    ]  # fmt: skip
    return [json.dumps(each).encode() for each in values]


@target(mutate_json, descriptions)
def agent_description(data: bytes, path: Path) -> None:
    """What the file of an agent says of it, up to the shapes of its networks."""
    from dropin.agents import read_description
    from dropin.core.reading import parse_json

    arrays = {"a": np.zeros(2, np.float32), "b": np.zeros((1, 2), np.int32)}
    read_description(arrays, parse_json(data, path), path)


@target(mutate_safetensors, agents, weight=0.5)
def agent_file(data: bytes, path: Path) -> None:
    """A whole file of an agent or a checkpoint."""
    from dropin.agents import load_agent

    path.write_bytes(data)
    load_agent(path)


# Runs.


def runs() -> list[bytes]:
    from dropin.training.config import run_config

    configs = [
        run_config("lbf", "gpl-q", types=("H1",)), run_config("fortattack", "gpl-spi"),
        run_config("wolfpack", "maddpg", game_settings={"num_prey": 1}),
    ]  # fmt: skip
    files = [
        {"format": 2, "config": each.to_dict(), "versions": {"jax": "1"}, "machine": "x", "keep": 3}
        for each in configs
    ]
    old = {"config": {"game": "lbf", "learner": "gpl-q", "settings": {"type_units": 100},
           "changes": {}, "training": {"envs": 16, "epsilon": {"first": 1.0, "last": 0.1,
           "steps": 10, "every": 2}}, "evaluation": {"envs": 4}}}  # fmt: skip
    return [json.dumps(each).encode() for each in (*files, old)]


@target(mutate_json, runs)
def run_json(data: bytes, path: Path) -> None:
    """The settings of a run: everything that is read of `run.json`."""
    from dropin.core.errors import InputError
    from dropin.training.run_directory import RunDirectory, runs_of_one_kind

    path.mkdir(exist_ok=True)
    (path / "run.json").write_bytes(data)
    files = RunDirectory(path)
    if len(data) % 8:  # As a rule only what all commands read: the rest takes long.
        files.config()
        return
    for look in (files.check_resumable, files.check_versions, files.ran_on):
        with suppress(InputError):
            look()
    files.check_same(files.config())
    runs_of_one_kind(path)


def tables() -> list[bytes]:
    return [
        b"step,team_limit,mode,teammates,episodes,mean_return,ci_low,ci_high,legacy_mean_return,agent\n"
        b"0,3,greedy,strangers,5,0.5,0.1,0.9,0.4,last\n16,3,greedy,strangers,5,0.75,,,0.4,best\n",
        b"step,team_limit,policy,mean,low,high,legacy\n0,3,greedy,1.5,1,2,1\n",
        b"step,loss,unshaped\n0,1.25,3\n6400,nan,\n",
    ]


@target(mutate_table, tables)
def table(data: bytes, path: Path) -> None:
    """The tables of a run, and what is computed from `evaluation.csv`."""
    from dropin.core.errors import InputError
    from dropin.evaluation.curves import Curve
    from dropin.experiments.kept import final_row
    from dropin.experiments.planning import StoredRun
    from dropin.training.tables import read_table

    path.mkdir(exist_ok=True)
    for name in ("metrics.csv", "evaluation.csv", "fresh.csv"):
        (path / name).write_bytes(data)
    with suppress(InputError):
        read_table(path / "metrics.csv")
    run = StoredRun(path, _config())
    rows = run.evaluations
    for look in (lambda: run.is_done, lambda: run.evaluated_limits, lambda: run.best_step,
                 lambda: run.evaluated_teammates, lambda: run.last_evaluated_step,
                 lambda: final_row(run, "last", 3), lambda: final_row(run, "best", 3),
                 lambda: Curve("c", [rows, rows])):  # fmt: skip
        with suppress(InputError):
            look()
    Curve("c", [rows])


@cache
def _config():
    from dropin.training.config import run_config

    return run_config("lbf", "gpl-q", steps=16)


def words() -> list[bytes]:
    return [
        b"settings.rank=3\ntraining.num_envs=32", b"log_every=20\nevaluation.team_limits=[3, 5]",
        b'training.epsilon={"initial":1.0,"final":0.1,"num_steps":10}\nrules=reference',
        b"0..7", b"0,3,5", b"all", b"game_settings.width=9\ntypes=[\"H1\"]\nopenness=closed",
    ]  # fmt: skip


@target(mutate_words, words)
def settings(data: bytes, path: Path) -> None:
    """`--set`, `--seeds` and `--keep` of `dropin train`."""
    from dropin.cli.train import _parse_keep, _parse_seeds
    from dropin.core.config import merge, parse_settings
    from dropin.core.errors import InputError
    from dropin.training.config import RunConfig

    texts = data.decode(errors="surrogateescape").split("\n")
    for parse in (_parse_keep, _parse_seeds):
        with suppress(InputError):
            parse(texts[0])
    changes = parse_settings(texts)
    RunConfig.from_dict(merge(_plain_config(), changes))


@cache
def _plain_config() -> dict[str, object]:
    return _config().to_dict()


# The zoo and experiments.


def cards() -> list[bytes]:
    directory = ROOT / "src" / "dropin" / "zoo" / "cards"
    return [(directory / name).read_bytes() for name in ("lbf/H5.json", "lbf/gpl-q.json")]


@target(mutate_json, cards)
def card(data: bytes, path: Path) -> None:
    """A card of the zoo, as `dropin zoo` and the arena show it."""
    from dropin.arena.catalogue import _scores
    from dropin.cli.zoo import _flat, _measurement_rows
    from dropin.zoo.cards import read_card_file

    path.write_bytes(data)
    found = read_card_file(path)
    assert found["summary"] is not None
    f"{found['settings']['steps']:,}"
    list(_measurement_rows([found]))
    list(_flat(found))
    _scores(found)


def stored() -> list[bytes]:
    key = {"analysis": "a", "run": "b", "step": 0, "settings": {}}
    return [
        json.dumps({"identity": "x", "reason": "It failed."}).encode(),
        json.dumps({"key": key, "result": [1.5, 2]}).encode(),
    ]


@target(mutate_json, stored, weight=0.5)
def experiment_files(data: bytes, path: Path) -> None:
    """Reasons of failures and results of analyses, as experiments store them."""
    from dropin.experiments.kept import FAILURE, find_failures
    from dropin.experiments.results import read_stored_result

    path.mkdir(exist_ok=True)
    (path / FAILURE).write_bytes(data)
    read_stored_result(path / FAILURE, {"analysis": "a", "run": "b", "step": 0, "settings": {}})
    for identity, reason in find_failures([path]).items():
        assert isinstance(identity, str)
        assert isinstance(reason, str)


# The arena.


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


@target(mutate_json, rooms, weight=0.5)
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


@target(mutate_bytes, headers, weight=0.5)
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

    path.write_bytes(data)
    with suppress(InputError):
        hash(read_recording(path).config)
    list(_rows(load_episodes(path)))


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

    path.write_bytes(data)
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
    import tomllib

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

    folder = path / "results" / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "one.json").write_bytes(data)
    (path / "results" / STUDY_FILE).write_bytes(data)
    with suppress(InputError):
        StudyStore(path / "none").claim(_study())
    store = StudyStore(path / "results")
    with suppress(InputError):
        store.claim(_study())
    export_json(store.sessions).encode()
    export_csv(store.sessions).encode()
    for each in store.sessions:
        store.delete(each.participant)


# Plug-ins.


def entry_points() -> list[bytes]:
    return [b"made-up = made_up:register\nother = a.b:c", b"x = m\n\xc3\xa9 = m:f [extra]"]


def _nothing(*arguments: object) -> Any:
    """Make nothing, in place of an openness or a type."""


class _Harmless(EntryPoint):
    """An entry point that imports nothing: it fails, or registers something under its own name."""

    def load(self):
        from dropin.core import registry

        match len(self.value) % 4:
            case 0:
                raise ImportError(f"{self.module}.{self.attr}")  # As the real one looks at it.
            case 1:
                return lambda: registry.register_openness(self.name, _nothing)
            case 2:
                return lambda: registry.register_type(self.value, self.name, _nothing)
            case _:
                return self.value


@target(mutate_words, entry_points, weight=0.5)
def plugin_metadata(data: bytes, path: Path) -> None:
    """The entry points of installed packages: a plug-in that is wrong is left out."""
    from dropin.core import registry

    lines = [line.partition("=") for line in data.decode(errors="replace").split("\n")]
    found = EntryPoints(
        _Harmless(name.strip(), value.strip(), registry.PLUGIN_GROUP) for name, _, value in lines
    )
    before, types = registry.openness.snapshot(), dict(registry._types)
    registry._broken.cache_clear()
    try:
        with patch("dropin.core.registry.entry_points", lambda group: found):
            list(registry.openness)
            registry.failed_plugins().encode(errors="strict")
            registry.games["nonsense"]
    finally:
        registry.openness.restore(before)
        registry._types.clear()
        registry._types.update(types)
        registry._broken.cache_clear()


for _read, _mutate, _seeds in existing():
    target(_mutate, _seeds)(_read)
