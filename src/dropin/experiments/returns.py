"""Returns in training: figure 2, figure 3a, appendix F."""

from collections.abc import Sequence

from dropin import published
from dropin.evaluation.statistics import estimate
from dropin.experiments.collected import Collected
from dropin.experiments.grid import LEARNERS
from dropin.experiments.outcome import Chart, Outcome, Sheet
from dropin.experiments.words import CHOICE, NOTHING, cell, plain, theirs
from dropin.render.charts import COLOURS, Line, Panel
from dropin.render.curves import line, published_line
from dropin.training.table import PARTNERS, STRANGERS

TEST_LIMIT = 5


def colour(learner: str) -> str:
    """The same on every chart."""
    known = (*LEARNERS, learner)
    return COLOURS[known.index(learner) % len(COLOURS)]


def _ours(collected: Collected, among: str = STRANGERS) -> list[Panel]:
    """Our curves in every game."""
    return [
        Panel(
            f"{game}, ours",
            [
                line(collected.curve(runs, name, among=among), colour=colour(name))
                for name, runs in collected.learners(game).items()
            ],
        )
        for game in collected.games
    ]


def _theirs(collected: Collected) -> list[Panel]:
    """The paper's curves of the same learners."""
    panels = []
    for game in collected.games:
        found = {name: published.curve(game, name) for name in collected.learners(game)}
        lines = [
            published_line(name, curve, colour(name))
            for name, curve in found.items()
            if curve is not None
        ]
        panels.append(Panel(f"{game}, the paper's", lines))
    return panels


def training_curves(collected: Collected) -> Outcome:
    """Figure 2: returns in training."""
    rows, numbers = [], {}
    for game in collected.games:
        for name, runs in collected.learners(game).items():
            best = collected.best(runs)
            last = collected.at(runs, runs[0].last, runs[0].config.team_limit)
            paper = published.curve(game, name)
            said = [NOTHING] * 2 if paper is None else map(str, (paper.top, paper.points[-1]))
            rows.append((game, name, cell(best.training), f"{best.step:,}", cell(last), *said))
            numbers[f"{game} {name}"] = {
                "best": plain(estimate(best.training)),
                "at step": best.step,
                "last": plain(estimate(last)),
            }
    columns = ("game", "learner", "best", "at step", "last", "paper: best", "paper: last")
    note = "The best is the largest of many noisy means, so it tends to be too high."
    caption = "Returns in training, ours above and the paper's below."
    panels = _ours(collected) + _theirs(collected)
    return Outcome(
        [Sheet("Returns in training, team limit 3", columns, rows, note)],
        [_chart("curves", caption, panels, collected)],
        _bands(collected),
        numbers,
    )


def _chart(name: str, caption: str, panels: Sequence[Panel], collected: Collected) -> Chart:
    """A column for each game; a small version has axes of its own."""
    shared = not collected.choices.small
    return Chart(name, caption, panels, across=len(collected.games), shared=shared)


def _bands(collected: Collected) -> list[str]:
    """What the bands of curves are over, where it is not runs."""
    single = any(len(runs) == 1 for runs in collected.cells.values())
    if not single or collected.choices.estimated != "fixed":
        return []
    return ["The band of a curve of a single run is over the episodes of an evaluation."]


def shooting_accuracy(collected: Collected) -> Outcome:
    """Figure 3a: how many of the learner's shots hit."""
    ours, paper, rows, numbers = [], [], [], {}
    for name, runs in collected.learners("fortattack").items():
        curve = collected.curve(runs, name, column="shooting_accuracy", nothing=0.0)
        said, found = NOTHING, published.accuracy(name)
        if found is not None:
            there = [(step, value) for step, value in zip(*found, strict=True) if value is not None]
            steps, values = zip(*there, strict=True)
            dashed = Line(name, [each / 1e6 for each in steps], values)
            paper.append(dashed.with_colour(colour(name), dashed=True))
            said = f"{values[-1]:.3f}"
        ours.append(line(curve, colour=colour(name)))
        last, step = curve.points[-1], curve.steps[-1]
        rows.append((name, f"{last.mean:.3f}", f"{step:,}", said))
        numbers[name] = {"last": plain(last), "at step": step}
    up = "share of shots that hit"
    panels = [Panel("ours", ours, up=up), Panel("the paper's", paper, up=up)]
    columns = ("learner", "last", "at step", "paper: last")
    note = (
        "As in the authors' program, who does not shoot at all has a share of 0. Ours counts all"
        " shots of all episodes; theirs stops as the legacy estimator does, and takes a hit in the"
        " step in which an episode is decided for none."
    )
    return Outcome(
        [Sheet("Share of shots that hit, team limit 3", columns, rows, note)],
        [Chart("accuracy", "The share of the learner's shots that hit.", panels, across=2)],
        numbers=numbers,
    )


def among_partners(collected: Collected) -> Outcome:
    """Appendix F: jointly trained learners among those they were trained with."""
    rows, numbers = [], {}
    for game in collected.games:
        for name, runs in collected.learners(game).items():
            found: dict[str, Sequence[float]] = {}
            for among in (PARTNERS, STRANGERS):
                best = collected.best(runs, among)
                test = collected.at(runs, best.step, TEST_LIMIT, among)
                found |= {f"{among}, limit 3": best.training, f"{among}, limit 5": test}
            said = (
                published.return_among_partners(game, name),
                published.test_return(game, name),
            )
            rows.append((game, name, *map(cell, found.values()), *map(theirs, said)))
            numbers[f"{game} {name}"] = {
                what: plain(estimate(values)) for what, values in found.items()
            }
    columns = (
        "game",
        "learner",
        *(f"{among}, limit {limit}" for among in (PARTNERS, STRANGERS) for limit in (3, 5)),
        *(f"paper: {among}, limit 5" for among in (PARTNERS, STRANGERS)),
    )
    panels = [
        *(each.titled(PARTNERS) for each in _ours(collected, PARTNERS)),
        *(each.titled(STRANGERS) for each in _ours(collected) + _theirs(collected)),
    ]
    note = f"{CHOICE} It is chosen among partners and among strangers apart."
    caption = "Returns in training, among partners and among strangers."
    return Outcome(
        [Sheet("Among partners and among strangers", columns, rows, note)],
        [_chart("partners", caption, panels, collected)],
        _bands(collected),
        numbers,
    )
