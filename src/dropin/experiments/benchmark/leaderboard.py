"""The pages of the benchmark: a short one, and one with the details of every situation.

A page of several learners is the leaderboard. All sentences are computed from the numbers.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dropin.core.config import PlainDict
from dropin.core.errors import InputError
from dropin.core.files import write_json
from dropin.evaluation.statistics import MIN_BOOTSTRAP, POOLED, Estimate, estimate
from dropin.experiments.benchmark.details import game_details, made_sheet, method
from dropin.experiments.benchmark.records import Checkpoint, mean_returns
from dropin.experiments.benchmark.scores import (
    BEST_RESPONSE,
    CHANCE,
    Aggregate,
    TaskKey,
    improvement,
)
from dropin.experiments.benchmark.standing import AnyResults, Collected, Duel, Standing
from dropin.experiments.benchmark.tasks import Task
from dropin.experiments.comparisons import join
from dropin.experiments.pages import Block, content, sheet_blocks, write_blocks
from dropin.experiments.results import (
    EMPTY_CELL,
    ExperimentResult,
    Sheet,
    estimate_as_dict,
    format_seeds,
)

__all__ = ["leaderboard", "write_leaderboard"]

TITLE = "The open-team benchmark"
SMALL = "A small version: shorter runs than the tasks say, not to be quoted."


def leaderboard(standing: Standing) -> ExperimentResult:
    """Return the content of the main page: who is above whom, and what is missing.

    Args:
        standing: The learners.
    """
    sections = [_game_section(standing, game) for game in standing.games]
    return ExperimentResult(
        notes=[
            f"Compared are the {standing.checkpoint} agents of the runs. A score is 0 for random"
            " actions, and 1 for learners that were trained in the situation of the test itself."
            " Intervals are 95 %, over training runs."
        ],
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
    tasks: Sequence[Task] = (),
) -> list[Path]:
    """Write the pages of some results: Markdown, HTML, pictures, and the numbers as JSON.

    Small versions are compared with small versions only: they have pages of their own.

    Args:
        collected: The results; those that were refused are listed with the reason.
        directory: Where to write the files.
        command: The command that makes the pages, shown on them.
        name: The name of the files, without an ending.
        checkpoint: Which agents to compare.
        tasks: The tasks that a learner should have taken, if it has taken one of their game.

    Returns:
        The pages.

    Raises:
        InputError: If there are no results.
    """
    if not collected.results:
        reasons = " ".join(f"{path}: {reason}" for path, reason in collected.refused.items())
        raise InputError(f"There are no results to show. {reasons}".strip())
    written = []
    for is_small in (False, True):
        results = [each for each in collected.results if each.is_small == is_small]
        if results:
            page = f"{name}-small" if is_small else name
            standing = Standing.of(results, checkpoint, tasks)
            notice = [Block("notice", SMALL)] if is_small else []
            written += _write_main(page, standing, collected.refused, command, directory, notice)
            written += _write_details(page, standing, results, command, directory, notice)
    return written


def _write_main(
    page: str,
    standing: Standing,
    refused: Mapping[Path, str],
    command: str,
    directory: Path,
    notice: Sequence[Block],
) -> list[Path]:
    found = leaderboard(standing)
    rows = [(str(path), reason) for path, reason in refused.items()]
    left_out = sheet_blocks(Sheet("Left out", ("directory", "reason"), rows)) if rows else []
    blocks = [
        Block("title", TITLE),
        *notice,
        *content(page, found),
        *left_out,
        Block("heading", "How it was made"),
        Block("code", command),
        Block(
            "link",
            "All returns, scores and pictures, how they were made, and the raw data",
            target=f"{page}-details",
        ),
    ]
    write_json(directory / f"{page}.json", {"command": command, "numbers": found.numbers})
    return write_blocks(page, TITLE, blocks, found, directory)


def _write_details(
    page: str,
    standing: Standing,
    results: Sequence[AnyResults],
    command: str,
    directory: Path,
    notice: Sequence[Block],
) -> list[Path]:
    name, title = f"{page}-details", f"{TITLE}: details"
    found = ExperimentResult(sections=[game_details(standing, game) for game in standing.games])
    blocks = [
        Block("title", title),
        *notice,
        Block("link", "The main page", target=page),
        Block("text", method(standing)),
        *content(name, found),
        Block("heading", "How it was made"),
        Block("code", command),
        *sheet_blocks(made_sheet(results)),
    ]
    return write_blocks(name, title, blocks, found, directory)


def _game_section(standing: Standing, game: str) -> ExperimentResult:
    tasks, ranked = standing.ranked(game)
    duels = standing.duels(game)
    order = _order(standing.players(game), duels)
    sheets = [
        *([_rank_sheet(standing, tasks, ranked)] if ranked else []),
        _task_sheet(standing, game, order),
        _duel_sheet(order, duels),
        _unranked_sheet(standing, game),
        _gap_sheet(standing, game),
    ]
    first = _rank_sentence(standing, tasks, ranked) if ranked else _duel_sentence(order, duels)
    notes = [first, *_missing_sentences(standing, game), _error_sentence(standing, game)]
    return ExperimentResult(
        [sheet for sheet in sheets if sheet.rows],
        notes=[note for note in notes if note],
        numbers=_numbers(standing, game, ranked, duels),
        title=game,
    )


def _order(players: Sequence[str], duels: Mapping[tuple[str, str], Duel]) -> list[str]:
    """Return names by how often their runs are above those of the others, on average."""

    def strength(name: str) -> float:
        own = [duel.chance.mean for (ours, _), duel in duels.items() if ours == name]
        return -float(np.mean(own)) if own else 0.0

    return sorted(players, key=strength)


def _rank_sheet(
    standing: Standing, tasks: Sequence[TaskKey], ranked: Mapping[str, Aggregate]
) -> Sheet:
    """Return the aggregate scores."""
    rows = []
    for name, found in ranked.items():
        seeds = {seed for task in tasks for seed in standing.scores[name][task]}
        aggregates = (found.mean, found.interquartile_mean, found.optimality_gap)
        rows.append((name, *map(str, aggregates), format_seeds(seeds)))
    columns = ("learner", "mean", "interquartile mean", "optimality gap", "seeds")
    note = (
        "The interquartile mean leaves out the best and the worst quarter of the runs of all tasks"
        " together; the optimality gap is the mean shortfall below 1."
    )
    return Sheet(f"Scores over {_counted(len(tasks), 'task')}", columns, rows, note)


def _rank_sentence(
    standing: Standing, tasks: Sequence[TaskKey], ranked: Mapping[str, Aggregate]
) -> str:
    """Say who is first, and whether that is certain."""
    names = list(ranked)
    first = ranked[names[0]].mean
    if len(names) == 1:
        return f"Only {names[0]} has a rank: its mean score is {first}."
    second = ranked[names[1]].mean
    text = f"The largest mean score is that of {names[0]} ({first}), the next {names[1]} ({second})"
    ours, theirs = ({task: standing.returns[each][task] for task in tasks} for each in names[:2])
    better = improvement(ours, theirs)
    return text if better is None else f"{text}; {_certainty(better)}"


def _duel_sentence(order: Sequence[str], duels: Mapping[tuple[str, str], Duel]) -> str:
    """Say whose returns are largest, where there are no scores."""
    first, *rest = [name for name in order if name not in (CHANCE, BEST_RESPONSE)] or [""]
    others = [name for name in (*rest, CHANCE) if (first, name) in duels]
    if not others:
        return ""
    duel = duels[first, others[0]]
    text = f"Nobody has a rank. By raw returns {first} is above {others[0]}"
    tasks = _counted(duel.tasks, "task")
    return f"{text} in {duel.ahead} of {tasks}; {_certainty(duel.chance)}"


def _certainty(better: Estimate) -> str:
    """Say how certain it is that the first one's runs are above those of the second."""
    if better.n == 1:
        return "that is one run of one of them, and other runs may do otherwise."
    if not better.has_interval:
        return f"fewer than {MIN_BOOTSTRAP} runs do not show whether that is chance."
    if better.low > 0.5:
        return f"a run of the first is above one of the second in {better.mean:.0%} of cases."
    return f"with {better.n} runs the difference may be chance."


def _missing_sentences(standing: Standing, game: str) -> list[str]:
    """Say in which situations there is no score, and why."""
    sentences = []
    for name, situations in standing.missing().items():
        tasks = list(dict.fromkeys(s.task for s in situations if s.task.game == game))
        if tasks:
            every = {s.task for s in standing.situations if s.task.game == game} == set(tasks)
            listed = "any task" if every else join([task.short for task in tasks])
            sentences.append(f"Without {name} there are raw returns, but no scores in {listed}.")
    return sentences


def _error_sentence(standing: Standing, game: str) -> str:
    """Say how exact the mean returns of single agents are."""
    own = [found for each, found in standing.situations.items() if each.task.game == game]
    errors = [run.standard_error for found in own for runs in found.values() for run in runs]
    if not errors:
        return ""
    return (
        "Each mean return of an agent has a standard error over its episodes, which is at most"
        f" {max(errors):.2f}. It says how exactly this agent is known, not how other runs would do."
    )


def _task_sheet(standing: Standing, game: str, order: Sequence[str]) -> Sheet:
    """Return the mean return in each task of those who took it at all its team limits."""
    rows = []
    for task, limits in standing.limits.items():
        if task.game != game:
            continue
        cells = []
        for name in order:
            own = {s.team_limit: mean_returns(runs).mean()
                   for s, runs in standing.everybody[name].items() if s.task == task}  # fmt: skip
            whole = limits <= set(own)
            cells.append(f"{np.mean(list(own.values())):.2f}" if whole else EMPTY_CELL)
        if set(cells) != {EMPTY_CELL}:
            rows.append((task.short, ", ".join(map(str, sorted(limits))), *cells))
    return Sheet("Mean returns", ("task", "team limits", *order), rows)


def _duel_sheet(order: Sequence[str], duels: Mapping[tuple[str, str], Duel]) -> Sheet:
    """Return how often each one's runs are above those of each other."""

    def cell(ours: str, theirs: str) -> str:
        duel = duels.get((ours, theirs))
        return EMPTY_CELL if duel is None else f"{duel.chance}, {_counted(duel.tasks, 'task')}"

    rows = [(ours, *(cell(ours, theirs) for theirs in order)) for ours in order]
    note = (
        "The probability that a run of the row has a larger mean return than one of the column,"
        " averaged over the tasks that both have taken at the same team limits. It needs no"
        " references; 0.50 means that neither is above the other."
    )
    return Sheet("Who is above whom", ("learner", *order), rows if len(order) > 1 else [], note)


def _unranked_sheet(standing: Standing, game: str) -> Sheet:
    rows = list(standing.unranked(game).items())
    note = (
        "A rank takes runs at all team limits of every scored task. A task is scored if chance and"
        " the best response are known at all its team limits."
    )
    return Sheet("Without a rank", ("learner", "why"), rows, note)


def _gap_sheet(standing: Standing, game: str) -> Sheet:
    """Return what was not measured, with the tasks of the same gap in one row."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for gap in standing.gaps(game):
        tasks.setdefault((gap.learner, gap.missing), []).append(gap.task.short)
    total = sum(task.game == game for task in standing.limits)
    rows = [
        (learner, missing, "all tasks" if len(names) == total else ", ".join(names))
        for (learner, missing), names in tasks.items()
    ]
    note = (
        f"`dropin benchmark run LEARNER --tasks {game}` measures what a learner lacks, and"
        f" `dropin benchmark references --tasks {game}` what {CHANCE} and {BEST_RESPONSE} lack."
    )
    return Sheet("Not measured", ("learner", "what", "tasks"), rows, note)


def _numbers(
    standing: Standing,
    game: str,
    ranked: Mapping[str, Aggregate],
    duels: Mapping[tuple[str, str], Duel],
) -> PlainDict:
    """Return returns, scores, aggregates and comparisons as plain values."""
    returns: dict[str, PlainDict] = {}
    for name in standing.players(game):
        for situation, runs in standing.everybody[name].items():
            if situation.task.game == game:
                found = estimate_as_dict(estimate(mean_returns(runs)))
                returns.setdefault(str(situation), {})[name] = found
    return {
        "returns": dict(sorted(returns.items())),
        "scores": {
            name: {str(task): {str(seed): value for seed, value in runs.items()}
                   for task, runs in scores.items() if task.game == game}
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
        "above": {
            f"{ours} / {theirs}": {"tasks": duel.tasks, "ahead": duel.ahead,
                                   "probability": estimate_as_dict(duel.chance)}
            for (ours, theirs), duel in duels.items()
        },
        "unranked": standing.unranked(game),
        "missing": [
            {"learner": gap.learner, "task": str(gap.task), "missing": gap.missing}
            for gap in standing.gaps(game)
        ],
    }  # fmt: skip


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
