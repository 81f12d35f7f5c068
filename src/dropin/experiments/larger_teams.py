"""Returns in other teams than those of training: table 2, appendix G."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dropin.evaluation import published
from dropin.evaluation.statistics import (
    MIN_BOOTSTRAP,
    MIN_TRIMMED,
    Estimate,
    estimate,
    interquartile_mean,
    is_significantly_above,
    performance_profile,
)
from dropin.experiments.comparisons import (
    Comparison,
    agreement_sentence,
    improvement,
    join,
    strongest_baseline,
)
from dropin.experiments.results import (
    CHECKPOINT_NOTE,
    EMPTY_CELL,
    NO_NUMBERS_NOTE,
    BestCheckpoint,
    Chart,
    CompletedRuns,
    ExperimentResult,
    Sheet,
    estimate_as_dict,
    format_half_width,
    format_interval,
    format_published,
    learner_colour,
)
from dropin.experiments.runs import (
    PAPER_LEARNERS,
    SINGLE_AGENT_BASELINES,
    TEST_LIMIT,
    Grid,
    Options,
)
from dropin.plots.charts import Line, Panel
from dropin.plots.curves import MIN_RUNS_FOR_BAND

__all__ = [
    "fixed_types_grids",
    "larger_teams",
    "other_teams",
    "profile_panel",
    "team_of_two_grids",
]

SIGNIFICANCE_NOTE = (
    "An asterisk means that the mean is above that of each of QL, QL-AM, GNN and GNN-AM, with p"
    " below 0.05 each time (Welch's t-test over runs, not corrected for the number of comparisons)."
    " The paper does not name its test."
)


@dataclass(frozen=True)
class _Tested:
    """The returns of a learner's runs at their best checkpoint."""

    best: BestCheckpoint
    by_limit: Mapping[int, Sequence[float]]
    """By team limit, the return of each run."""


def larger_teams(runs: CompletedRuns) -> ExperimentResult:
    """Return table 2: returns with larger teams than in training."""
    rows, details, numbers, panels, comparisons = [], [], {}, [], []
    found = dict.fromkeys(group.learner for group in runs.groups)
    learners = (*PAPER_LEARNERS, *(name for name in found if name not in PAPER_LEARNERS))
    for game in runs.games:
        tests = _test(runs, game, [TEST_LIMIT])
        if not tests:
            continue
        values = {name: test.by_limit[TEST_LIMIT] for name, test in tests.items()}
        stars = {name: _star(name, tests, TEST_LIMIT) for name in tests}
        ours = [
            f"{format_half_width(values[name])}{stars[name]}" if name in tests else EMPTY_CELL
            for name in learners
        ]
        paper = {name: published.larger_team_return(game, name) for name in learners}
        rows += [(game, *ours), (f"{game}, the paper's", *map(format_published, paper.values()))]
        comparisons += [Comparison(f"{game} {name}", values[name], paper[name]) for name in tests]
        strongest = strongest_baseline(values)
        for name, test in tests.items():
            better = improvement(name, values)
            middle = interquartile_mean(values[name]) if len(values[name]) >= MIN_TRIMMED else None
            details.append((
                game, name, format_interval(values[name]),
                EMPTY_CELL if middle is None else str(middle),
                EMPTY_CELL if better is None else f"{better} over {strongest}",
                f"{test.best.step:,}", format_interval(test.best.training_returns),
                format_published(paper[name]),
            ))  # fmt: skip
            numbers[f"{game} {name}"] = {
                "test": estimate_as_dict(estimate(values[name])),
                "interquartile mean": estimate_as_dict(middle),
                "improvement": estimate_as_dict(better),
                "star": bool(stars[name]),
                "step": test.best.step,
                "training": estimate_as_dict(estimate(test.best.training_returns)),
                "runs": list(values[name]),
            }
        if max(map(len, values.values())) >= MIN_RUNS_FOR_BAND:
            panels.append(profile_panel(game, values))
    columns = ("game", "learner", f"limit {TEST_LIMIT}", "interquartile mean",
               "chance of improvement", "checkpoint", "training, limit 3", "paper")  # fmt: skip
    note = (
        "The interquartile mean leaves out the best and the worst quarter of the runs; it takes at"
        f" least {MIN_TRIMMED}. The chance of improvement is the probability that a run of the"
        " learner is above a run of the strongest single-agent baseline. Both have bootstrapped"
        f" intervals if there are at least {MIN_BOOTSTRAP} runs."
    )
    caption = f"The share of runs with a return above a level, team limit {TEST_LIMIT}."
    agreement = agreement_sentence(comparisons, runs.options)
    starred = [name for name, found in numbers.items() if found["star"]]
    star_note = f"{SIGNIFICANCE_NOTE} Here it is given to {join(starred) or 'nobody'}."
    title = f"Returns at team limit {TEST_LIMIT}: mean ± half of the 95 % interval"
    return ExperimentResult(
        [
            Sheet(title, ("game", *learners), rows, f"{agreement} {CHECKPOINT_NOTE} {star_note}"),
            Sheet("In detail", columns, details, note),
        ],
        [Chart("profiles", caption, panels)] if panels else [],
        numbers=numbers,
    )


def team_of_two_grids(options: Options) -> dict[str, Grid]:
    """Return the runs of appendix G that train with one teammate, against as many attackers."""
    del options
    settings = {"fortattack": {"fewer_attackers": 1}}
    return {
        "": Grid(
            team_limit=2,
            test_limits=(3, 5),
            game_settings=settings,
            extra_learners="all",
            extra_games=True,
        )
    }


def fixed_types_grids(options: Options) -> dict[str, Grid]:
    """Return the runs of appendix G that train with guards of one type, a grid for each."""
    del options
    return {
        f"among {guard}": Grid(
            games=("fortattack",), types={"fortattack": (guard, "A2")}, extra_learners="all"
        )
        for guard in ("G4", "G6")
    }


def other_teams(runs: CompletedRuns) -> ExperimentResult:
    """Return appendix G: returns by team limit after training in other teams than table 2."""
    finished = [run for group in runs.groups.values() for run in group]
    limits = sorted(set.intersection(*(run.evaluated_limits for run in finished)))
    rows, numbers, panels = [], {}, []
    for grid in runs.grids:
        for game in runs.games:
            tests = _test(runs, game, limits, grid)
            if not tests:
                continue
            title = f"{game} {grid}".strip()
            for name, test in tests.items():
                cells = [
                    f"{format_interval(values)}{_star(name, tests, limit)}"
                    for limit, values in test.by_limit.items()
                ]
                rows.append((title, name, *cells))
                numbers[f"{title} {name}"] = {
                    str(limit): estimate_as_dict(estimate(values))
                    for limit, values in test.by_limit.items()
                }
            panels.append(_limits_panel(title, tests))
    columns = ("game", "learner", *(f"limit {limit}" for limit in limits))
    caption = "Mean returns by team limit, with 95 % intervals over runs."
    note = f"{CHECKPOINT_NOTE} {SIGNIFICANCE_NOTE}"
    return ExperimentResult(
        [Sheet("Returns by team limit", columns, rows, note)],
        [Chart("limits", caption, panels)],
        [NO_NUMBERS_NOTE],
        numbers,
    )


def _test(
    runs: CompletedRuns, game: str, limits: Sequence[int], grid: str = ""
) -> dict[str, _Tested]:
    """Return the returns of each learner in a game, at its best checkpoint and these limits."""
    tests = {}
    for learner, group in runs.by_learner(game, grid).items():
        best = runs.best_checkpoint(group)
        by_limit = {limit: runs.returns_at(group, best.step, limit) for limit in limits}
        tests[learner] = _Tested(best, by_limit)
    return tests


def _star(learner: str, tests: Mapping[str, _Tested], limit: int) -> str:
    """Return an asterisk if a learner is significantly above all single-agent baselines."""
    if learner in SINGLE_AGENT_BASELINES or not set(SINGLE_AGENT_BASELINES) <= set(tests):
        return ""
    baselines = {name: tests[name].by_limit[limit] for name in SINGLE_AGENT_BASELINES}
    return "*" if is_significantly_above(tests[learner].by_limit[limit], baselines) else ""


def profile_panel(title: str, returns: Mapping[str, Sequence[float]]) -> Panel:
    """Return the performance profiles of learners: the share of runs above each level.

    Args:
        title: The title of the panel.
        returns: By learner, the return of each run.
    """
    every = [value for values in returns.values() for value in values]
    margin = 0.05 * (max(every) - min(every)) or 1.0
    levels = np.linspace(min(every) - margin, max(every) + margin, 200).tolist()
    lines = []
    for learner, values in returns.items():
        shares = performance_profile(values, levels)
        line = _line(learner, levels, shares, has_band=shares[0].has_interval)
        # Where all runs are above a level, or none, the bands of all learners would pile up.
        outside = [share.mean in (0, 1) for share in shares]
        low, high = (
            np.where(outside, np.nan, each) if each else () for each in (line.low, line.high)
        )
        lines.append(replace(line, low=low, high=high))
    return Panel(title, lines, xlabel="return", ylabel="share of runs above")


def _limits_panel(title: str, tests: Mapping[str, _Tested]) -> Panel:
    """Return the mean return of each learner over the team limit."""
    lines = []
    for learner, test in tests.items():
        points = [estimate(values) for values in test.by_limit.values()]
        has_band = all(point.n > 1 for point in points)
        lines.append(_line(learner, list(test.by_limit), points, has_band=has_band))
    return Panel(title, lines, xlabel="team limit")


def _line(learner: str, x: Sequence[float], points: Sequence[Estimate], *, has_band: bool) -> Line:
    """Return the line of a learner, with the intervals of the points as a band or without."""
    band = points if has_band else []
    return Line(
        label=learner,
        x=x,
        y=[point.mean for point in points],
        low=[point.low for point in band],
        high=[point.high for point in band],
        colour=learner_colour(learner),
    )
