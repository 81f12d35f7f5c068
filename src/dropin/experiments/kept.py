"""Finished runs as they are kept in the repository: small tables, no checkpoints, few agents.

run.json            settings, versions and machine of the run
evaluation.csv      returns of the greedy policy at every checkpoint
fresh.csv           returns of the last and of the best agent in fresh episodes
analyses.json       results of analyses of its agents, for runs that experiments analyse
agent.safetensors   the best agent, of one run of each kind
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from dropin._xla.cache import use_cache
from dropin.agents import AGENT_FILE
from dropin.core.config import PlainDict, PlainMapping, misfit
from dropin.core.errors import InputError
from dropin.core.files import read_json, write, write_json
from dropin.evaluation.curves import Row, select_rows
from dropin.experiments.analyses import ANALYSES, KeptAnalyses
from dropin.experiments.planning import StoredRun, identity
from dropin.training.config import STRANGERS, RunConfig
from dropin.training.evaluator import Evaluator
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import write_table

__all__ = [
    "FRESH_EPISODES",
    "FRESH_SEED",
    "final_row",
    "find_failures",
    "fresh_evaluations",
    "keep_analyses",
    "kept_name",
    "publish",
    "write_failure",
]


class _Failure(TypedDict):
    identity: str
    reason: str


FRESH_SEED = 1_000_003
"""The seed of the fresh episodes: no run is trained or evaluated with it."""
FRESH_ENVS, FRESH_EPISODES = 80, 400
"""Parallel environments, and episodes in all: whole rounds of the authors' estimator."""
FAILURE = "failure.json"
DECIMALS = 4


def kept_name(config: RunConfig) -> Path:
    """Return where a run is kept, as `lbf-gpl-q-reference/seed-0`.

    Args:
        config: The settings of the run. Whatever differs from those of table 2 is in the name.
    """
    words = [config.game, config.learner, config.rules]
    if config.team_limit != RunConfig.team_limit:
        words.append(f"limit-{config.team_limit}")
    words += config.types or ()
    words += [f"{name}-{value}" for name, value in sorted(config.game_settings.items())]
    words += _dynamics_words(config.openness) + _dynamics_words(config.type_changes)
    name = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(words))
    return Path(name) / f"seed-{config.seed}"


def _dynamics_words(given: str | PlainMapping | None) -> list[str]:
    """Return the words of a name for an openness or type changes."""
    if given is None or isinstance(given, str):
        return [given] if given else []
    text = json.dumps(given, sort_keys=True)
    return [given["kind"], hashlib.sha256(text.encode()).hexdigest()[:8]]


def fresh_evaluations(run: StoredRun) -> list[PlainDict]:
    """Evaluate the last and the best agent of a finished run in fresh episodes.

    The best agent is that of `StoredRun.best_step`. Choosing it among many noisy evaluations makes
    its own evaluation too high; fresh episodes do not have this bias.

    Args:
        run: The run.

    Returns:
        Rows like those of `evaluation.csv`, with `last` or `best` in the column `agent`; none for
        an agent that is not stored.
    """
    if FRESH_SEED in (run.config.seed, run.config.evaluation.seed):
        raise InputError(f"{run.path} used the seed {FRESH_SEED}, so no episode of it is fresh.")
    use_cache()
    episodes = FRESH_EPISODES // FRESH_ENVS
    how = dataclasses.replace(
        run.config.evaluation, num_envs=FRESH_ENVS, episodes=episodes, seed=FRESH_SEED
    )
    evaluator = Evaluator(dataclasses.replace(run.config, evaluation=how))
    steps = {"last": run.final_step, "best": run.best_step}
    stored = set(steps.values()) & set(RunDirectory(run.path).steps_with_agent())
    rows = {step: list(evaluator.rows(run.agent(step), step)) for step in sorted(stored)}
    return [{**row, "agent": agent} for agent, step in steps.items() for row in rows.get(step, ())]


def publish(run: StoredRun, results: Path, *, with_agent: bool = False) -> Path:
    """Keep a finished run: write its small tables, evaluated in fresh episodes.

    A run of the same settings that is kept already is replaced if this is another training of it.

    Args:
        run: The run.
        results: The directory of all kept runs.
        with_agent: Keep its best agent too, unless that of another seed is kept.

    Returns:
        The directory in which the run is kept.

    Raises:
        InputError: If another run is kept there.
    """
    directory = results / kept_name(run.config)
    files = RunDirectory(directory)
    if files.exists:
        if identity(files.config()) != run.identity:
            raise InputError(f"{directory} holds a run of other settings than {run.path}.")
        if _is_same_training(StoredRun(directory, run.config), run):
            (directory / FAILURE).unlink(missing_ok=True)
            return directory
        # From here on it is incomplete, until run.json is written again.
        (directory / "run.json").unlink()
        for name in (ANALYSES, AGENT_FILE):
            (directory / name).unlink(missing_ok=True)
    if fresh := fresh_evaluations(run):
        write_table(directory / "fresh.csv", [_thin(row) for row in fresh])
    write_table(directory / "evaluation.csv", _thin_evaluations(run))
    if with_agent and not any(directory.parent.glob(f"*/{AGENT_FILE}")):
        write(files.agent, RunDirectory(run.path).agent_at(run.best_step).read_bytes())
    about = read_json(run.path / "run.json")
    # Written last: a directory with this file is complete.
    write_json(directory / "run.json", {name: about[name] for name in about if name != "keep"})
    (directory / FAILURE).unlink(missing_ok=True)
    return directory


def keep_analyses(
    run: StoredRun, experiment: str, used: Mapping[str, PlainDict], results: Path
) -> None:
    """Keep the results of an experiment's analyses with a kept run.

    Args:
        run: The run, which is kept.
        experiment: Name of the experiment.
        used: The results that it has used, see `AnalysisCache.used`.
        results: The directory of all kept runs.
    """
    directory = results / kept_name(run.config)
    kept = KeptAnalyses.read(directory)
    if experiment not in kept.experiments:
        kept.with_results(experiment, used).write(directory)


def write_failure(config: RunConfig, reason: str, results: Path) -> None:
    """Keep the reason why a run failed, until the run is done.

    Args:
        config: The settings of the run.
        reason: The reason, a sentence.
        results: The directory of all kept runs.
    """
    about = {"identity": identity(config), "reason": reason}
    write_json(results / kept_name(config) / FAILURE, about)


def find_failures(roots: Sequence[Path]) -> dict[str, str]:
    """Find why runs failed.

    Args:
        roots: Where to search.

    Returns:
        The reasons, by the identity of the run.
    """
    files = [file for root in roots for file in sorted(root.rglob(FAILURE))]
    found = {}
    for file in files:
        failure = read_json(file)
        if expected := misfit(failure, _Failure):
            raise InputError(f"{file} is damaged: it is not {expected}.")
        found[failure["identity"]] = failure["reason"]
    return found


def final_row(
    run: StoredRun, agent: str, team_limit: int, teammates: str = STRANGERS
) -> Row | None:
    """Return the final evaluation of a kept run: in fresh episodes, if it has them.

    Args:
        run: The run.
        agent: `last` or `best`.
        team_limit: The team limit of the evaluation.
        teammates: Whom the agent played with, `strangers` or `partners`.

    Returns:
        The row. Without fresh episodes it is that of the last checkpoint for the last agent, and
        None for the best one: its own evaluation is too high, because it was chosen by it.
    """
    fresh = select_rows(
        run.fresh_evaluations, team_limit=team_limit, mode="greedy", teammates=teammates
    )
    found = [row for row in fresh if row["agent"] == agent]
    if not found and agent == "last":
        rows = run.greedy_evaluations(team_limit, teammates)
        found = [row for row in rows if int(row["step"]) == run.final_step]
    return found[0] if found else None


def _thin_evaluations(run: StoredRun) -> list[PlainDict]:
    """Return the evaluations that are kept of a run."""
    return [_thin(row) for row in run.evaluations if row["mode"] == "greedy"]


def _is_same_training(kept: StoredRun, run: StoredRun) -> bool:
    """Return whether a kept run was made from another one, by their evaluations."""
    return list(map(_thin, kept.evaluations)) == _thin_evaluations(run)


def _thin(row: PlainDict | Row) -> PlainDict:
    """Return a row with numbers of few decimals."""
    return {name: _rounded(value) for name, value in row.items()}


def _rounded(value: object) -> object:
    try:
        number = float(str(value))
    except ValueError:
        return value
    return int(number) if number.is_integer() else round(number, DECIMALS)
