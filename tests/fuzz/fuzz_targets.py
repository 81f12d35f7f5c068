"""Everything that Dropin reads from files, pages and command lines: a small function each.

A target is given the bytes of an input and a path in a directory of its own. It reads them in the
way in which the commands do, and does with the result what the commands do first.
"""

import json
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fuzz_arena_targets  # noqa: F401 - adds its targets
import numpy as np
import safetensors.numpy
from fuzz_benchmark_targets import existing
from fuzz_mutators import (
    mutate_json,
    mutate_safetensors,
    mutate_table,
    mutate_words,
    sign_safetensors,
)
from fuzz_table import CORPUS, ROOT, TARGETS, target

__all__ = ["CORPUS", "TARGETS"]

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
    from dropin.training.run_directory import RunDirectory
    from dropin.training.sets_of_runs import runs_of_one_kind

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
    from dropin.experiments.analyses import read_stored_result
    from dropin.experiments.kept import FAILURE, find_failures

    path.mkdir(exist_ok=True)
    (path / FAILURE).write_bytes(data)
    read_stored_result(path / FAILURE, {"analysis": "a", "run": "b", "step": 0, "settings": {}})
    for identity, reason in find_failures([path]).items():
        assert isinstance(identity, str)
        assert isinstance(reason, str)


# Plug-ins.


def entry_points() -> list[bytes]:
    return [b"made-up = made_up:register\nother = a.b:c", b"x = m\n\xc3\xa9 = m:f [extra]"]


def _nothing(*arguments: Any, **named: Any) -> Any:
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
