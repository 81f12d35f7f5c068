"""Files of runs and of the zoo, options of commands, and what plug-ins say of themselves."""

import json
import os
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fuzz_mutators import mutate_json, mutate_table, mutate_words
from fuzz_table import ROOT, folder, put, target

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

    folder(path)
    put(path / "run.json", data)
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
    from dropin.training.tables import Table, read_table

    folder(path)
    put(path / "evaluation.csv", data)
    for name in ("metrics.csv", "fresh.csv"):  # The same file, unless it was written anew.
        if not os.path.islink(path / name):
            (path / name).unlink(missing_ok=True)
            (path / name).symlink_to(path / "evaluation.csv")
    with suppress(InputError):
        read_table(path / "metrics.csv")
    if len(data) % 8 == 0:  # As when the run goes on; this writes.
        with suppress(InputError):
            Table(path / "metrics.csv").truncate(Table(path / "metrics.csv").last_step - 1)
            Table(path / "metrics.csv").append({"step": 20, "loss": 0.5})
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

    put(path, data)
    found = read_card_file(path)
    assert found["summary"] is not None
    f"{found['settings']['steps']:,}"
    list(_measurement_rows([found]))
    list(_flat(found))
    _scores(found)


def stored() -> list[bytes]:
    key = {"analysis": "a", "run": "b", "step": 0, "settings": {}}
    result = {"key": key, "result": [1.5, 2]}
    values = [
        {"identity": "x", "reason": "It failed."}, result,
        {"experiments": ["larger_teams"], "results": [result]},
    ]  # fmt: skip
    return [json.dumps(each).encode() for each in values]


@target(mutate_json, stored)
def experiment_files(data: bytes, path: Path) -> None:
    """Reasons of failures and results of analyses, as experiments store and keep them."""
    from dropin.core.errors import InputError
    from dropin.experiments.analyses import ANALYSES, KeptAnalyses, read_stored_result
    from dropin.experiments.kept import FAILURE, find_failures

    folder(path)
    put(path / FAILURE, data)
    put(path / ANALYSES, data)
    read_stored_result(path / FAILURE, {"analysis": "a", "run": "b", "step": 0, "settings": {}})
    with suppress(InputError):
        kept = KeptAnalyses.read(path).with_results("x", {})
        assert all(isinstance(name, str) for name in sorted(kept.experiments))
    for identity, reason in find_failures([path]).items():
        assert isinstance(identity, str)
        assert isinstance(reason, str)


def locks() -> list[bytes]:
    owner = {"host": "here", "pid": 1234, "token": "0123456789abcdef"}
    return [json.dumps(owner).encode(), b""]


@target(mutate_json, locks)
def lock(data: bytes, path: Path) -> None:
    """The lock of a directory that another process holds, which says who that is."""
    from dropin.core.locks import _describe

    put(path, data)
    found = _describe(path)
    found.encode()
    assert len(found) < 500


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


@target(mutate_words, entry_points)
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
