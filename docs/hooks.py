"""MkDocs hooks that generate the tables of the pages from the code.

A page holds a marker, which the build replaces:

    <!-- features lbf paper -->        the observation of a game under a set of rules
    <!-- types lbf paper -->           the types of its pool
    <!-- settings lbf -->              every setting of a game and its team, rules side by side
    <!-- recipes lbf/H5 -->            every setting of recipes of the zoo, side by side
    <!-- agents reference -->          the returns of the trained agents under a set of rules
    <!-- captures wolfpack/recurrent-prey -->  how often prey are captured, and what they do
    <!-- tried wolfpack/recurrent-prey -->     what was tried before the settings were chosen
    <!-- learner ql -->                the settings of a learner, by default and in FortAttack
    <!-- fights paper -->              what the types of FortAttack do, from their cards
    <!-- benchmark lbf -->             the tasks of the benchmark in a game
    <!-- options play -->              the options of a command
    <!-- names dropin -->              the public names of a module, with links to the reference
    <!-- run dropin games -->          a command and what it prints
    <!-- example batch.py -->          a program in examples/
    <!-- file results/games.txt -->    a text file in docs/
"""

import ast
import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
from scipy import stats

import dropin
from dropin.cli import arena, look, play, study
from dropin.core import registry
from dropin.experiments.benchmark.tasks import select_tasks
from dropin.zoo import RECIPES, make_recipe
from dropin.zoo.agent_recipe import TEAM_LIMITS
from dropin.zoo.cards import read_card
from dropin.zoo.wolfpack_table import ACTION_SHARES, TABLE

DOCS = Path(__file__).resolve().parent
SLOTS = 5
"""Number of slots in the tables of features."""
COMMON_SETTINGS = {
    "num_envs": "Parallel environments.",
    "learning_rate": "Learning rate of Adam; the initial one if it decays.",
    "final_learning_rate": "Learning rate of Adam at the end.",
}
"""Settings of recipes whose descriptions in the code differ from recipe to recipe."""
PARTS = ("game", "team.openness", "team.pool.observer", "team.pool.observer.waiting_traits")
"""The parts of an environment that have settings; a game may lack some."""
TRIED_ROWS = ("only H1", "only H4", "only H7", "all types")
"""Rows of the table of prey by which trials are reported."""
MISSING = object()
"""Stands for a setting that does not exist."""
MARKER = re.compile(r"<!-- ([a-z]+) (.+?) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the markers of a page; MkDocs calls this for every page."""
    return MARKER.sub(lambda found: FILLERS[found[1]](*shlex.split(found[2])), markdown)


def features(game: str, rules: str) -> str:
    """Return tables of the agent features and the shared features of a game."""
    agent, shared = dropin.make(game, rules=rules, team_limit=SLOTS).game.features(SLOTS)
    return "\n\n".join(
        [
            "`agents`, one row per slot:",
            _feature_table(agent),
            f"`shared`, {len(shared)} numbers:",
            _feature_table(shared),
        ]
    )


def _feature_table(rows: Iterable[dropin.Feature]) -> str:
    return _table(
        ("index", "name", "meaning", "lowest", "highest", "if absent"),
        [
            (
                str(index),
                each.name,
                each.description,
                *(f"{number:g}" for number in (each.low, each.high, each.absent)),
            )
            for index, each in enumerate(rows)
        ],
    )


def types(game: str, rules: str) -> str:
    """Return a table of the types in a game's pool."""
    pool = dropin.make(game, rules=rules).team.pool
    rows = [(f"`{each.name}`", each.summary) for each in pool.types]
    return _table(("type", "what it does"), rows)


def settings(game: str) -> str:
    """Return the settings of a game, its openness and its observer under each set of rules."""
    all_rules = list(registry.games[game].rules)
    envs = [dropin.make(game, rules=rules) for rules in all_rules]
    rows = []
    for part in PARTS:
        objects = [_get(env, part) for env in envs]
        # The class of a part may depend on the rules; the fields of each class are listed.
        for cls in dict.fromkeys(type(each) for each in objects if each is not None):
            meanings = _field_docs(cls)
            for field in fields(cls):
                values = [
                    getattr(each, field.name) if isinstance(each, cls) else MISSING
                    for each in objects
                ]
                if any(isinstance(value, eqx.Module) for value in values):
                    continue
                name = f"`{cls.__name__}.{field.name}`"
                rows.append((name, meanings[field.name], *map(_value, values)))
    return _table(("setting", "meaning", *(f"`{rules}`" for rules in all_rules)), rows)


def recipes(*names: str) -> str:
    """Return the settings of recipes side by side."""
    made = [make_recipe(name) for name in names]
    meanings: dict[str, str] = {}
    for each in made:
        meanings = {**_field_docs(type(each)), **meanings}
    meanings |= COMMON_SETTINGS
    # A recipe that repeats another has its settings too.
    flat = [{**_fields(getattr(each, "training", each)), **_fields(each)} for each in made]
    for each in made:
        meanings = {**_field_docs(type(getattr(each, "training", each))), **meanings}
    rows = []
    for name in dict.fromkeys(name for each in flat for name in each if name != "training"):
        values = [each.get(name, MISSING) for each in flat]
        rows.append((f"`{name}`", meanings[name], *map(_value, values)))
    return _table(("setting", "meaning", *(f"`{name}`" for name in names)), rows)


def agents(rules: str) -> str:
    """Return a table of the trained agents: how long they were trained, and their returns."""
    rows = []
    for name, spec in registry.agents.items():
        card = read_card(name)
        assert card is not None
        measured = {(each["quantity"], each["policy"]): each for each in card["measurements"]}
        who = f"{card['settings']['learner']}, greedy"
        cells = []
        for limit, policy in product(TEAM_LIMITS, (who, "random")):
            each = measured[f"return at team limit {limit}, rules {rules}", policy]
            cells.append(f"{each['mean']:.2f} ({each['low']:.2f} to {each['high']:.2f})")
        size = (spec.directory / "agent.safetensors").stat().st_size / 2**20
        steps = f"{card['settings']['steps']:,}"
        rows.append((f"`{name}`", steps, str(card["seed"]), f"{size:.1f} MiB", *cells))
    columns = [f"{who}limit {limit}" for limit in TEAM_LIMITS for who in ("", "random policy, ")]
    return _table(("name", "steps", "seed", "size", *columns), rows)


def _fields(config: Any) -> dict[str, Any]:
    return {each.name: getattr(config, each.name) for each in fields(config)}


def learner(name: str) -> str:
    """Return the settings of a learner."""
    spec = registry.learners[name]
    default, fortattack = spec.default_settings(), spec.default_settings("fortattack")
    meanings = _field_docs(spec.settings)
    rows = [
        (
            f"`{each.name}`",
            _value(getattr(default, each.name)),
            _value(getattr(fortattack, each.name)),
            meanings[each.name],
        )
        for each in fields(spec.settings)
    ]
    return _table(("setting", "default", "in FortAttack", "meaning"), rows)


def captures(name: str) -> str:
    """Return two tables: captures and actions of prey, beside those of the authors' prey."""
    card = read_card(name)
    assert card is not None
    measured = {(each["quantity"], each["policy"]): each for each in card["measurements"]}

    def cell(quantity: str, policy: str, digits: int = 2) -> str:
        each = measured[quantity, policy]
        error = (each["high"] - each["low"]) / 2 / stats.t.ppf(0.975, each["n"] - 1)
        return f"{each['mean']:.{digits}f} ± {error:.{digits}f}"

    policies = ("with memory", "without memory", "random")
    rows = [
        (
            row.name,
            f"{row.captures:.2f} ± {row.error:.2f}",
            *(cell(row.quantity, policy) for policy in policies),
        )
        for row in TABLE
    ]
    head = ("captures in 200 steps", "authors' prey", "ours", "version 0.1", "random")
    shares = [
        (action, f"{share:.2f}", cell(f"share of the action {action}", "with memory"))
        for action, share in ACTION_SHARES.items()
    ]
    actions = _table(("share of actions, limit 3, all types", "authors' prey", "ours"), shares)
    return f"{_table(head, rows)}\n\n{actions}"


def tried(name: str) -> str:
    """Return what was tried before the settings of a recipe were chosen, as its card says."""
    card = read_card(name)
    assert card is not None
    rows = [
        (
            each["setting"],
            str(each["checkpoints"]),
            *(f"{each['captures'][who]:.2f}" for who in TRIED_ROWS),
        )
        for each in card["tried"]
    ]
    return _table(("setting", "checkpoints", *TRIED_ROWS), rows)


def fights(rules: str) -> str:
    """Return two tables, one per side: how its types do against each type of the other side."""
    tables = []
    for side, other_side in (("G", "A"), ("A", "G")):
        cards = [read_card(name) for name in RECIPES if name.startswith(f"fortattack/{side}")]
        means = [
            {
                each["quantity"].removesuffix(f", rules {rules}"): each["mean"]
                for each in card["measurements"]
                if each["quantity"].endswith(f"rules {rules}")
            }
            for card in cards
        ]
        columns = [quantity.removeprefix("forts that fall, ") for quantity in means[0]]
        rows = [
            (
                f"**{card['name'].removeprefix('fortattack/')}**",
                *(f"{mean:.2f}" for mean in each.values()),
            )
            for card, each in zip(cards, means, strict=True)
        ]
        assert all(list(each) == list(means[0]) for each in means)
        assert other_side in columns[0]
        tables.append(_table(("forts that fall", *columns), rows))
    return "\n\n".join(tables)


def benchmark(game: str) -> str:
    """Return a table of the benchmark's tasks in a game."""
    rows = [
        (
            f"`{task.name}`",
            task.summary,
            " ".join(task.train_types or ("all",)),
            " ".join(task.test_types or ("all",)),
            ", ".join(map(str, task.test_limits)),
            str(task.version),
        )
        for task in select_tasks([game])
    ]
    columns = ("task", "what it is about", "trained with", "tested with", "limits", "version")
    return _table(columns, rows)


def options(command: str) -> str:
    """Return a table of the options of a command."""
    functions = {"arena": arena.arena, "play": play.play, "study": study.study, "types": look.types}
    function = functions[command]
    _, _, text = (inspect.getdoc(function) or "").partition("Args:\n")
    # A line that is indented further continues the one before it.
    lines = re.sub(r"\n\s{8,}", " ", text).splitlines()
    rows = []
    for line in lines:
        name, _, meaning = line.strip().partition(": ")
        default = inspect.signature(function).parameters[name].default
        if default is inspect.Parameter.empty:
            rows.append((f"`{name.upper()}`", meaning, "required"))
        else:
            shown = "" if default in (None, False, ()) else f"`{default}`"
            rows.append((f"`--{name.replace('_', '-')}`", meaning, shown))
    return _table(("option", "meaning", "default"), rows)


def names(module: str) -> str:
    """Return a table of the public names of a module; each links to its reference entry."""
    found = importlib.import_module(module)
    rows = []
    for name in found.__all__:
        public = getattr(found, name)
        summary = (inspect.getdoc(public) or "").partition("\n\n")[0].replace("\n", " ")
        rows.append((f"[`{name}`][{public.__module__}.{public.__qualname__}]", summary))
    return _table(("name", "meaning"), rows)


def run(program: str, *arguments: str) -> str:
    """Return a command as typed, and what it prints."""
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
    """Return a program in examples/."""
    return f"```python\n{(DOCS.parent / 'examples' / name).read_text()}```"


def file(name: str) -> str:
    """Return a text file in docs/."""
    return f"```\n{(DOCS / name).read_text().strip()}\n```"


def _get(found: Any, path: str) -> Any:
    """Return the attribute at a dotted path; None if there is none."""
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _value(value: Any) -> str:
    """Return the value of a setting as code."""
    if value is MISSING:
        return ""
    plain = None if value is None else np.asarray(value).tolist()
    if isinstance(plain, float):
        return f"`{plain:g}`"
    return f"`{tuple(plain) if isinstance(plain, list) else plain}`"


def _field_docs(cls: type) -> dict[str, str]:
    """Return the docstring below each field of a class of Dropin and its base classes."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] == "dropin":
            docs |= _own_field_docs(base)
    return docs


def _own_field_docs(cls: type) -> dict[str, str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    docs: dict[str, str] = {}
    name = None
    for statement in tree.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=field)):
                name = field
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                docs[name] = " ".join(text.split())
            case _:
                name = None
    return docs


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


FILLERS: dict[str, Callable[..., str]] = {
    each.__name__: each
    for each in (
        features,
        types,
        settings,
        recipes,
        agents,
        captures,
        tried,
        learner,
        fights,
        benchmark,
        options,
        names,
        run,
        example,
        file,
    )
}
"""The function of each marker."""
