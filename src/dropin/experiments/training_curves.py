"""Learning curves: figure 2, figure 3a (shooting accuracy), appendix F (partners)."""

from collections.abc import Sequence

from dropin.evaluation import published
from dropin.evaluation.published import PublishedMean
from dropin.evaluation.statistics import estimate
from dropin.experiments.comparisons import (
    Comparison,
    agreement_sentence,
    join,
    order_sentence,
)
from dropin.experiments.results import (
    CHECKPOINT_NOTE,
    EMPTY_CELL,
    Chart,
    CompletedRuns,
    ExperimentResult,
    Sheet,
    estimate_as_dict,
    format_interval,
    format_published,
    learner_colour,
)
from dropin.experiments.runs import TEST_LIMIT
from dropin.plots.charts import Line, Panel
from dropin.plots.curves import curve_line, published_line
from dropin.training.config import PARTNERS, STRANGERS

__all__ = ["partners", "shooting_accuracy", "training_returns"]


def training_returns(runs: CompletedRuns) -> ExperimentResult:
    """Return figure 2: returns in training."""
    rows, numbers, bests, lasts = [], {}, [], []
    for game in runs.games:
        for learner, group in runs.by_learner(game).items():
            best = runs.best_checkpoint(group)
            last = runs.returns_at(group, group[0].final_step, group[0].config.team_limit)
            paper = published.training_curve(game, learner)
            papers = (None, None) if paper is None else (paper.best, paper.points[-1])
            bests.append(Comparison(f"{game} {learner}", best.training_returns, papers[0]))
            lasts.append(Comparison(f"{game} {learner}", last, papers[1]))
            rows.append((
                game, learner, format_interval(best.training_returns), f"{best.step:,}",
                format_interval(last), *map(format_published, papers),
            ))  # fmt: skip
            numbers[f"{game} {learner}"] = {
                "best": estimate_as_dict(estimate(best.training_returns)),
                "at step": best.step,
                "last": estimate_as_dict(estimate(last)),
            }
    columns = ("game", "learner", "best", "at step", "last", "paper: best", "paper: last")
    note = (
        "The best is the largest of many noisy means, so it tends to be too high."
        f" {agreement_sentence(bests, runs.options)}"
    )
    caption = (
        "Returns in training, ours above and the paper's below; the last checkpoints are compared."
        f" {agreement_sentence(lasts, runs.options)}"
    )
    panels = _our_panels(runs) + _paper_panels(runs)
    return ExperimentResult(
        [Sheet("Returns in training, team limit 3", columns, rows, note)],
        [_chart("curves", caption, panels, runs)],
        _band_notes(runs),
        numbers,
    )


def shooting_accuracy(runs: CompletedRuns) -> ExperimentResult:
    """Return figure 3a: the share of the learner's shots that hit in FortAttack."""
    ours, papers, rows, numbers, comparisons = [], [], [], {}, []
    for learner, group in runs.by_learner("fortattack").items():
        curve = runs.curve(group, learner, column="shooting_accuracy", missing_value=0.0)
        ours.append(curve_line(curve, learner_colour(learner)))
        paper_last, paper = EMPTY_CELL, published.shooting_accuracy(learner)
        if paper is not None:
            points = [point for point in zip(*paper, strict=True) if point[1] is not None]
            steps, shares = zip(*points, strict=True)
            x = [step / 1e6 for step in steps]
            papers.append(Line(learner, x, shares, colour=learner_colour(learner), dashed=True))
            paper_last = f"{shares[-1]:.3f}"
            comparisons.append(
                Comparison(
                    learner,
                    [values[-1] for values in curve.individual],
                    PublishedMean(shares[-1], 0.0),
                )
            )
        last, step = curve.points[-1], curve.steps[-1]
        rows.append((learner, f"{last.mean:.3f}", f"{step:,}", paper_last))
        numbers[learner] = {"last": estimate_as_dict(last), "at step": step}
    ylabel = "share of shots that hit"
    panels = [Panel("ours", ours, ylabel=ylabel), Panel("the paper's", papers, ylabel=ylabel)]
    columns = ("learner", "last", "at step", "paper: last")
    note = (
        "As in the authors' program, a learner that never shoots has a share of 0. Ours counts all"
        " shots of all episodes; theirs stops as the legacy estimator does, and leaves out hits in"
        " the step that decides an episode."
    )
    caption = "The share of the learner's shots that hit; the last checkpoints are compared."
    if comparisons:
        caption += f" {order_sentence(comparisons, runs.options)}"
    return ExperimentResult(
        [Sheet("Share of shots that hit, team limit 3", columns, rows, note)],
        [Chart("accuracy", caption, panels, columns=1, share_axes=True)],
        numbers=numbers,
    )


def partners(runs: CompletedRuns) -> ExperimentResult:
    """Return appendix F: jointly trained learners among partners and among strangers."""
    rows, numbers, comparisons, better = [], {}, [], []
    for game in runs.games:
        for learner, group in runs.by_learner(game).items():
            found: dict[str, Sequence[float]] = {}
            for teammates in (PARTNERS, STRANGERS):
                best = runs.best_checkpoint(group, teammates)
                found[f"{teammates}, limit 3"] = best.training_returns
                found[f"{teammates}, limit 5"] = runs.returns_at(
                    group, best.step, TEST_LIMIT, teammates
                )
            papers = (
                published.partner_return(game, learner),
                published.larger_team_return(game, learner),
            )
            usual = [found[f"{teammates}, limit 3"] for teammates in (PARTNERS, STRANGERS)]
            if estimate(usual[0]).mean > estimate(usual[1]).mean:
                better.append(f"{game} {learner}")
            at_test = found[f"{PARTNERS}, limit {TEST_LIMIT}"]
            comparisons.append(Comparison(f"{game} {learner}", at_test, papers[0]))
            rows.append((
                game, learner, *map(format_interval, found.values()),
                *map(format_published, papers),
            ))  # fmt: skip
            numbers[f"{game} {learner}"] = {
                name: estimate_as_dict(estimate(values)) for name, values in found.items()
            }
    both = (PARTNERS, STRANGERS)
    columns = (
        "game",
        "learner",
        *(f"{teammates}, limit {limit}" for teammates in both for limit in (3, 5)),
        *(f"paper: {teammates}, limit 5" for teammates in both),
    )
    strangers = _our_panels(runs) + _paper_panels(runs)
    panels = [
        *(panel.with_title_suffix(PARTNERS) for panel in _our_panels(runs, PARTNERS)),
        *(panel.with_title_suffix(STRANGERS) for panel in strangers),
    ]
    agreement = agreement_sentence(comparisons, runs.options)
    note = (
        f"The returns among partners at team limit {TEST_LIMIT} are compared. {agreement}"
        f" {CHECKPOINT_NOTE}"
        " It is chosen separately among partners and among strangers."
    )
    caption = (
        "Returns in training, among partners and among strangers."
        " At team limit 3 the mean is larger among partners than among strangers in"
        f" {len(better)} of {len(rows)} cases{f' ({join(better)})' if better else ''}."
    )
    return ExperimentResult(
        [Sheet("Among partners and among strangers", columns, rows, note)],
        [_chart("partners", caption, panels, runs)],
        _band_notes(runs),
        numbers,
    )


def _our_panels(runs: CompletedRuns, teammates: str = STRANGERS) -> list[Panel]:
    """Return a panel with our curves for each game."""
    return [
        Panel(
            f"{game}, ours",
            [
                curve_line(runs.curve(group, learner, teammates=teammates), learner_colour(learner))
                for learner, group in runs.by_learner(game).items()
            ],
        )
        for game in runs.games
    ]


def _paper_panels(runs: CompletedRuns) -> list[Panel]:
    """Return a panel with the paper's curves of the same learners for each game."""
    panels = []
    for game in runs.games:
        curves = {name: published.training_curve(game, name) for name in runs.by_learner(game)}
        lines = [
            published_line(learner, curve, learner_colour(learner))
            for learner, curve in curves.items()
            if curve is not None
        ]
        panels.append(Panel(f"{game}, the paper's", lines))
    return panels


def _chart(name: str, caption: str, panels: Sequence[Panel], runs: CompletedRuns) -> Chart:
    """Return a chart with a column for each game.

    In a small version panels have axes of their own: beside the paper's curves ours would be dots.
    """
    columns, share_axes = len(runs.games), not runs.options.is_small
    return Chart(name, caption, panels, columns=columns, share_axes=share_axes)


def _band_notes(runs: CompletedRuns) -> list[str]:
    """Return what the bands of curves are over, where it is not runs."""
    has_single_run = any(len(group) == 1 for group in runs.groups.values())
    if not has_single_run or runs.options.chosen_estimator != "fixed":
        return []
    return ["The band of a curve of a single run is over the episodes of an evaluation."]
