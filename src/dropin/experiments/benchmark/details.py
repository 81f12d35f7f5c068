"""The details of the benchmark: returns, scores, recovery and prediction in every situation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dropin.core.errors import InputError
from dropin.evaluation.statistics import MIN_BOOTSTRAP, Estimate, profile_across_tasks
from dropin.experiments.benchmark.episode_file import EPISODES_FILE
from dropin.experiments.benchmark.kept_results import RECORDS_FILE, KeptResults
from dropin.experiments.benchmark.receipt import check_receipt
from dropin.experiments.benchmark.records import Measured, mean_returns
from dropin.experiments.benchmark.scores import (
    EVENTS,
    Aggregate,
    Reference,
    Situation,
    TaskKey,
    accuracy_by_age,
    recovery,
    reward_by_team_size,
    worst_type,
)
from dropin.experiments.benchmark.standing import AnyResults, Standing
from dropin.experiments.results import (
    EMPTY_CELL,
    Chart,
    ExperimentResult,
    Sheet,
    format_interval,
    format_seeds,
)
from dropin.plots.charts import Line, Panel

__all__ = ["game_details", "made_sheet", "method"]

EVENT_NAMES = {"entry": "a teammate enters", "exit": "one leaves", "change": "one changes its type"}
NUM_LEVELS = 41


def game_details(standing: Standing, game: str) -> ExperimentResult:
    """Return tables and charts of all situations of a game.

    Args:
        standing: The learners.
        game: The game.
    """
    tasks, ranked = standing.ranked(game)
    own = {each: runs for each, runs in standing.situations.items() if each.task.game == game}
    sheets = [_returns_sheet(standing, own)]
    if tasks:
        sheets = [_score_sheet(standing, game, tasks), *sheets]
    sheets += [_event_sheet(own), _size_sheet(own), _type_sheet(own)]
    charts = [_profile_chart(standing, game, tasks, ranked), *_line_charts(game, own)]
    return ExperimentResult(
        [sheet for sheet in sheets if sheet.rows],
        [chart for chart in charts if chart is not None],
        title=game,
    )


def method(standing: Standing) -> str:
    """Say how scores and intervals are made.

    Args:
        standing: The learners.
    """
    return (
        f"Compared are the {standing.checkpoint} agents of the runs. A score is 0 for random"
        " actions and 1 for the mean of learners that were trained in the situation of the test"
        " itself. A run counts once in each task, by its mean over the task's team limits, and all"
        " tasks have the same weight. Intervals are 95 %, over training runs: Student's t for one"
        f" task, the bootstrap over runs stratified by task for several, from {MIN_BOOTSTRAP} runs"
        " on. Tasks that are trained for in the same way share their runs, which the stratified"
        " bootstrap takes for different ones: its intervals are somewhat too narrow there."
    )


def made_sheet(results: Sequence[AnyResults]) -> Sheet:
    """Return how the results of each learner were made, with their raw data.

    Args:
        results: The results.
    """
    rows = []
    for each in results:
        about = each.about
        steps = max(record.step for record in each.records)
        raw = RECORDS_FILE if isinstance(each, KeptResults) else EPISODES_FILE
        rows.append((
            about.learner, about.kind, about.who or EMPTY_CELL, f"{steps:,}",
            format_seeds(each.seeds), about.versions.get("dropin", EMPTY_CELL), about.hardware,
            _played_again(each), about.command, str(each.directory / raw),
        ))  # fmt: skip
    columns = ("learner", "kind", "who", "steps", "seeds", "dropin", "hardware", "re-evaluated",
               "command", "raw data")  # fmt: skip
    return Sheet("Results", columns, rows)


def _played_again(results: AnyResults) -> str:
    """Return how many records `dropin benchmark submit` has played again."""
    try:
        receipt = results.receipt if isinstance(results, KeptResults) else check_receipt(results)
    except InputError:
        receipt = None
    if receipt is None:
        return "not checked"
    return f"{receipt['equal'] + receipt['close']} of {receipt['records']}"


def _score_sheet(standing: Standing, game: str, tasks: Sequence[TaskKey]) -> Sheet:
    """Return the table of tasks and learners."""
    names = [name for name, scores in standing.scores.items() if any(t in scores for t in tasks)]
    rows = [
        (str(task), *(_scored(standing.scores[name].get(task)) for name in names)) for task in tasks
    ]
    return Sheet(f"Scores, {game}", ("task", *names), rows)


def _scored(runs: Mapping[int, float] | None) -> str:
    return format_interval(list(runs.values())) if runs else EMPTY_CELL


def _returns_sheet(
    standing: Standing, own: Mapping[Situation, Mapping[str, Sequence[Measured]]]
) -> Sheet:
    """Return the raw returns beside both references."""
    names = list(dict.fromkeys(name for found in own.values() for name in found))
    rows = []
    for situation, found in own.items():
        reference = standing.references.get(situation, Reference())
        known = [EMPTY_CELL if each is None else f"{each:.2f}"
                 for each in (reference.chance, reference.best_response)]  # fmt: skip
        means = {name: mean_returns(runs).tolist() for name, runs in found.items()}
        cells = [format_interval(means[name]) if name in means else EMPTY_CELL for name in names]
        rows.append((str(situation.task), str(situation.team_limit), *known, *cells))
    return Sheet("Returns", ("task", "limit", "chance", "best response", *names), rows)


def _event_sheet(own: Mapping[Situation, Mapping[str, Sequence[Measured]]]) -> Sheet:
    """Return how rewards change when the team does."""
    rows = []
    for situation, found in own.items():
        for name, runs in found.items():
            cells = [recovery(runs, event) for event in EVENTS]
            if any(cells):
                texts = [EMPTY_CELL if each is None else _signed(each.difference) for each in cells]
                rows.append((str(situation.task), str(situation.team_limit), name, *texts))
    columns = ("task", "limit", "learner", *(f"when {EVENT_NAMES[event]}" for event in EVENTS))
    note = (
        "The learner's mean reward in the 10 steps after the event minus that in the 10 steps"
        " before it. It has two causes: the team is another one, and the learner has to adapt."
    )
    return Sheet("Recovery", columns, rows, note)


def _signed(found: Estimate) -> str:
    interval = f" ({found.low:+.3f} to {found.high:+.3f})" if found.has_interval else ""
    return f"{found.mean:+.3f}{interval}"


def _size_sheet(own: Mapping[Situation, Mapping[str, Sequence[Measured]]]) -> Sheet:
    """Return the reward in a step by team size."""
    tables = {(situation, name): reward_by_team_size(runs)
              for situation, found in own.items() for name, runs in found.items()}  # fmt: skip
    sizes = sorted({size for table in tables.values() for size in table})
    rows = [
        (str(situation.task), str(situation.team_limit), name,
         *(f"{table[size].mean:.3f}" if size in table else EMPTY_CELL for size in sizes))
        for (situation, name), table in tables.items()
    ]  # fmt: skip
    columns = ("task", "limit", "learner", *(f"{size} agents" for size in sizes))
    return Sheet("Reward in a step by team size", columns, rows)


def _type_sheet(own: Mapping[Situation, Mapping[str, Sequence[Measured]]]) -> Sheet:
    """Return the type with which each learner does worst."""
    rows = []
    for situation, found in own.items():
        for name, runs in found.items():
            worst = worst_type(runs)
            if worst is not None:
                own_type, mean = worst
                cells = (str(situation.task), str(situation.team_limit), name)
                rows.append((*cells, own_type, str(mean)))
    return Sheet("The worst type", ("task", "limit", "learner", "type", "return"), rows)


def _profile_chart(
    standing: Standing, game: str, tasks: Sequence[TaskKey], ranked: Mapping[str, Aggregate]
) -> Chart | None:
    """Return the share of runs above each score."""
    if not ranked:
        return None
    scores = {name: [list(standing.scores[name][task].values()) for task in tasks]
              for name in ranked}  # fmt: skip
    every = [value for runs in scores.values() for task in runs for value in task]
    levels = np.linspace(min(0.0, *every), max(1.0, *every), NUM_LEVELS).tolist()
    lines = [_line(name, dict(zip(levels, profile_across_tasks(runs, levels), strict=True)))
             for name, runs in scores.items()]  # fmt: skip
    panel = Panel(game, lines, xlabel="score", ylabel="share of runs above")
    caption = "The share of runs with a score above a level, averaged over tasks."
    return Chart(f"profiles-{game}", caption, [panel])


def _line_charts(
    game: str, own: Mapping[Situation, Mapping[str, Sequence[Measured]]]
) -> list[Chart | None]:
    """Return the rewards around events, and the accuracy of predictions by age.

    Of each task they are those at its largest team limit; the tables have all of them.
    """
    around, ages = [], []
    largest = {each.task: each.team_limit for each in sorted(own)}
    for situation, found in own.items():
        if situation.team_limit < largest[situation.task]:
            continue
        title = f"{situation.task.name}, limit {situation.team_limit}"
        for event in EVENTS:
            curves = {name: recovery(runs, event) for name, runs in found.items()}
            lines = [_line(name, each.curve) for name, each in curves.items() if each is not None]
            if lines:
                label = f"steps since {EVENT_NAMES[event]}"
                around.append(Panel(title, lines, xlabel=label, ylabel="reward in a step"))
        known = {name: accuracy_by_age(runs) for name, runs in found.items()}
        lines = [_line(name, table) for name, table in known.items() if table]
        if lines:
            ages.append(Panel(title, lines, "steps since arrival", "accuracy"))
    recover = "The learner's mean reward around changes of the team; 0 is the first step after one."
    accurate = "How often the likeliest predicted action was taken, by the teammate's age."
    return [
        Chart(f"recovery-{game}", recover, around) if around else None,
        Chart(f"accuracy-{game}", accurate, ages) if ages else None,
    ]


def _line(name: str, points: Mapping[float, Estimate] | Mapping[int, Estimate]) -> Line:
    """Return a line through estimates, with their intervals as a band if all have one."""
    found = list(points.values())
    line = Line(name, [float(at) for at in points], [each.mean for each in found])
    if not all(each.has_interval for each in found):
        return line
    return replace(line, low=[each.low for each in found], high=[each.high for each in found])
