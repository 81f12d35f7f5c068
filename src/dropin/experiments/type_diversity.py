"""Whether types demand adaptation (appendix B.4), and how learners do with unknown types."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dropin.agents import Agent
from dropin.core import registry
from dropin.core.config import PlainDict
from dropin.core.errors import InputError, unknown
from dropin.evaluation.evaluate import evaluate
from dropin.evaluation.statistics import estimate
from dropin.experiments.planning import StoredRun
from dropin.experiments.results import (
    CHECKPOINT_NOTE,
    EMPTY_CELL,
    NO_NUMBERS_NOTE,
    Chart,
    CompletedRuns,
    ExperimentResult,
    Sheet,
    format_interval,
)
from dropin.experiments.runs import Grid, Options
from dropin.plots.charts import HeatMap

__all__ = [
    "SPLITS",
    "diversity",
    "diversity_grids",
    "held_out",
    "held_out_grids",
    "split_types",
    "type_names",
]

ALL = "all"
DIVERSITY_GAMES = ("lbf", "wolfpack")
"""The games of the paper's heat maps."""
SPLITS: Mapping[str, Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    "ciao-disjoint": {
        "lbf": (("H1", "H2", "H3", "H4", "H5"), ("H6", "H7", "H8", "H9")),
        "wolfpack": (("H2", "H3", "H4", "H5", "H6"), ("H1", "H7", "H8", "H9")),
    },
    "ciao-shared": {
        "lbf": (("H1", "H2", "H3", "H4", "H5"), ("H5", "H6", "H7", "H8", "H9")),
        "wolfpack": (("H2", "H3", "H4", "H5", "H6"), ("H6", "H1", "H7", "H8", "H9")),
    },
}
"""By name and game, the types of training and those of testing."""
TRAINED = "train"
"""The grid of learners that are trained with the types of training."""
LIMITS = (2, 3, 5)


def type_names(game: str, rules: str) -> list[str]:
    """Return the names of all types of a game, those that plug-ins have added included.

    Args:
        game: Name of the game.
        rules: Name of a preset of the game.
    """
    return list({**registry.games[game].types(rules), **registry.types_of(game)})


def diversity_grids(options: Options) -> dict[str, Grid]:
    """Return runs of QL with one teammate: of one type, or of any, drawn for each episode."""
    common: PlainDict = {
        "learners": ("ql",), "seeds": 4, "team_limit": 2, "test_limits": (),
    }  # fmt: skip
    types = {game: _pool(game, options.rules) for game in DIVERSITY_GAMES}
    shared_type = {game: {"shared_type": True} for game in DIVERSITY_GAMES}
    any_type = Grid(games=DIVERSITY_GAMES, game_settings=shared_type, **common)
    return _grid_per_type("with {}", types, **common) | {f"with {ALL}": any_type}


def diversity(runs: CompletedRuns) -> ExperimentResult:
    """Return appendix B.4: a row for each type of testing, a column for each type of training."""
    maps, sheets, numbers = [], [], {}
    for game in runs.games:
        grids = [grid for grid in runs.grids if runs.by_learner(game, grid)]
        tested = _pool(game, runs.options.rules)
        returns = np.array(
            [
                [
                    np.mean(_returns(runs, runs.by_learner(game, grid)["ql"], (name,), 2))
                    for grid in grids
                ]
                for name in tested
            ]
        )
        lowest, highest = returns.min(axis=1, keepdims=True), returns.max(axis=1, keepdims=True)
        scale = np.where(highest > lowest, highest - lowest, 1.0)
        trained = [grid.removeprefix("with ") for grid in grids]
        maps.append(
            HeatMap(
                game, tested, trained, (returns - lowest) / scale, "trained with", "tested with"
            )
        )
        rows = [
            (name, *(f"{value:.2f}" for value in row))
            for name, row in zip(tested, returns, strict=True)
        ]
        title = f"{game}: returns by type of the test (rows) and of training"
        sheets.append(Sheet(title, ("", *trained), rows))
        numbers[game] = {"tested": tested, "trained": trained, "returns": returns.tolist()}
    caption = (
        "QL trained with one teammate of a type, or of any type, tested with each. Every row is"
        " scaled to lie between 0 and 1."
    )
    charts = [Chart("types", caption, heat_maps=maps)] if maps else []
    return ExperimentResult(sheets, charts, [CHECKPOINT_NOTE, NO_NUMBERS_NOTE], numbers)


def split_types(options: Options) -> Mapping[str, tuple[Sequence[str], Sequence[str]]]:
    """Return the types of training and of testing, by game.

    Args:
        options: Its `split` is the name of a split, or the types of training, a slash and the types
            of testing, as `H1,H2/H3`, for the one game in `games`.

    Raises:
        InputError: If there is no such split.
    """
    split = options.split or "ciao-disjoint"
    if "/" not in split:
        if split not in SPLITS:
            raise unknown("split", split, SPLITS)
        return SPLITS[split]
    if options.games is None or len(options.games) != 1:
        raise InputError(f"The split {split!r} is for one game: name it with --games.")
    game = options.games[0]
    parts = [tuple(filter(None, part.split(","))) for part in split.split("/")]
    if len(parts) != 2 or not all(parts):
        raise InputError(f"{split!r} is not a split: write it as H1,H2/H3.")
    known = type_names(game, options.rules)
    for name in (*parts[0], *parts[1]):
        if name not in known:
            raise unknown(f"type of {game}", name, known)
    return {game: (parts[0], parts[1])}


def held_out_grids(options: Options) -> dict[str, Grid]:
    """Return learners trained with the types of training, and with each type of testing alone."""
    split = split_types(options)
    common: PlainDict = {
        "learners": ("gpl-q", "gnn-am", "ql"), "seeds": 4, "test_limits": (),
        "extra_learners": "all", "later_limits": options.team_limits or LIMITS,
    }  # fmt: skip
    trained = {game: tuple(parts[0]) for game, parts in split.items()}
    tested = {game: parts[1] for game, parts in split.items()}
    return {
        TRAINED: Grid(games=tuple(split), types=trained, **common),
        **_grid_per_type("{} alone", tested, **common),
    }


def held_out(runs: CompletedRuns) -> ExperimentResult:
    """Return the returns with each type, also relative to a learner trained with it alone."""
    split = split_types(runs.options)
    limits = runs.options.team_limits or LIMITS
    sheets, numbers = [], {}
    for game in runs.games:
        known, tested = split[game]
        for learner, group in runs.by_learner(game, TRAINED).items():
            rows = []
            for kind in (*dict.fromkeys((*known, *tested)), ALL):
                types = tuple(tested) if kind == ALL else (kind,)
                alone = runs.by_learner(game, f"{kind} alone").get(learner)
                cells, shares, found = [], [], {}
                for limit in limits:
                    ours = _returns(runs, group, types, limit)
                    share = None
                    if alone:
                        own = float(np.mean(_returns(runs, alone, types, limit)))
                        share = float(np.mean(ours)) / own if own > 0 else None
                    cells.append(format_interval(ours))
                    shares.append(EMPTY_CELL if share is None else f"{100 * share:.0f} %")
                    found[str(limit)] = {"mean": estimate(ours).mean, "share": share}
                row = "test, all" if kind == ALL else f"{kind} ({_role(kind, known, tested)})"
                rows.append((row, *cells, *shares))
                numbers[f"{game} {learner} {kind}"] = found
            columns = ("type", *(f"limit {limit}" for limit in limits),
                       *(f"share, {limit}" for limit in limits))  # fmt: skip
            title = f"{game}, {learner}: returns by type and team limit"
            sheets.append(Sheet(title, columns, rows))
    notes = [
        CHECKPOINT_NOTE,
        "A share is of the return of the same learner trained with that type alone, where that"
        " return is above 0.",
        "Teammates that enter later are drawn from the same types as those at the start.",
    ]
    return ExperimentResult(sheets, [], notes, numbers)


def _pool(game: str, rules: str) -> list[str]:
    """Return the names of the default pool of a game, whatever plug-ins are installed."""
    return list(registry.games[game].types(rules))


def _grid_per_type(
    label: str, types: Mapping[str, Sequence[str]], **common: Any
) -> dict[str, Grid]:
    """Return a grid for each name of a type, with all games that have a type of this name.

    Args:
        label: The name of a grid, with `{}` for the name of the type.
        types: Names of types by game.
        **common: Further arguments of all grids.
    """
    grids = {}
    for name in dict.fromkeys(name for names in types.values() for name in names):
        own = {game: (name,) for game, names in types.items() if name in names}
        grids[label.format(name)] = Grid(games=tuple(own), types=own, **common)
    return grids


def _returns(
    runs: CompletedRuns, group: Sequence[StoredRun], types: Sequence[str], team_limit: int
) -> list[float]:
    """Return the return of each run of a group at its best checkpoint, with these types."""
    step, options = runs.best_checkpoint(group).step, runs.options
    estimator, episodes = options.chosen_estimator, options.episodes

    def mean_return(run: StoredRun) -> float:
        def compute(agent: Agent) -> float:
            env = run.config.make_env(team_limit=team_limit, types=list(types), shared_type=None)
            return evaluate(agent, env, episodes=episodes, estimator=estimator).mean

        return runs.analyses.get(
            "return", run, step, compute,
            types=list(types), team_limit=team_limit, episodes=episodes, estimator=estimator,
        )  # fmt: skip

    return [mean_return(run) for run in group]


def _role(name: str, known: Sequence[str], tested: Sequence[str]) -> str:
    """Return whether a type is of training, of testing, or of both."""
    both = name in known and name in tested
    return "both" if both else "training" if name in known else "test"
