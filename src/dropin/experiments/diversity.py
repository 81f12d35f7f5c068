"""Whether types demand adaptation, and how learners do with types that they have never met."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from dropin.agents import Agent
from dropin.errors import InputError, unknown
from dropin.evaluation.evaluate import evaluate
from dropin.evaluation.statistics import estimate
from dropin.experiments.choices import Choices
from dropin.experiments.collected import Collected
from dropin.experiments.grid import Grid
from dropin.experiments.outcome import Chart, Outcome, Sheet
from dropin.experiments.runs import Kept
from dropin.experiments.words import CHOICE, NOTHING, PICTURE, cell
from dropin.games import find
from dropin.render.charts import HeatMap

ALL = "all"
DIVERSE = ("lbf", "wolfpack")
"""The games of the paper's heat maps."""
SPLITS: dict[str, dict[str, tuple[Sequence[str], Sequence[str]]]] = {
    "ciao-disjoint": {
        "lbf": (("H1", "H2", "H3", "H4", "H5"), ("H6", "H7", "H8", "H9")),
        "wolfpack": (("H2", "H3", "H4", "H5", "H6"), ("H1", "H7", "H8", "H9")),
    },
    "ciao-shared": {
        "lbf": (("H1", "H2", "H3", "H4", "H5"), ("H5", "H6", "H7", "H8", "H9")),
        "wolfpack": (("H2", "H3", "H4", "H5", "H6"), ("H6", "H1", "H7", "H8", "H9")),
    },
}
"""By game, the types of training and those of the test; shared: one is in both."""
TRAINED = "train"
LIMITS = (2, 3, 5)


def type_names(game: str) -> list[str]:
    """The names of all types of a game."""
    return list(import_module(f"dropin.teams.{find(game).name}.pool").types("paper"))


def _one_of_each(label: str, types: Mapping[str, Sequence[str]], **common: Any) -> dict[str, Grid]:
    """A grid for each name of a type, in all games that have one."""
    grids = {}
    for name in dict.fromkeys(name for each in types.values() for name in each):
        own = {game: (name,) for game, each in types.items() if name in each}
        grids[label.format(name)] = Grid(games=tuple(own), types=own, **common)
    return grids


def one_type_grids(choices: Choices) -> dict[str, Grid]:
    """QL with one teammate, of one type, or of any that is drawn for an episode."""
    del choices
    common: dict[str, Any] = {
        "learners": ("ql",), "seeds": 4, "team_limit": 2, "test_limits": (),
    }  # fmt: skip
    grids = _one_of_each("with {}", {game: type_names(game) for game in DIVERSE}, **common)
    alike = {game: {"alike": True} for game in DIVERSE}
    return grids | {f"with {ALL}": Grid(games=DIVERSE, changes=alike, **common)}


def _scores(
    collected: Collected, runs: Sequence[Kept], types: Sequence[str], limit: int
) -> list[float]:
    """The return of every run at its kind's best checkpoint, among these types."""
    step, episodes = collected.best(runs).step, collected.choices.episodes
    estimator = collected.choices.estimated

    def play(agent: Agent, run: Kept) -> float:
        env = run.config.environment(team_limit=limit, types=list(types), alike=None)
        return evaluate(agent, env, episodes=episodes, estimator=estimator).mean

    return [
        collected.answers.ask(
            "return", run, step, lambda agent, run=run: play(agent, run),
            types=list(types), limit=limit, episodes=episodes, estimator=estimator,
        )
        for run in runs
    ]  # fmt: skip


def heat_maps(collected: Collected) -> Outcome:
    """Appendix B.4: each row is a type of the test, each column one of training."""
    maps, sheets, numbers = [], [], {}
    for game in collected.games:
        columns = [grid for grid in collected.grids if collected.learners(game, grid)]
        names = list(type_names(game))
        values = np.array(
            [
                [
                    np.mean(_scores(collected, collected.learners(game, grid)["ql"], (name,), 2))
                    for grid in columns
                ]
                for name in names
            ]
        )
        if not columns:
            continue
        least, most = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
        spread = np.where(most > least, most - least, 1.0)
        trained = [grid.removeprefix("with ") for grid in columns]
        maps.append(
            HeatMap(game, names, trained, (values - least) / spread, "trained with", "tested with")
        )
        rows = [
            (name, *(f"{value:.2f}" for value in row))
            for name, row in zip(names, values, strict=True)
        ]
        sheets.append(
            Sheet(
                f"{game}: returns by type of the test (rows) and of training", ("", *trained), rows
            )
        )
        numbers[game] = {"tested": names, "trained": trained, "returns": values.tolist()}
    caption = (
        "QL trained with one teammate of a type, or of any type, tested with each. Every row is"
        " scaled to lie between 0 and 1."
    )
    charts = [Chart("types", caption, maps=maps)] if maps else []
    return Outcome(sheets, charts, [CHOICE, PICTURE], numbers)


def split_of(choices: Choices) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
    """The types of training and of the test, by game.

    A split is known by name, or written as the types of training, a slash and those of the test,
    for the one game that is chosen: H1,H2/H3.
    """
    given = choices.split or "ciao-disjoint"
    if "/" not in given:
        if given not in SPLITS:
            raise unknown("split", given, SPLITS)
        return SPLITS[given]
    if choices.games is None or len(choices.games) != 1:
        raise InputError("A split of one's own is for one game: say which.")
    game = find(choices.games[0]).name
    parts = [tuple(filter(None, part.split(","))) for part in given.split("/")]
    if len(parts) != 2 or not all(parts):
        raise InputError(f"{given!r} is not a split: write it as H1,H2/H3.")
    for name in (*parts[0], *parts[1]):
        if name not in type_names(game):
            raise unknown(f"type of {game}", name, type_names(game))
    return {game: (parts[0], parts[1])}


def held_out_grids(choices: Choices) -> dict[str, Grid]:
    """Learners of the types of training, and for each type of the test one that knows it alone."""
    split = split_of(choices)
    common: dict[str, Any] = {
        "learners": ("gpl-q", "gnn-am", "ql"), "seeds": 4, "test_limits": (),
        "others": "all", "later": choices.limits or LIMITS,
    }  # fmt: skip
    trained = {game: tuple(parts[0]) for game, parts in split.items()}
    tested = {game: parts[1] for game, parts in split.items()}
    return {
        TRAINED: Grid(games=tuple(split), types=trained, **common),
        **_one_of_each("{} alone", tested, **common),
    }


def held_out(collected: Collected) -> Outcome:
    """Returns by type and team limit, also as a share of what is had by who knows the type."""
    split = split_of(collected.choices)
    limits = collected.choices.limits or LIMITS
    sheets, numbers = [], {}
    for game in collected.games:
        known, tested = split[game]
        for name, runs in collected.learners(game, TRAINED).items():
            rows = []
            for kind in (*dict.fromkeys((*known, *tested)), ALL):
                types = tuple(tested) if kind == ALL else (kind,)
                cells, shares, found = [], [], {}
                for limit in limits:
                    ours = _scores(collected, runs, types, limit)
                    cells.append(cell(ours))
                    alone = collected.learners(game, f"{kind} alone").get(name)
                    share = None
                    if alone:
                        most = float(np.mean(_scores(collected, alone, types, limit)))
                        share = float(np.mean(ours)) / most if most > 0 else None
                    shares.append(NOTHING if share is None else f"{100 * share:.0f} %")
                    found[str(limit)] = {"mean": estimate(ours).mean, "share": share}
                told = "test, all" if kind == ALL else (f"{kind} ({_where(kind, known, tested)})")
                rows.append((told, *cells, *shares))
                numbers[f"{game} {name} {kind}"] = found
            columns = ("type", *(f"limit {each}" for each in limits),
                       *(f"share, {each}" for each in limits))  # fmt: skip
            sheets.append(Sheet(f"{game}, {name}: returns by type and team limit", columns, rows))
    words = [
        CHOICE,
        "A share is of the return of the same learner trained with that type alone, where that"
        " return is above 0.",
        "Whoever enters later is drawn from the same types as who is there at the start.",
    ]
    return Outcome(sheets, [], words, numbers)


def _where(kind: str, known: Sequence[str], tested: Sequence[str]) -> str:
    both = kind in known and kind in tested
    return "both" if both else "training" if kind in known else "test"
