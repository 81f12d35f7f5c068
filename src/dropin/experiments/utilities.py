"""What agents have learned, over training: figure 3b, appendices H and I."""

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from dropin.agents import Agent
from dropin.analysis import (
    capture_utilities,
    correlation,
    pair_utilities,
    shooting_values,
    teammate_utilities,
)
from dropin.analysis.fortattack import (
    ATTACKER_IN,
    ATTACKER_OUT,
    GUARD_IN,
    GUARD_OUT,
    IN_RANGE,
    OUT_OF_RANGE,
    Values,
)
from dropin.analysis.measure import MeasureOptions
from dropin.core.config import PlainMapping
from dropin.env import AnyEnv
from dropin.evaluation.statistics import estimate
from dropin.experiments.planning import StoredRun
from dropin.experiments.results import (
    EMPTY_CELL,
    NO_NUMBERS_NOTE,
    Chart,
    CompletedRuns,
    ExperimentResult,
    Sheet,
    estimate_as_dict,
    finite_or_none,
)
from dropin.experiments.runs import SINGLE_AGENT_BASELINES
from dropin.plots.charts import Line, Panel

__all__ = ["shooting_action_values", "shooting_pair_utilities", "wolfpack_utilities"]

NUM_ENVS = 8
"""Parallel environments of an analysis, as in the authors' program."""
PAPER_CORRELATION = 0.85
"""The paper's correlation of the return with the utility of a guard that shoots in range."""
INTERVALS = "over the states of a run, treated as if they were independent"

Analysis = Callable[..., object]
"""`(agent, env, *, steps, num_envs) -> values that JSON can hold`."""
Summary = PlainMapping | None
"""A mean with its interval as plain values; None if there was nothing to measure."""


def shooting_pair_utilities(runs: CompletedRuns) -> ExperimentResult:
    """Return figure 3b: the utility of shooting in GPL's pairwise utilities."""
    sheets, panels, numbers = [], [], {}
    for title, run in _titled_runs(runs, "fortattack"):
        found = _over_training(runs, run, "pair utilities", _pair_means)
        returns = runs.curve([run]).means
        rows, lines = [], []
        for situation in (GUARD_IN, GUARD_OUT, ATTACKER_IN, ATTACKER_OUT):
            series = [means[situation] for means in found]
            lines.append(_line(situation, run.evaluated_steps, series))
            ends = [
                EMPTY_CELL if summary is None else f"{summary['mean']:.3f}"
                for summary in (series[0], series[-1])
            ]
            paper = f"{PAPER_CORRELATION}" if situation == GUARD_IN else EMPTY_CELL
            rows.append((situation, *ends, _format_correlation(series, returns), paper))
        panels.append(Panel(title, lines, ylabel="mean utility of shooting"))
        columns = ("who shoots", "first", "last", "correlation with the return", "paper")
        sheets.append(Sheet(f"Pair utilities of shooting, {title}", columns, rows))
        numbers[title] = {"steps": run.evaluated_steps, "found": found, "returns": returns}
    caption = (
        "The mean pair utility of shooting over all present pairs of a guard and an attacker, by"
        " who shoots and whether it has the other in range."
    )
    return ExperimentResult(
        sheets,
        [Chart("pairs", caption, panels, columns=2)] if panels else [],
        [_states_note(runs)],
        numbers,
        INTERVALS,
    )


def wolfpack_utilities(runs: CompletedRuns) -> ExperimentResult:
    """Return appendix H: the utilities that GPL gives its teammates in Wolfpack."""
    rows, correlations, surpluses, numbers = [], [], [], {}
    for title, run in _titled_runs(runs, "wolfpack"):
        found = _over_training(runs, run, "hunting", _hunting_summary)
        steps, last = run.evaluated_steps, found[-1]
        correlations.append(_line(title, steps, [each["correlation"] for each in found]))
        surpluses.append(_line(title, steps, [each["surplus"] for each in found]))
        rows.append(
            (title, *_format_summary(last["correlation"]), *_format_summary(last["surplus"]))
        )
        numbers[title] = {"steps": steps, "found": found}
    panels = [
        Panel("utility of a teammate and its distance", correlations, ylabel="correlation"),
        Panel("C_jk before a capture", surpluses, ylabel="utility"),
    ]
    columns = ("run", "correlation at the end", "interval", "C_jk at the end", "interval")
    caption = (
        "Left: Pearson's correlation of a teammate's mean utility with its distance to the prey"
        " that is nearest to the learner. Right: the pair utility of what two of a pack did, less"
        " the mean of all other pairs of actions, in the step before they captured a prey together"
        " with the learner."
    )
    sheet = Sheet("Utilities of teammates", columns, rows, NO_NUMBERS_NOTE)
    chart = Chart("hunting", caption, panels, columns=2)
    return ExperimentResult([sheet], [chart], numbers=numbers, intervals=INTERVALS)


def shooting_action_values(runs: CompletedRuns) -> ExperimentResult:
    """Return appendix I: the action values that the baselines give to shooting."""
    gap_panels, value_panels, rows, numbers = [], [], [], {}
    for title, run in _titled_runs(runs, "fortattack"):
        found = _over_training(runs, run, "values of shooting", _shooting_means)
        for panels, index, quantity in (
            (gap_panels, 0, "Q(s, shoot) - max Q(s, a)"), (value_panels, 1, "V(s)"),
        ):  # fmt: skip
            series = {
                situation: [each[index][situation] for each in found]
                for situation in (IN_RANGE, OUT_OF_RANGE)
            }
            lines = [_line(name, run.evaluated_steps, each) for name, each in series.items()]
            panels.append(Panel(f"{title}: {quantity}", lines, ylabel=quantity))
            ends = [_format_summary(each[-1]) for each in series.values()]
            rows.append((title, quantity, *(f"{mean} ({interval})" for mean, interval in ends)))
        numbers[title] = {"steps": run.evaluated_steps, "found": found}
    columns = ("run", "what", "attacker in range, at the end", "none in range, at the end")
    sheet = Sheet("Values of shooting", columns, rows, NO_NUMBERS_NOTE)
    caption = (
        "The value of shooting less that of the best action, by whether the learner has an attacker"
        " in range, then the value of the state, by whether any guard has."
    )
    per_row = min(max(len(gap_panels), 1), len(SINGLE_AGENT_BASELINES))
    chart = Chart("shooting", caption, [*gap_panels, *value_panels], columns=per_row)
    charts = [chart] if gap_panels else []
    return ExperimentResult([sheet], charts, [_states_note(runs)], numbers, INTERVALS)


def _titled_runs(runs: CompletedRuns, game: str) -> list[tuple[str, StoredRun]]:
    """Return the runs in a game, each with a title that names its learner and seed."""
    return [
        (f"{learner}, seed {run.config.seed}", run)
        for learner, group in runs.by_learner(game).items()
        for run in group
    ]


def _over_training(runs: CompletedRuns, run: StoredRun, name: str, analysis: Analysis) -> list[Any]:
    """Return the results of an analysis at all checkpoints of a run."""
    env = run.config.make_env()
    size: MeasureOptions = {"steps": -(-runs.options.states // NUM_ENVS), "num_envs": NUM_ENVS}
    return [
        runs.analyses.get(name, run, step, lambda agent: analysis(agent, env, **size), **size)
        for step in run.evaluated_steps
    ]


def _pair_means(agent: Agent, env: AnyEnv, **size: Unpack[MeasureOptions]) -> dict[str, Summary]:
    return _means(pair_utilities(agent, env, **size))


def _shooting_means(
    agent: Agent, env: AnyEnv, **size: Unpack[MeasureOptions]
) -> list[dict[str, Summary]]:
    return [_means(values) for values in shooting_values(agent, env, **size)]


def _hunting_summary(
    agent: Agent, env: AnyEnv, **size: Unpack[MeasureOptions]
) -> dict[str, Summary]:
    found = correlation(*teammate_utilities(agent, env, **size))
    surplus = capture_utilities(agent, env, **size)
    return {
        "correlation": None if found is None else {
            "mean": found.r, "low": finite_or_none(found.low), "high": finite_or_none(found.high),
            "n": found.n,
        },
        "surplus": estimate_as_dict(estimate(surplus)) if surplus.size else None,
    }  # fmt: skip


def _means(values: Values) -> dict[str, Summary]:
    """Return the mean in each situation with its interval, as plain values."""
    return {name: estimate_as_dict(mean) for name, mean in values.means.items()}


def _line(label: str, steps: Sequence[int], summaries: Sequence[Summary]) -> Line:
    """Return a line with a band over the checkpoints at which there was something to measure."""
    points = [(step / 1e6, each) for step, each in zip(steps, summaries, strict=True) if each]
    low, high = (
        [each["mean"] if each[end] is None else each[end] for _, each in points]
        for end in ("low", "high")
    )
    return Line(label, [x for x, _ in points], [each["mean"] for _, each in points], low, high)


def _format_correlation(series: Sequence[Summary], returns: Sequence[float]) -> str:
    """Format the correlation of a series of means with the returns."""
    pairs = [(each["mean"], value) for each, value in zip(series, returns, strict=True) if each]
    found = correlation(*zip(*pairs, strict=True)) if pairs else None
    if found is None:
        return EMPTY_CELL
    return f"{found.r:.2f} ({found.low:.2f} to {found.high:.2f}; p = {found.p:.1g}, n = {found.n})"


def _format_summary(summary: Summary) -> tuple[str, str]:
    """Format a mean, and its interval."""
    if summary is None:
        return EMPTY_CELL, EMPTY_CELL
    if summary["low"] is None:
        return f"{summary['mean']:.3f}", EMPTY_CELL
    return f"{summary['mean']:.3f}", f"{summary['low']:.3f} to {summary['high']:.3f}"


def _states_note(runs: CompletedRuns) -> str:
    number = f"{runs.options.states:,}"
    return f"{number} states at every checkpoint; the paper says 480,000, its program has 24,000."
