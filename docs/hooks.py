"""Fills the tables of the pages from the code, so that they cannot go stale.

A page holds a marker, and the build puts what it names in its place:

    <!-- features lbf paper -->        the observation of a game under a set of rules
    <!-- types lbf paper -->           the types of its pool
    <!-- settings lbf -->              every constant of a game and its team, rules side by side
    <!-- options play -->              the options of a command
    <!-- run dropin games -->          what a command prints
    <!-- example batch.py -->          a program in examples/
    <!-- file results/games.txt -->    a text file in docs/
"""

import ast
import inspect
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

import dropin
from dropin.cli import look, play
from dropin.games import RULES
from dropin.games.base import Feature

SLOTS = 5
MEANINGS = {
    "Look.sights": "How far a teammate sees to each side; each draws one of these at its entry.",
}
"""For fields that have no words of their own in the code."""

MARKER = re.compile(r"<!-- (features|types|settings|options|run|example|file) (.+?) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    return MARKER.sub(lambda found: FILLERS[found[1]](*shlex.split(found[2])), markdown)


def features(game: str, rules: str) -> str:
    agent, shared = dropin.make(game, rules=rules, team_limit=SLOTS).game.features(SLOTS)
    return "\n\n".join(
        [
            "`agents`, one row a slot:",
            _features(agent),
            f"`shared`, {len(shared)} numbers:",
            _features(shared),
        ]
    )


def _features(rows: Iterable[Feature]) -> str:
    return _table(
        ("place", "name", "meaning", "lowest", "highest", "if absent"),
        [
            (str(place), each.name, each.meaning, *(f"{n:g}" for n in _numbers(each)))
            for place, each in enumerate(rows)
        ],
    )


def _numbers(each: Feature) -> tuple[float, float, float]:
    return each.low, each.high, each.absent


def types(game: str, rules: str) -> str:
    pool = dropin.make(game, rules=rules).team.pool
    return _table(("type", "what it does"), [(f"`{each.name}`", each.about) for each in pool.types])


def settings(game: str) -> str:
    """The fields of a game, its openness and its views, with the value under each set of rules."""
    made = [dropin.make(game, rules=rules) for rules in RULES]
    rows = []
    for part in ("game", "team.openness", "team.pool.look"):
        objects = [_get(env, part) for env in made]
        kind = type(objects[0])
        meanings = _field_docs(kind)
        for field in fields(kind):
            values = [getattr(each, field.name) for each in objects]
            if isinstance(values[0], eqx.Module):
                continue
            name = f"{kind.__name__}.{field.name}"
            meaning = meanings.get(field.name) or MEANINGS[name]
            rows.append((f"`{name}`", meaning, *(f"`{_value(value)}`" for value in values)))
    return _table(("setting", "meaning", *(f"`{rules}`" for rules in RULES)), rows)


def _get(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _value(value: Any) -> str:
    if value is None:
        return "None"
    plain = np.asarray(value).tolist()
    return str(tuple(plain) if isinstance(plain, list) else plain)


def _field_docs(cls: type) -> dict[str, str]:
    """What is written below each field of a class."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    docs, name = {}, None
    for statement in tree.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                docs[name] = " ".join(text.split())
            case _:
                name = None
    return docs


def options(command: str) -> str:
    function = {"play": play.play, "types": look.types}[command]
    rows = []
    _, _, text = inspect.getdoc(function).partition("Args:\n")
    for line in text.splitlines():
        name, _, meaning = line.strip().partition(": ")
        default = inspect.signature(function).parameters[name].default
        if default is inspect.Parameter.empty:
            rows.append((f"`{name.upper()}`", meaning, "required"))
        else:
            shown = "" if default is None or default is False else f"`{default}`"
            rows.append((f"`--{name.replace('_', '-')}`", meaning, shown))
    return _table(("option", "meaning", "default"), rows)


def run(program: str, *arguments: str) -> str:
    """A command as typed, and what it prints."""
    assert program == "dropin"
    plain = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    printed = subprocess.run(
        [sys.executable, "-m", "dropin.cli", *arguments],
        env=plain | {"COLUMNS": "88"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    lines = [f"$ {shlex.join((program, *arguments))}", *printed.splitlines()]
    return "\n".join(["```console", *(line.rstrip() for line in lines), "```"])


def example(name: str) -> str:
    program = Path(__file__).resolve().parent.parent / "examples" / name
    return f"```python\n{program.read_text()}```"


def file(name: str) -> str:
    return f"```\n{(Path(__file__).resolve().parent / name).read_text().strip()}\n```"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


FILLERS = {
    "features": features,
    "types": types,
    "settings": settings,
    "options": options,
    "run": run,
    "example": example,
    "file": file,
}
