"""The results page: every learner in every game beside the paper, from protocol to raw data."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dropin.core import registry
from dropin.core.config import PlainDict
from dropin.evaluation import published
from dropin.evaluation.published import PublishedMean
from dropin.evaluation.statistics import (
    MIN_BOOTSTRAP,
    MIN_TRIMMED,
    across_tasks,
    estimate,
    interquartile_mean,
)
from dropin.experiments.comparisons import (
    MIN_RUNS,
    Comparison,
    agreement_sentence,
    improvement,
    join,
    order_sentence,
    strongest_baseline,
)
from dropin.experiments.kept import FRESH_EPISODES, FRESH_SEED, final_row
from dropin.experiments.larger_teams import larger_teams, profile_panel
from dropin.experiments.planning import StoredRun, identity
from dropin.experiments.results import (
    EMPTY_CELL,
    Chart,
    CompletedRuns,
    ExperimentResult,
    Sheet,
    estimate_as_dict,
    format_interval,
    format_published,
    format_seeds,
)
from dropin.experiments.runs import (
    JOINT_LEARNERS,
    PAPER_GAMES,
    PAPER_LEARNERS,
    PAPER_SEEDS,
    SINGLE_AGENT_BASELINES,
    TEST_LIMIT,
)
from dropin.experiments.training_curves import partners, shooting_accuracy, training_returns
from dropin.training.run_directory import RunDirectory

__all__ = ["final_returns", "summary"]

AGENTS = ("last", "best")
VERSIONS = ("dropin", "python", "jax", "jaxlib", "numpy", "XLA_FLAGS")
"""What the raw data says of the versions of a run."""
MEASURED = (
    "step", "team_limit", "teammates", "episodes", "mean_return", "ci_low", "ci_high",
    "legacy_mean_return", "unshaped_mean_return", "shooting_accuracy",
)  # fmt: skip
"""The columns of an evaluation that the raw data has."""
STATISTICS = ("mean", "interquartile mean", "optimality gap")


def summary(runs: CompletedRuns) -> ExperimentResult:
    """Return the results page: protocol, final returns, curves, table 2, figure 3a, appendix F."""
    accuracy = runs.only(("gpl-q", *SINGLE_AGENT_BASELINES), ("fortattack",))
    joint = runs.only(JOINT_LEARNERS)
    table2 = larger_teams(runs)
    sections = {
        "Final returns": _final_section(runs),
        "All games together": _together_section(runs),
        "Learning curves (figure 2)": training_returns(runs),
        # Its details and profiles are those of the final returns, in fewer episodes.
        "Larger teams (table 2)": replace(table2, sheets=table2.sheets[:1], charts=()),
        "Shooting accuracy (figure 3a)": accuracy and shooting_accuracy(accuracy),
        "Among partners (appendix F)": joint and partners(joint),
    }
    found = {title: section for title, section in sections.items() if section}
    return ExperimentResult(
        [_protocol(runs)],
        sections=[replace(section, title=title) for title, section in found.items()],
        numbers={title: section.numbers for title, section in found.items()},
        records=_records(runs),
    )


def final_returns(
    runs: CompletedRuns, game: str, team_limit: int, agent: str = "last"
) -> dict[str, list[float]]:
    """Return the final return of each run in a game, by learner; learners without any are left out.

    Args:
        runs: The runs.
        game: Name of the game.
        team_limit: The team limit of the evaluation.
        agent: `last` or `best`, see `dropin.experiments.kept.final_row`.
    """
    column, found = runs.options.return_column, {}
    for learner, group in runs.by_learner(game).items():
        rows = [final_row(run, agent, team_limit) for run in group]
        values = [float(row[column]) for row in rows if row is not None]
        if values:
            found[learner] = values
    return found


def _limits(runs: CompletedRuns) -> list[int]:
    """Return the team limits of the tables: that of training, and the paper's of testing."""
    return [runs.jobs[0].config.team_limit, TEST_LIMIT]


def _papers(game: str, learner: str, team_limit: int) -> PublishedMean | None:
    """Return the paper's number for a final return: the end of its curve, or that of table 2."""
    if team_limit == TEST_LIMIT:
        return published.larger_team_return(game, learner)
    curve = published.training_curve(game, learner)
    return None if curve is None else curve.points[-1]


def _final_section(runs: CompletedRuns) -> ExperimentResult:
    """Return a table for each game and team limit, and the performance profiles."""
    sheets, panels, numbers, num_above, num_compared = [], [], {}, 0, 0
    for game in runs.games:
        for limit in _limits(runs):
            last = final_returns(runs, game, limit)
            best = final_returns(runs, game, limit, "best")
            title = f"{game}, team limit {limit}"
            papers = {name: _papers(game, name, limit) for name in last}
            comparisons = [Comparison(name, last[name], papers[name]) for name in last]
            rows = []
            for name, values in last.items():
                middle = interquartile_mean(values) if len(values) >= MIN_TRIMMED else None
                better = improvement(name, last)
                if better is not None and better.n < MIN_RUNS:
                    better = None
                above = _num_above(values, papers[name])
                rows.append((
                    name, format_interval(values), EMPTY_CELL if middle is None else str(middle),
                    format_interval(best[name]) if name in best else EMPTY_CELL,
                    EMPTY_CELL if better is None else f"{better} over {strongest_baseline(last)}",
                    format_published(papers[name]),
                    EMPTY_CELL if above is None else f"{above} of {len(values)}",
                ))  # fmt: skip
                numbers[f"{title}, {name}"] = {
                    "last": estimate_as_dict(estimate(values)),
                    "interquartile mean": estimate_as_dict(middle),
                    "best": estimate_as_dict(estimate(best[name])) if name in best else None,
                    "improvement": estimate_as_dict(better),
                    "above the paper": above,
                    "runs": values,
                }
                if above is not None and len(values) >= MIN_BOOTSTRAP:
                    num_above, num_compared = num_above + above, num_compared + len(values)
            columns = ("learner", "last agent", "interquartile mean", "best agent",
                       "chance of improvement", "paper", "runs above it")  # fmt: skip
            order = order_sentence(comparisons, runs.options)
            note = f"{order} {agreement_sentence(comparisons, runs.options)}"
            sheets.append(Sheet(title, columns, rows, note))
            many = {name: values for name, values in last.items() if len(values) >= MIN_BOOTSTRAP}
            if many:
                panels.append(profile_panel(title, many))
    notes = [
        "The tables have the mean over runs, with n, the number of runs. The chance of improvement"
        " is the probability that a run is above one of the strongest single-agent baseline."
        f" It takes at least {MIN_RUNS} runs of both, the interquartile mean {MIN_TRIMMED}, and"
        f" bootstrapped intervals and profiles {MIN_BOOTSTRAP}. The paper's number is the end of"
        f" its curve, and that of table 2 at team limit {TEST_LIMIT}.",
        _not_fresh(runs),
    ]
    caption = (
        "The share of runs whose last agent has a return above a level, with exact binomial"
        f" intervals, of learners with at least {MIN_BOOTSTRAP} runs. Of these runs,"
        f" {num_above} of {num_compared} are above the paper's mean for the same learner, game and"
        " team limit."
    )
    charts = [Chart("profiles", caption, panels, columns=2)] if panels else []
    return ExperimentResult(sheets, charts, notes, numbers)


def _num_above(values: Sequence[float], paper: PublishedMean | None) -> int | None:
    """Return how many runs are above the paper's mean; None if it has none."""
    return None if paper is None else sum(value > paper.mean for value in values)


def _not_fresh(runs: CompletedRuns) -> str:
    """Say which runs have no fresh episodes."""
    done = [run for group in runs.groups.values() for run in group]
    old = [run for run in done if not run.fresh_evaluations]
    if not old:
        return f"All returns are of {FRESH_EPISODES} fresh episodes."
    seeds: dict[str, list[int]] = {}
    for run in old:
        seeds.setdefault(f"{run.config.game} {run.config.learner}", []).append(run.config.seed)
    names = join([f"{name} ({format_seeds(found)})" for name, found in seeds.items()])
    return (
        f"The agents of {len(old)} of {len(done)} runs were not kept, so they have no fresh"
        f" episodes: their last evaluation counts, and they have no best agent. These are, with"
        f" their seeds, {names}."
    )


def _together_section(runs: CompletedRuns) -> ExperimentResult | None:
    """Return scores over all games, of the learners that have runs in each; None for one game."""
    games = [game for game in runs.games if game in PAPER_GAMES]
    if len(games) < 2:
        return None
    by_game = [runs.by_learner(game) for game in games]
    everywhere = [name for name in by_game[0] if all(name in groups for groups in by_game)]
    sheets, numbers = [], {}
    for limit in _limits(runs):
        scores = [_scores(runs, game, limit) for game in games]
        rows, means = [], {}
        for name in everywhere:
            tasks = [each[name] for each in scores]
            found = {of: across_tasks(tasks, of) for of in STATISTICS}
            counts = ", ".join(str(len(task)) for task in tasks)
            rows.append((name, counts, *map(str, found.values())))
            means[name] = found["mean"].mean
            numbers[f"limit {limit}, {name}"] = {
                of: estimate_as_dict(each) for of, each in found.items()
            }
        note = "No learner has runs in every game yet."
        if means:
            best = max(means, key=means.__getitem__)
            note = f"The largest mean score is that of {best} ({means[best]:.2f})."
        columns = ("learner", f"runs in {join(games)}", *STATISTICS)
        sheets.append(Sheet(f"Scores at team limit {limit}", columns, rows, note))
    text = (
        "A score is 0 for the mean return of our untrained networks in a game and 1 for the paper's"
        " largest mean return there, at the same team limit. All games have the same weight; the"
        " optimality gap is the mean shortfall below 1. Intervals are by the bootstrap over runs,"
        f" stratified by game, if every game has at least {MIN_BOOTSTRAP} runs. The paper has no"
        " such scores."
    )
    return ExperimentResult(sheets, notes=[text], numbers=numbers)


def _scores(runs: CompletedRuns, game: str, team_limit: int) -> dict[str, list[float]]:
    """Return the final returns in a game on a scale from untrained (0) to the paper's best (1)."""
    groups = runs.by_learner(game).values()
    untrained = [each for group in groups for each in runs.returns_at(group, 0, team_limit)]
    papers = [_papers(game, name, team_limit) for name in PAPER_LEARNERS]
    top = max(paper.mean for paper in papers if paper is not None)
    start = float(np.mean(untrained))
    return {
        name: [(value - start) / (top - start) for value in values]
        for name, values in final_returns(runs, game, team_limit).items()
    }


def _protocol(runs: CompletedRuns) -> Sheet:
    """Return how the numbers were made, before any of them."""
    configs = {job.config.game: job.config for job in runs.jobs}
    first, done = runs.jobs[0].config, [run for group in runs.groups.values() for run in group]
    episodes = sorted({int(row["episodes"]) for run in done for row in run.evaluations})
    versions = {game: registry.games[game].version for game in configs}
    limits = ", ".join(map(str, first.evaluation.team_limits))
    seeds = format_seeds({job.config.seed for job in runs.jobs})
    rows = (
        ("games", join([f"{game} (version {number})" for game, number in versions.items()])),
        ("rules", join(list(dict.fromkeys(job.config.rules for job in runs.jobs)))),
        ("teammates", "all types of the game's pool" if first.types is None else "some types"),
        ("team limit", f"{first.team_limit} in training; {first.team_limit}, {limits} in tests"),
        ("steps", join([f"{each.steps:,} in {game}" for game, each in configs.items()])
         + f", in {first.training.num_envs} parallel environments"),
        ("seeds", f"{seeds} of each learner in each game; the paper has {PAPER_SEEDS} runs. The"
         " last table says which are done"),
        ("evaluation in training", f"every {first.checkpoint_every:,} steps, by the greedy policy,"
         f" in {' or '.join(map(str, episodes))} episodes at each team limit"),
        ("estimator", f"{runs.options.chosen_estimator}; the paper's is legacy"),
        ("last agent", f"that of the end of training, in {FRESH_EPISODES} fresh episodes (seed"
         f" {FRESH_SEED}, which neither training nor evaluation uses)"),
        ("best agent", "that of the run's own best evaluation at the team limit of training, in"
         " the same fresh episodes, so that having been chosen does not make it look better"),
        ("table 2", "as in the paper, the checkpoint with the best mean over the runs of a learner,"
         " and its evaluation in training"),
        ("intervals", "95 % over runs: Student's t for means, the bias-corrected bootstrap for"
         " interquartile means, the percentile bootstrap for comparisons"),
        ("test", "Welch's t-test, two-sided, p below 0.05 against each single-agent baseline"),
    )  # fmt: skip
    return Sheet("Protocol", ("what", "how"), rows)


def _records(runs: CompletedRuns) -> list[PlainDict]:
    """Return the final evaluations of all runs as rows of one table."""
    records = []
    for group in runs.groups.values():
        for run in group:
            about = RunDirectory(run.path).ran_on()
            versions = about["versions"] or {}
            own = {
                "game": run.config.game,
                "game_version": run.config.game_version,
                "rules": run.config.rules,
                "learner": run.config.learner,
                "seed": run.config.seed,
                "identity": identity(run.config),
            }
            made = {name: versions.get(name, "") for name in VERSIONS}
            made["machine"] = about["machine"] or "not recorded"
            records += [own | row | made for row in _final_rows(runs, run)]
    return records


def _final_rows(runs: CompletedRuns, run: StoredRun) -> list[PlainDict]:
    """Return the final evaluations of a run, of every agent, team limit and kind of teammates."""
    rows = []
    for teammates in run.config.evaluation.teammates:
        for limit in _limits(runs):
            for agent in AGENTS:
                found = final_row(run, agent, limit, teammates)
                if found is not None:
                    kind = {"agent": agent, "fresh": "agent" in found}
                    rows.append(kind | {name: found.get(name, "") for name in MEASURED})
    return rows
