"""Evaluate trained agents."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from dropin.cli.show import show_table
from dropin.config import given


def evaluate(
    who: Annotated[Positional[str], arg(metavar="WHO")],
    game: str | None = None,
    rules: str | None = None,
    team_limit: int | None = None,
    types: tuple[str, ...] | None = None,
    partners: bool = False,
    episodes: int = 800,
    policy: str = "greedy",
    estimator: str = "fixed",
    seed: int = 0,
) -> None:
    """Play many episodes and print the mean return with its 95 % interval.

    What is not given of rules, team limit and types is as in the run, as are the changes of its
    game. Over several runs the interval is over runs, otherwise over episodes.

    Args:
        who: A run's directory, one that holds several runs, an agent's file, random, or a type.
        game: Name of the game, for random or a type.
        rules: paper or reference.
        team_limit: Most agents at a time, the learner included.
        types: Teammates are drawn from these; from all of the game's if not given.
        partners: Teammates are agents like itself, instead of types.
        episodes: How many, in each run.
        policy: greedy, or sampled for an agent whose policy can be drawn from.
        estimator: fixed, or legacy for the authors' stopping rule, which favours short episodes.
        seed: The same seed gives the same episodes.
    """
    from dropin.evaluation.evaluate import evaluate as play_episodes
    from dropin.evaluation.statistics import Estimate, estimate
    from dropin.training.directory import run_environment, runs_in, runs_of_a_kind

    options = given(rules=rules, team_limit=team_limit, types=types)
    how = {"policy": policy, "episodes": episodes, "estimator": estimator, "seed": seed}
    laws, limit = rules or "paper", 3 if team_limit is None else team_limit
    rows = []

    def add(name: str, number: int, mean: Estimate, unshaped: float | None) -> None:
        numbers = [str(limit), str(number), f"{mean.mean:.2f}", mean.interval]
        rows.append((name, laws, policy, *numbers, "" if unshaped is None else f"{unshaped:.2f}"))

    runs = runs_of_a_kind(Path(who)) if runs_in(Path(who)) else []
    means, plain, number = [], [], 0
    for each in runs or [who]:
        if isinstance(each, Path):
            env, config = run_environment(each, game, **options)
            laws, limit = rules or config.rules, int(env.team.limit)
            result = play_episodes(each, env, partners=partners, **how)
        else:
            result = play_episodes(each, game, partners=partners, **how, **options)
        means.append(result.mean)
        number += result.returns.size
        shaped = result.unshaped is not None
        plain.append(result.estimate(unshaped=True).mean if shaped else None)
        add(str(each), result.returns.size, result.estimate(), plain[-1])
    if len(means) > 1:
        known = [each for each in plain if each is not None]
        unshaped = sum(known) / len(known) if len(known) == len(plain) else None
        add(f"all {len(means)} runs", number, estimate(means), unshaped)
    columns = ["who", "rules", "policy", "team limit", "episodes", "return", "95 % interval"]
    if any(each is not None for each in plain):
        columns.append("unshaped")
    show_table(columns, [each[: len(columns)] for each in rows], numbers=len(columns) - 3)
