"""What says how a team changes: files of dynamics, kinds with parameters, and schedules."""

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_mutators import mutate_json, mutate_toml
from fuzz_table import put, target

SLOTS, LIMIT, HORIZON = 5, 4, 200


def dynamics_files() -> list[bytes]:
    return [
        b'openness = {kind = "closed"}\n', b'type_changes = {kind = "turncoat"}\n',
        b'[openness]\nkind = "schedule"\nstart = 3\nevents = [[10, "leaves", 1]]\nevery = 50\n',
        b'[openness]\nkind = "churn"\nprobability = 0.1\n\n[type_changes]\nkind = "turncoat"\n'
        b"interval = [5, 9]\n",
    ]  # fmt: skip


@target(mutate_toml, dynamics_files)
def dynamics(data: bytes, path: Path) -> None:
    """A file of how a team changes: openness and type changes with their parameters."""
    from dropin.teams.dynamics import load_dynamics

    put(path, data)
    load_dynamics(path)


def kinds() -> list[bytes]:
    values = [
        {"kind": "closed"}, {"kind": "churn", "initial_size": 3, "probability": 0.05,
         "pair_probability": 0.3, "min_stay": 26}, {"kind": "durations", "active": [15, 25],
         "waiting": [10, 20], "population": 5, "initial_extra": 2},
        {"kind": "schedule", "start": [1, 2], "events": [[10, "leaves", 1], [12, "enters", 3]],
         "every": 0}, {"kind": "schedule", "start": 3, "events": [[3, "leaves", 2]]},
    ]  # fmt: skip
    return [json.dumps(each).encode() for each in values]


@target(mutate_json, kinds)
def openness(data: bytes, path: Path) -> None:
    """A kind of openness with its parameters, up to what an environment asks of it."""
    from dropin.core.reading import parse_json
    from dropin.teams.dynamics import make_openness

    env = _env()
    given = parse_json(data, path)
    if isinstance(given, str) and given.endswith(".toml"):
        return  # Names of files: their content is another target's.
    if not isinstance(given, str | dict):
        return
    found = make_openness(given, "reference", env.game, SLOTS)
    found.validate((0,) * SLOTS, LIMIT)
    assert found.max_agents_per_episode(SLOTS, HORIZON) >= 0


def changes_of_types() -> list[bytes]:
    values = [
        {"kind": "turncoat", "interval": [5, 9]},
        {"kind": "alternating", "pools": [["H1"], ["H6"]], "period": 20},
    ]
    return [json.dumps(each).encode() for each in values]


@target(mutate_json, changes_of_types)
def type_changes(data: bytes, path: Path) -> None:
    """A kind of type changes with its parameters."""
    from dropin.core.reading import parse_json
    from dropin.teams.dynamics import make_type_changes

    given = parse_json(data, path)
    if isinstance(given, dict):
        make_type_changes(given, _env().team.pool)


@cache
def _env() -> Any:
    from arena_rooms import room

    return room().make_env()


def schedules() -> list[bytes]:
    values = [
        {"start": [1, 2], "events": [[10, "leaves", 1], [12, "enters", 3]], "every": 0},
        {"start": 3, "events": [[3, "leaves", 2], [9, "enters", 2]], "every": 10},
        {"events": [[1, "leaves", 1], [1, "enters", 1], [2, "leaves", 2]]},
    ]
    return [json.dumps(each).encode() for each in values]


@target(mutate_json, schedules)
def schedule(data: bytes, path: Path) -> None:
    """A schedule, of a team of its own and in a game with opponents."""
    from dropin.core.errors import InputError
    from dropin.core.reading import parse_json
    from dropin.teams.dynamics import make_openness

    given = parse_json(data, path)
    if not isinstance(given, dict):
        return
    given = {**given, "kind": "schedule"}
    for env, sides in ((_env(), (0,) * SLOTS), (_fort(), (0,) * 3 + (1,) * 3)):
        with suppress(InputError):
            found = make_openness(given, "reference", env.game, sides.count(0))
            found.validate(sides, sides.count(0))
            assert found.max_agents_per_episode(len(sides), HORIZON) > 0


@cache
def _fort() -> Any:
    from arena_rooms import room

    return room("fortattack").make_env()
