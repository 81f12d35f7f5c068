"""The pages of the benchmark: scores, profiles, recovery and prediction of one or several learners.

A page of several learners is the leaderboard. All sentences are computed from the numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dropin.core.config import PlainDict
from dropin.core.errors import InputError
from dropin.core.files import write_json
from dropin.evaluation.statistics import (
    MIN_BOOTSTRAP,
    POOLED,
    Estimate,
    estimate,
    profile_across_tasks,
)
from dropin.experiments.benchmark.episode_file import EPISODES_FILE
from dropin.experiments.benchmark.receipt import check_receipt
from dropin.experiments.benchmark.records import Checkpoint, Record, mean_returns
from dropin.experiments.benchmark.results import Results
from dropin.experiments.benchmark.scores import (
    EVENTS,
    Aggregate,
    Reference,
    Situation,
    TaskKey,
    accuracy_by_age,
    improvement,
    recovery,
    reward_by_team_size,
    worst_type,
)
from dropin.experiments.benchmark.standing import Collected, Standing
from dropin.experiments.comparisons import join
from dropin.experiments.pages import Block, content, sheet_blocks, write_blocks
from dropin.experiments.results import (
    EMPTY_CELL,
    Chart,
    ExperimentResult,
    Sheet,
    estimate_as_dict,
    format_interval,
    format_seeds,
)
from dropin.plots.charts import Line, Panel

__all__ = ["leaderboard", "write_leaderboard"]

EVENT_NAMES = {"entry": "a teammate enters", "exit": "one leaves", "change": "one changes its type"}
NUM_LEVELS = 41


def leaderboard(standing: Standing, notes: Sequence[str] = ()) -> ExperimentResult:
    """Return the content of the page.

    Args:
        standing: The learners.
        notes: Further sentences, shown first.
    """
    sections = [_game_section(standing, game) for game in standing.games]
    return ExperimentResult(
        notes=[*notes, _method(standing), *_missing_sentences(standing)],
        sections=sections,
        numbers={section.title: section.numbers for section in sections},
        intervals="over training runs; n is their number",
    )


def write_leaderboard(
    collected: Collected,
    directory: Path,
    command: str,
    *,
    name: str = "leaderboard",
    checkpoint: Checkpoint = "last",
) -> list[Path]:
    """Write the page of some results: Markdown, HTML, pictures, and the numbers as JSON.

    Small versions are compared with small versions only: they have a page of their own.

    Args:
        collected: The results; those that were refused are listed with the reason.
        directory: Where to write the files.
        command: The command that makes the page, shown on it.
        name: The name of the files, without an ending.
        checkpoint: Which agents to compare.

    Returns:
        The pages.

    Raises:
        InputError: If there are no results.
    """
    groups = {False: [], True: []}
    for each in collected.results:
        groups[each.is_small].append(each)
    if not collected.results:
        reasons = " ".join(f"{path}: {reason}" for path, reason in collected.refused.items())
        raise InputError(f"There are no results to show. {reasons}".strip())
    written = []
    for is_small, results in groups.items():
        if not results:
            continue
        page = f"{name}-small" if is_small else name
        found = leaderboard(Standing.of(results, checkpoint))
        sheets = [_made_sheet(results)]
        if collected.refused:
            rows = [(str(path), reason) for path, reason in collected.refused.items()]
            sheets.append(Sheet("Left out", ("directory", "reason"), rows))
        notice = "A small version: shorter runs than the tasks say, not to be quoted."
        blocks = [
            Block("title", "The open-team benchmark"),
            *([Block("notice", notice)] if is_small else []),
            *content(page, found),
            Block("heading", "How it was made"),
            Block("code", command),
            *(block for sheet in sheets for block in sheet_blocks(sheet)),
        ]
        written += write_blocks(page, "The open-team benchmark", blocks, found, directory)
        write_json(directory / f"{page}.json", {"command": command, "numbers": found.numbers})
    return written


def _made_sheet(results: Sequence[Results]) -> Sheet:
    """Return how the results of each learner were made, with their raw data."""
    rows = []
    for each in results:
        about = each.about
        try:
            receipt = check_receipt(each)
            played = f"{receipt['equal'] + receipt['close']} of {receipt['records']}"
        except InputError:
            played = "not checked"
        steps = max(record.step for record in each.records)
        rows.append((
            about.learner, about.kind, about.who or EMPTY_CELL, f"{steps:,}",
            format_seeds(each.seeds), about.versions.get("dropin", EMPTY_CELL), about.hardware,
            played, about.command, str(each.directory / EPISODES_FILE),
        ))  # fmt: skip
    columns = ("learner", "kind", "who", "steps", "seeds", "dropin", "hardware", "re-evaluated",
               "command", "raw data")  # fmt: skip
    return Sheet("Results", columns, rows)


def _method(standing: Standing) -> str:
    return (
        f"Compared are the {standing.checkpoint} agents. A score is 0 for random actions and 1 for"
        " the mean of learners that were trained in the situation of the test itself. A run counts"
        " once in each task: its score is the mean over the task's team limits. All tasks have the"
        " same weight. The interquartile mean leaves out the best and the worst quarter of the runs"
        " of all tasks together; the optimality gap is the mean shortfall below 1. Intervals are"
        " 95 %, over training runs: Student's t for one task, the bootstrap over runs stratified by"
        f" task for several, from {MIN_BOOTSTRAP} runs on. Tasks that are trained for in the same"
        " way share their runs, which the stratified bootstrap takes for different ones: its"
        " intervals are somewhat too narrow there."
    )


def _missing_sentences(standing: Standing) -> list[str]:
    """Say in which situations there is no score, and why."""
    sentences = []
    for name, situations in standing.missing().items():
        tasks = join([str(each) for each in dict.fromkeys(s.task for s in situations)])
        sentences.append(f"Without {name} there are raw returns, but no scores: {tasks}.")
    return sentences


def _game_section(standing: Standing, game: str) -> ExperimentResult:
    tasks, ranked = standing.ranked(game)
    own = {each: runs for each, runs in standing.situations.items() if each.task.game == game}
    sheets = [_returns_sheet(standing, own)]
    if tasks:
        sheets = [
            _score_sheet(standing, game, tasks),
            _rank_sheet(standing, tasks, ranked),
            *sheets,
        ]
    sheets += [_event_sheet(own), _size_sheet(own), _type_sheet(own)]
    charts = [_profile_chart(standing, game, tasks, ranked), *_line_charts(game, own)]
    return ExperimentResult(
        [sheet for sheet in sheets if sheet.rows],
        [chart for chart in charts if chart is not None],
        [_rank_sentence(standing, tasks, ranked)] if ranked else [],
        numbers=_numbers(standing, own, ranked),
        title=game,
    )


def _numbers(
    standing: Standing,
    own: Mapping[Situation, Mapping[str, Sequence[Record]]],
    ranked: Mapping[str, Aggregate],
) -> PlainDict:
    """Return returns, scores and aggregates as plain values."""
    return {
        "returns": {
            str(situation): {
                name: estimate_as_dict(estimate(mean_returns(runs))) for name, runs in found.items()
            }
            for situation, found in own.items()
        },
        "scores": {
            name: {str(task): {str(seed): value for seed, value in runs.items()}
                   for task, runs in scores.items()}
            for name, scores in standing.scores.items()
        },
        "aggregates": {
            name: {
                "mean": estimate_as_dict(each.mean),
                POOLED: estimate_as_dict(each.interquartile_mean),
                "optimality gap": estimate_as_dict(each.optimality_gap),
            }
            for name, each in ranked.items()
        },
    }  # fmt: skip


def _score_sheet(standing: Standing, game: str, tasks: Sequence[TaskKey]) -> Sheet:
    """Return the table of tasks and learners."""
    names = [name for name, scores in standing.scores.items() if any(t in scores for t in tasks)]
    rows = [
        (str(task), *(_scored(standing.scores[name].get(task)) for name in names)) for task in tasks
    ]
    return Sheet(f"Scores, {game}", ("task", *names), rows)


def _scored(runs: Mapping[int, float] | None) -> str:
    return format_interval(list(runs.values())) if runs else EMPTY_CELL


def _rank_sheet(
    standing: Standing, tasks: Sequence[TaskKey], ranked: Mapping[str, Aggregate]
) -> Sheet:
    """Return the aggregate scores, and how often each learner is above the next."""
    names, rows = list(ranked), []
    for place, (name, found) in enumerate(ranked.items()):
        better = None
        if place + 1 < len(names):
            ours, theirs = ({task: standing.returns[each][task] for task in tasks}
                            for each in (name, names[place + 1]))  # fmt: skip
            better = improvement(ours, theirs)
        seeds = {seed for task in tasks for seed in standing.scores[name][task]}
        rows.append((
            name, str(found.mean), str(found.interquartile_mean), str(found.optimality_gap),
            EMPTY_CELL if better is None else f"{better} over {names[place + 1]}",
            format_seeds(seeds),
        ))  # fmt: skip
    count = f"{len(tasks)} tasks" if len(tasks) > 1 else "1 task"
    columns = ("learner", "mean", "interquartile mean", "optimality gap", "chance of improvement",
               "seeds")  # fmt: skip
    note = (
        "The chance of improvement is the probability that a run is above one of the next learner,"
        " averaged over tasks. Learners without runs in every task are left out."
    )
    return Sheet(f"Over {count}", columns, rows, note)


def _rank_sentence(
    standing: Standing, tasks: Sequence[TaskKey], ranked: Mapping[str, Aggregate]
) -> str:
    """Say who is first, and whether that is certain."""
    names = list(ranked)
    first = ranked[names[0]].mean
    if len(names) == 1:
        return f"Only {names[0]} has runs in every task: its mean score is {first}."
    second = ranked[names[1]].mean
    text = f"The largest mean score is that of {names[0]} ({first}), the next {names[1]} ({second})"
    ours, theirs = ({task: standing.returns[each][task] for task in tasks} for each in names[:2])
    better = improvement(ours, theirs)
    if better is None or not better.has_interval:
        return f"{text}; fewer than {MIN_BOOTSTRAP} runs do not show whether that is chance."
    if better.low > 0.5:
        return (
            f"{text}; a run of the first is above one of the second in {better.mean:.0%} of cases."
        )
    return f"{text}; with {better.n} runs the difference may be chance."


def _returns_sheet(
    standing: Standing, own: Mapping[Situation, Mapping[str, Sequence[Record]]]
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


def _event_sheet(own: Mapping[Situation, Mapping[str, Sequence[Record]]]) -> Sheet:
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


def _size_sheet(own: Mapping[Situation, Mapping[str, Sequence[Record]]]) -> Sheet:
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


def _type_sheet(own: Mapping[Situation, Mapping[str, Sequence[Record]]]) -> Sheet:
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
    game: str, own: Mapping[Situation, Mapping[str, Sequence[Record]]]
) -> list[Chart | None]:
    """Return the rewards around events, and the accuracy of predictions by age."""
    around, ages = [], []
    for situation, found in own.items():
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
