"""Returns in other teams than those of training: table 2, appendix G."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dropin import published
from dropin.evaluation.statistics import (
    LEAST_TO_DRAW,
    LEAST_TO_TRIM,
    estimate,
    improvement,
    middle_mean,
    profile,
    significantly_above,
)
from dropin.experiments.collected import Best, Collected
from dropin.experiments.grid import JOINT, LEARNERS, SINGLE
from dropin.experiments.outcome import Chart, Outcome, Sheet
from dropin.experiments.returns import TEST_LIMIT, colour
from dropin.experiments.words import (
    CHOICE,
    NOTHING,
    PICTURE,
    STARS,
    cell,
    joined,
    plain,
    short,
    theirs,
)
from dropin.render.charts import Line, Panel
from dropin.render.curves import FEW


@dataclass(frozen=True)
class _Tested:
    """The runs of a learner at their best checkpoint."""

    best: Best
    by_limit: Mapping[int, Sequence[float]]


def _tests(
    collected: Collected, game: str, limits: Sequence[int], grid: str = ""
) -> dict[str, _Tested]:
    """By learner."""
    found = {}
    for name, runs in collected.learners(game, grid).items():
        best = collected.best(runs)
        by_limit = {limit: collected.at(runs, best.step, limit) for limit in limits}
        found[name] = _Tested(best, by_limit)
    return found


def _star(name: str, tests: Mapping[str, _Tested], limit: int) -> str:
    """An asterisk for who is significantly above all single-agent baselines."""
    if name in SINGLE or any(each not in tests for each in SINGLE):
        return ""
    singles = {each: tests[each].by_limit[limit] for each in SINGLE}
    return "*" if significantly_above(tests[name].by_limit[limit], singles) else ""


def larger_teams(collected: Collected) -> Outcome:
    """Table 2: returns with larger teams than in training."""
    rows, details, numbers, panels = [], [], {}, []
    found = dict.fromkeys(cell.learner for cell in collected.cells)
    learners = (*LEARNERS, *(name for name in found if name not in LEARNERS))
    for game in collected.games:
        tests = _tests(collected, game, [TEST_LIMIT])
        if not tests:
            continue
        values = {name: each.by_limit[TEST_LIMIT] for name, each in tests.items()}
        stars = {name: _star(name, tests, TEST_LIMIT) for name in tests}
        ours = [f"{short(values[name])}{stars[name]}" if name in tests else NOTHING
                for name in learners]  # fmt: skip
        paper = {name: published.test_return(game, name) for name in learners}
        rows += [(game, *ours), (f"{game}, the paper's", *map(theirs, paper.values()))]
        singles = [name for name in SINGLE if name in tests]
        rival = max(singles, key=lambda name, v=values: float(np.mean(v[name])), default="")
        for name, each in tests.items():
            compared = name not in (*SINGLE, *JOINT) and rival
            better = improvement(values[name], values[rival]) if compared else None
            middle = middle_mean(values[name]) if len(values[name]) >= LEAST_TO_TRIM else None
            details.append((
                game, name, cell(values[name]), NOTHING if middle is None else str(middle),
                NOTHING if better is None else f"{better} over {rival}",
                f"{each.best.step:,}", cell(each.best.training), theirs(paper[name]),
            ))  # fmt: skip
            numbers[f"{game} {name}"] = {
                "test": plain(estimate(values[name])),
                "interquartile mean": plain(middle),
                "improvement": plain(better),
                "star": bool(stars[name]),
                "step": each.best.step,
                "training": plain(estimate(each.best.training)),
                "runs": list(values[name]),
            }
        if max(map(len, values.values())) >= FEW:
            panels.append(_profiles(game, values))
    columns = ("game", "learner", f"limit {TEST_LIMIT}", "interquartile mean",
               "chance of improvement", "checkpoint", "training, limit 3", "paper")  # fmt: skip
    note = (
        "The interquartile mean leaves out the best and the worst quarter of the runs, for which"
        f" there have to be {LEAST_TO_TRIM}. The chance of improvement is that one of its runs is"
        " above one of the strongest single-agent baseline. Both have bootstrapped intervals if"
        f" there are at least {LEAST_TO_DRAW} runs."
    )
    caption = f"The share of runs with a return above a level, team limit {TEST_LIMIT}."
    title = f"Returns at team limit {TEST_LIMIT}: mean ± half of the 95 % interval"
    return Outcome(
        [
            Sheet(title, ("game", *learners), rows, f"{CHOICE} {STARS}"),
            Sheet("In detail", columns, details, note),
        ],
        [Chart("profiles", caption, panels)] if panels else [],
        numbers=numbers,
    )


def _profiles(game: str, test: Mapping[str, Sequence[float]]) -> Panel:
    every = [value for values in test.values() for value in values]
    spread = 0.05 * (max(every) - min(every)) or 1.0
    levels = np.linspace(min(every) - spread, max(every) + spread, 60).tolist()
    lines = []
    for name, values in test.items():
        found = profile(values, levels)
        band = found if len(values) > 1 else []
        lines.append(
            Line(
                label=name,
                x=levels,
                y=[each.mean for each in found],
                low=[each.low for each in band],
                high=[each.high for each in band],
                colour=colour(name),
            )
        )
    return Panel(game, lines, across="return", up="share of runs above")


def other_teams(collected: Collected) -> Outcome:
    """Appendix G: trained in other teams than those of the main experiment."""
    every = [each for runs in collected.cells.values() for each in runs]
    limits = sorted(set.intersection(*(each.limits for each in every)))
    rows, numbers, panels = [], {}, []
    for grid in collected.grids:
        for game in collected.games:
            tests = _tests(collected, game, limits, grid)
            if not tests:
                continue
            title = joined(game, grid)
            for name, each in tests.items():
                cells = [
                    f"{cell(values)}{_star(name, tests, limit)}"
                    for limit, values in each.by_limit.items()
                ]
                rows.append((title, name, *cells))
                numbers[f"{title} {name}"] = {
                    str(limit): plain(estimate(values)) for limit, values in each.by_limit.items()
                }
            panels.append(_by_limit(title, tests))
    columns = ("game", "learner", *(f"limit {limit}" for limit in limits))
    caption = "Mean returns by team limit, with 95 % intervals over runs."
    return Outcome(
        [Sheet("Returns by team limit", columns, rows, f"{CHOICE} {STARS}")],
        [Chart("limits", caption, panels)],
        [PICTURE],
        numbers,
    )


def _by_limit(title: str, tests: Mapping[str, _Tested]) -> Panel:
    lines = []
    for name, each in tests.items():
        points = [estimate(values) for values in each.by_limit.values()]
        band = points if all(point.n > 1 for point in points) else []
        lines.append(
            Line(
                label=name,
                x=list(each.by_limit),
                y=[point.mean for point in points],
                low=[point.low for point in band],
                high=[point.high for point in band],
                colour=colour(name),
            )
        )
    return Panel(title, lines, across="team limit")
