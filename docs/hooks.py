"""Fills the tables of the pages from the code, so that they cannot go stale.

A page holds a marker, and the build puts what it names in its place:

    <!-- features lbf paper -->        the observation of a game under a set of rules
    <!-- types lbf paper -->           the types of its pool
    <!-- settings lbf -->              every constant of a game and its team, rules side by side
    <!-- recipes lbf/H5 -->            every constant of recipes of the zoo, side by side
    <!-- learner ql -->                the settings of a learner, as they are and in FortAttack
    <!-- fights paper -->              what the types of FortAttack do, from their cards
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
from dropin.learners import find as find_learner
from dropin.zoo import RECIPES, find
from dropin.zoo.cards import read_card

SLOTS = 5
MEANINGS = {
    "Look.sights": "How far a teammate sees to each side; each draws one of these at its entry.",
    "Recipe.steps": "Environment steps, of all parallel environments together.",
    "Recipe.envs": "Parallel environments.",
    "Recipe.period": "Steps of every environment between two updates.",
    "Recipe.batch": "Steps that an update learns from, drawn from those remembered.",
    "Recipe.memory": "How many steps of every environment are remembered.",
    "Recipe.learning_rate": "Of Adam.",
    "Recipe.last_rate": "What the learning rate falls to at the end.",
    "Recipe.target_rate": "The share of the new weights that the targets take on at an update.",
    "Recipe.discount": "Of rewards, for each step.",
    "Recipe.entropy": "The weight of the policies' entropy.",
    "Recipe.exploring": "Steps until the share of random actions has come down from 1.",
    "Recipe.epsilon": "What it comes down to.",
    "Recipe.chunk": "Updates between two reports.",
    "Recipe.arenas": "Parallel environments.",
    "Recipe.passes": "How often each step is learned from.",
    "Recipe.parts": "Into how many parts a pass is divided, with one step of Adam each.",
    "Recipe.trace": "lambda of the advantages.",
    "Recipe.clip": "How far the chance of an action may move before it counts no more.",
    "Recipe.lure": "Extra reward of attackers for each unit that they get closer to the fort.",
    "Recipe.checkpoints": "How often the policies are kept.",
}
"""For fields that have no words of their own in the code, or none that fit a table."""

PARTS = ("game", "team.openness", "team.pool.look", "team.pool.look.patience")
"""Where the settings of an environment are; a game may lack some."""

MARKER = re.compile(r"<!-- ([a-z]+) (.+?) -->")


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
    for part in PARTS:
        objects = [_get(env, part) for env in made]
        # Rules may differ in the kind of a part; the fields of each kind are listed.
        for kind in dict.fromkeys(type(each) for each in objects if each is not None):
            meanings = _field_docs(kind)
            for field in fields(kind):
                values = [
                    getattr(each, field.name) if isinstance(each, kind) else MISSING
                    for each in objects
                ]
                if any(isinstance(value, eqx.Module) for value in values):
                    continue
                name = f"{kind.__name__}.{field.name}"
                meaning = meanings.get(field.name) or MEANINGS[name]
                rows.append((f"`{name}`", meaning, *map(_value, values)))
    return _table(("setting", "meaning", *(f"`{rules}`" for rules in RULES)), rows)


def recipes(*names: str) -> str:
    """The settings of recipes side by side."""
    made = [find(name).load() for name in names]
    rows = []
    for name in dict.fromkeys(field.name for each in made for field in fields(each)):
        values = [getattr(each, name, MISSING) for each in made]
        rows.append((f"`{name}`", MEANINGS[f"Recipe.{name}"], *map(_value, values)))
    return _table(("setting", "meaning", *(f"`{name}`" for name in names)), rows)


def learner(name: str) -> str:
    """The fields of a learner's settings."""
    entry = find_learner(name)
    plain, fort = entry.config(), entry.config("fortattack")
    meanings: dict[str, str] = {}
    for kind in reversed(entry.kind.__mro__[:-1]):
        meanings |= _field_docs(kind)
    rows = [
        (f"`{each.name}`", *(_value(getattr(some, each.name)) for some in (plain, fort)),
         meanings[each.name])
        for each in fields(entry.kind)
    ]  # fmt: skip
    return _table(("setting", "default", "in FortAttack", "meaning"), rows)


MISSING = object()
"""The value of a setting that there is not."""


def fights(rules: str) -> str:
    """Each side's types beside each other: against each type of the other side, and how."""
    tables = []
    for side, others in (("G", "A"), ("A", "G")):
        cards = [read_card(n) for n in RECIPES if n.startswith(f"fortattack/{side}")]
        told = [
            {each["what"].removesuffix(f", rules {rules}"): each["mean"] for each in card["scores"]
             if each["what"].endswith(f"rules {rules}")}
            for card in cards
        ]  # fmt: skip
        head = [what.removeprefix("forts that fall, ") for what in told[0]]
        rows = [
            (
                f"**{card['name'].removeprefix('fortattack/')}**",
                *(f"{x:.2f}" for x in each.values()),
            )
            for card, each in zip(cards, told, strict=True)
        ]
        assert all(list(each) == list(told[0]) for each in told)
        assert others in head[0]
        tables.append(_table(("forts that fall", *head), rows))
    return "\n\n".join(tables)


def _get(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _value(value: Any) -> str:
    if value is MISSING:
        return ""
    plain = None if value is None else np.asarray(value).tolist()
    if isinstance(plain, float):
        return f"`{plain:g}`"
    return f"`{tuple(plain) if isinstance(plain, list) else plain}`"


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
    "recipes": recipes,
    "fights": fights,
    "learner": learner,
    "options": options,
    "run": run,
    "example": example,
    "file": file,
}
