"""Evaluate trained agents."""

from pathlib import Path

from tyro.conf import Positional

from dropin.cli.show import show_table
from dropin.errors import InputError


def evaluate(
    who: Positional[str],
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

    Rules and team limit are those of the run if they are not given. Over several runs the
    interval is over runs, otherwise over episodes.

    Args:
        who: A run's directory, one that holds several runs, an agent's file, random, or a type.
        game: Name of the game, for random or a type.
        rules: paper or reference.
        team_limit: Most agents at a time, the learner included.
        types: Teammates are drawn from these; from all of the game's if not given.
        partners: Teammates are agents like itself, instead of types.
        episodes: How many, in each run.
        policy: greedy, or sampled for an agent with a Boltzmann policy.
        estimator: fixed, or legacy for the authors' stopping rule, which favours short episodes.
        seed: The same seed gives the same episodes.
    """
    from dropin.evaluation.evaluate import evaluate as play_episodes
    from dropin.evaluation.statistics import Estimate, estimate
    from dropin.training.directory import RunDirectory, runs_in

    rows = []
    laws, limit, pool = rules or "paper", team_limit or 3, types

    def add(name: str, number: int, mean: Estimate, unshaped: float | None) -> None:
        numbers = [str(limit), str(number), f"{mean.mean:.2f}", mean.interval]
        rows.append((name, laws, policy, *numbers, "" if unshaped is None else f"{unshaped:.2f}"))

    runs = runs_in(Path(who))
    means, plain, number = [], [], 0
    for each in runs or [who]:
        if isinstance(each, Path):
            config = RunDirectory(each).config()
            if config.own_environment:
                raise InputError(
                    f"{each} was trained in an environment of its own: evaluate it from Python."
                )
            laws, limit = rules or config.rules, team_limit or config.team_limit
            pool = types or config.types
        result = play_episodes(
            each,
            game,
            policy=policy,
            episodes=episodes,
            estimator=estimator,
            seed=seed,
            rules=laws,
            team_limit=limit,
            types=pool,
            partners=partners,
        )
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
