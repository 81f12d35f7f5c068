"""The command that evaluates trained agents, types and chance."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from dropin.cli.show import show_table
from dropin.core.config import not_none

if TYPE_CHECKING:
    from dropin.evaluation.evaluate import Evaluation

__all__ = ["evaluate"]

COLUMNS = ("who", "rules", "mode", "team limit", "episodes", "return", "95 % interval", "unshaped")
NUM_TEXT_COLUMNS = 3
"""The first columns, which hold no numbers."""


def evaluate(
    who: Annotated[Positional[str], arg(metavar="WHO")],
    game: str | None = None,
    rules: str | None = None,
    team_limit: int | None = None,
    types: tuple[str, ...] | None = None,
    openness: str | None = None,
    type_changes: Path | None = None,
    partners: bool = False,
    episodes: int = 800,
    mode: str = "greedy",
    estimator: str = "fixed",
    seed: int = 0,
) -> None:
    """Play many episodes and print the mean return with its 95 % interval.

    A trained agent plays in the environment of its run; options that are given here take
    precedence. Over several runs the interval is over runs, otherwise over episodes.

    Args:
        who: A trained agent's name, see `dropin zoo list`, its file, a run's directory, one that
            holds several runs, random, or a type.
        game: Name of the game, for random or a type.
        rules: Name of a preset, see `dropin games`.
        team_limit: Most agents at a time, the learner included.
        types: Teammates are drawn from these, see `dropin types`.
        openness: Name of an openness, see `dropin games`, or a TOML file with a table [openness].
        type_changes: A TOML file with a table [type_changes]: teammates change their type.
        partners: Teammates are agents like itself, instead of types.
        episodes: Number of episodes, in each run.
        mode: How an agent chooses actions: greedy, or sampled if it has a distribution.
        estimator: fixed, or legacy for the authors' stopping rule, which favours short episodes.
        seed: The same seed gives the same episodes.
    """
    from dropin.agents import agent_path
    from dropin.evaluation.evaluate import evaluate as run_evaluation
    from dropin.evaluation.evaluate import names_agent
    from dropin.training.run_directory import run_env, runs_in
    from dropin.training.sets_of_runs import runs_of_one_kind

    options = not_none(
        rules=rules,
        team_limit=team_limit,
        types=types,
        openness=openness,
        type_changes=type_changes,
    )
    how = {
        "partners": partners,
        "mode": mode,
        "episodes": episodes,
        "estimator": estimator,
        "seed": seed,
    }
    results = _Results(mode)
    path = agent_path(who) if names_agent(who) else Path(who)
    for run in runs_of_one_kind(path) if runs_in(path) else []:
        env, config = run_env(run, game, **options)
        evaluation = run_evaluation(run, env, **how)
        shown = who if path != Path(who) else str(run)
        results.add(shown, rules or config.rules, int(env.team.limit), evaluation)
    if not results.evaluations:
        evaluation = run_evaluation(who, game, **how, **options)
        used = rules or _default_rules(who, game)
        results.add(who, used, 3 if team_limit is None else team_limit, evaluation)
    results.show()


@dataclass
class _Results:
    """The evaluations of one or several runs, as rows of a table."""

    mode: str
    evaluations: list["Evaluation"] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, who: str, rules: str, limit: int, evaluation: "Evaluation") -> None:
        """Add a row."""
        mean = evaluation.estimate()
        self.evaluations.append(evaluation)
        numbers = (str(limit), str(evaluation.returns.size), f"{mean.mean:.2f}", mean.interval)
        self.rows.append((who, rules, self.mode, *numbers, _number(_unshaped_mean(evaluation))))

    def show(self) -> None:
        """Print the table, with a last row for all runs if there are several."""
        from dropin.evaluation.statistics import estimate

        unshaped = [_unshaped_mean(each) for each in self.evaluations]
        known = [each for each in unshaped if each is not None]
        rows = list(self.rows)
        if len(self.evaluations) > 1:
            _, rules, mode, limit, *_ = rows[0]
            mean = estimate([each.mean for each in self.evaluations])
            size = sum(each.returns.size for each in self.evaluations)
            over_all = sum(known) / len(known) if len(known) == len(unshaped) else None
            name = f"all {len(self.evaluations)} runs"
            numbers = (limit, str(size), f"{mean.mean:.2f}", mean.interval, _number(over_all))
            rows.append((name, rules, mode, *numbers))
        columns = COLUMNS if known else COLUMNS[:-1]
        cells = [row[: len(columns)] for row in rows]
        show_table(columns, cells, numbers=len(columns) - NUM_TEXT_COLUMNS)


def _default_rules(who: str, game: str | None) -> str:
    """Return the default rules of a game, which is that of the agent if it is not given."""
    from dropin.agents import load_agent
    from dropin.core import registry

    return next(iter(registry.games[game or load_agent(who).interface.game].rules))


def _unshaped_mean(evaluation: "Evaluation") -> float | None:
    """Return the mean return without shaping; None if the game has no shaping."""
    return None if evaluation.unshaped is None else evaluation.estimate(unshaped=True).mean


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
