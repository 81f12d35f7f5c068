"""What agents make of what they see, over training: figure 3b, appendices H and I."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dropin.agents import Agent
from dropin.analysis import (
    capture_utilities,
    correlation,
    pair_utilities,
    shooting_values,
    teammate_utilities,
)
from dropin.analysis.fortattack import ATTACKER_IN, ATTACKER_OUT, GUARD_IN, GUARD_OUT, Values
from dropin.evaluation.statistics import estimate
from dropin.experiments.collected import Collected
from dropin.experiments.grid import SINGLE
from dropin.experiments.outcome import Chart, Outcome, Sheet
from dropin.experiments.runs import Kept
from dropin.experiments.words import NOTHING, PICTURE, finite, plain
from dropin.render.charts import Line, Panel

ENVS = 8
"""Parallel environments of an analysis, as the authors'."""
PAPER_CORRELATION = 0.85
"""Of the paper's text, between the first of the four situations and the return."""


STATES = "over the states that a run was looked at in, as if these were independent"
"""What intervals are over."""


def _states(collected: Collected) -> str:
    number = f"{collected.choices.states:,}"
    return f"{number} states at every checkpoint; the paper says 480,000, its program has 24,000."


def _how(collected: Collected) -> dict[str, int]:
    return {"steps": -(-collected.choices.states // ENVS), "envs": ENVS}


def _over_training(
    collected: Collected, run: Kept, question: str, find: Callable[[Agent], Any]
) -> list[Any]:
    """The answers at all checkpoints of a run."""
    how = _how(collected)
    return [collected.answers.ask(question, run, step, find, **how) for step in run.steps]


def _means(found: Values) -> dict[str, Any]:
    """The mean in each situation with its interval, as plain values."""
    means = found.means
    return {name: plain(each) for name, each in means.items()}


def _line(label: str, steps: Sequence[int], answers: Sequence[dict[str, Any] | None]) -> Line:
    """What was found at those checkpoints at which there was something."""
    there = [(step / 1e6, each) for step, each in zip(steps, answers, strict=True) if each]
    low, high = (
        [each["mean"] if each[end] is None else each[end] for _, each in there]
        for end in ("low", "high")
    )
    return Line(label, [step for step, _ in there], [each["mean"] for _, each in there], low, high)


def _correlations(series: Sequence[dict[str, Any] | None], returns: Sequence[float]) -> str:
    """How a series goes with the returns, in words."""
    pairs = [(each["mean"], ret) for each, ret in zip(series, returns, strict=True) if each]
    if not pairs:
        return NOTHING
    found = correlation(*zip(*pairs, strict=True))
    if found is None:
        return NOTHING
    return f"{found.r:.2f} ({found.low:.2f} to {found.high:.2f}; p = {found.p:.1g}, n = {found.n})"


def pair_values(collected: Collected) -> Outcome:
    """Figure 3b: the value of shooting in GPL's pair utilities."""
    sheets, panels, numbers = [], [], {}
    for name, runs in collected.learners("fortattack").items():
        for run in runs:
            env = run.config.environment()
            found = _over_training(
                collected, run, "pair utilities",
                lambda agent, env=env: _means(pair_utilities(agent, env, **_how(collected))),
            )  # fmt: skip
            returns = collected.curve([run], name).means
            title = f"{name}, seed {run.config.seed}"
            rows, lines = [], []
            for situation in (GUARD_IN, GUARD_OUT, ATTACKER_IN, ATTACKER_OUT):
                series = [each[situation] for each in found]
                lines.append(_line(situation, run.steps, series))
                ends = [NOTHING if each is None else f"{each['mean']:.3f}"
                        for each in (series[0], series[-1])]  # fmt: skip
                said = f"{PAPER_CORRELATION}" if situation == GUARD_IN else NOTHING
                rows.append((situation, *ends, _correlations(series, returns), said))
            panels.append(Panel(title, lines, up="mean utility of shooting"))
            columns = ("who shoots", "first", "last", "correlation with the return", "paper")
            sheets.append(Sheet(f"Pair utilities of shooting, {title}", columns, rows))
            numbers[title] = {"steps": run.steps, "found": found, "returns": returns}
    caption = (
        "The mean pair utility of shooting over all present pairs of a guard and an attacker, by"
        " who shoots and whether it has the other in range."
    )
    return Outcome(
        sheets,
        [Chart("pairs", caption, panels, across=2)] if panels else [],
        [_states(collected)],
        numbers,
        STATES,
    )


def hunting_utilities(collected: Collected) -> Outcome:
    """Appendix H: what GPL makes of its teammates in Wolfpack."""
    rows, near, chosen, numbers = [], [], [], {}
    for name, runs in collected.learners("wolfpack").items():
        for run in runs:
            env = run.config.environment()
            found = _over_training(
                collected, run, "hunting", lambda agent, env=env: _hunting(agent, env, collected)
            )
            title = f"{name}, seed {run.config.seed}"
            near.append(_line(title, run.steps, [each["correlation"] for each in found]))
            chosen.append(_line(title, run.steps, [each["surplus"] for each in found]))
            rows.append((title, *_said(found[-1]["correlation"]), *_said(found[-1]["surplus"])))
            numbers[title] = {"steps": run.steps, "found": found}
    panels = [
        Panel("utility of a teammate and its distance", near, up="correlation"),
        Panel("C_jk before a capture", chosen, up="utility"),
    ]
    columns = ("run", "correlation at the end", "interval", "C_jk at the end", "interval")
    caption = (
        "Left: Pearson's correlation of a teammate's mean utility with its distance to the prey"
        " that is nearest to the learner. Right: the pair utility of what two of a pack did, less"
        " the mean of all other pairs of actions, in the step before they captured a prey together"
        " with the learner."
    )
    sheet = Sheet("Utilities of teammates", columns, rows, PICTURE)
    chart = Chart("hunting", caption, panels, across=2)
    return Outcome([sheet], [chart], numbers=numbers, intervals=STATES)


def _said(found: Mapping[str, Any] | None) -> tuple[str, str]:
    if found is None:
        return NOTHING, NOTHING
    if found["low"] is None:
        return f"{found['mean']:.3f}", NOTHING
    return f"{found['mean']:.3f}", f"{found['low']:.3f} to {found['high']:.3f}"


def _hunting(agent: Agent, env: Any, collected: Collected) -> dict[str, Any]:
    how = _how(collected)
    near = correlation(*teammate_utilities(agent, env, **how))
    surplus = capture_utilities(agent, env, **how)
    return {
        "correlation": None if near is None else {
            "mean": near.r, "low": finite(near.low), "high": finite(near.high), "n": near.n
        },
        "surplus": plain(estimate(surplus)) if surplus.size else None,
    }  # fmt: skip


def values_of_shooting(collected: Collected) -> Outcome:
    """Appendix I: what the baselines make of shooting."""
    gaps, worths, rows, numbers = [], [], [], {}
    for name, runs in collected.learners("fortattack").items():
        for run in runs:
            env = run.config.environment()
            found = _over_training(
                collected, run, "values of shooting",
                lambda agent, env=env: [
                    _means(each) for each in shooting_values(agent, env, **_how(collected))
                ],
            )  # fmt: skip
            title = f"{name}, seed {run.config.seed}"
            for panels, place, what in (
                (gaps, 0, "Q(s, shoot) - max Q(s, a)"), (worths, 1, "V(s)"),
            ):  # fmt: skip
                series = {
                    where: [each[place][where] for each in found]
                    for where in ("in range", "out of range")
                }
                lines = [_line(where, run.steps, each) for where, each in series.items()]
                panels.append(Panel(f"{title}: {what}", lines, up=what))
                ends = [_said(each[-1]) for each in series.values()]
                rows.append((title, what, *(f"{mean} ({interval})" for mean, interval in ends)))
            numbers[title] = {"steps": run.steps, "found": found}
    columns = ("run", "what", "attacker in range, at the end", "none in range, at the end")
    sheet = Sheet("Values of shooting", columns, rows, PICTURE)
    caption = (
        "The value of shooting less that of the best action, by whether the learner has an attacker"
        " in range, then the value of the state, by whether any guard has."
    )
    across = max(len(gaps), 1) if len(gaps) < len(SINGLE) else len(SINGLE)
    chart = Chart("shooting", caption, [*gaps, *worths], across=across)
    return Outcome([sheet], [chart] if gaps else [], [_states(collected)], numbers, STATES)
