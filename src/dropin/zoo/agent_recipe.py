"""How a trained agent of the zoo is made: a run, a measurement in fresh episodes, and a card."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from dropin.agents import Agent, load_agent
from dropin.core import registry
from dropin.core.config import PlainDict, misfit
from dropin.core.errors import InputError, shown
from dropin.core.files import file_checksum, read_arrays, read_json
from dropin.evaluation.evaluate import Evaluation, evaluate
from dropin.policies import RANDOM
from dropin.training.config import NOT_IDENTITY, RunConfig, run_config
from dropin.training.loop import resume_run
from dropin.training.provenance import versions
from dropin.training.run_directory import RunDirectory
from dropin.training.sets_of_runs import differences_of_runs
from dropin.zoo import AGENT_RECIPES
from dropin.zoo.recipe import Measurement

__all__ = [
    "EPISODES",
    "FRESH_SEED",
    "TEAM_LIMITS",
    "agent_config",
    "check_finished",
    "fresh_seed",
    "make_agent_card",
    "measure_agent",
    "train_agent",
]

RULES = "reference"
"""The rules that agents are trained with: published returns are of these."""
TEAM_LIMITS = (3, 5)
"""The team limits at which agents are measured, as in the paper; they are trained at the first."""
EPISODES = 400
"""Episodes at each team limit."""
FRESH_SEED = 7000
"""Seed of the episodes on a card, unless training has used it."""


def agent_config(name: str, seed: int = 0) -> RunConfig:
    """Return the settings of the run that trains an agent: the paper's.

    Args:
        name: `game/name`, one of `AGENT_RECIPES`.
        seed: The seed of training.
    """
    game, learner = AGENT_RECIPES[name]
    train_limit, *test_limits = TEAM_LIMITS
    evaluation = {"team_limits": tuple(test_limits)}
    return run_config(
        game, learner, rules=RULES, team_limit=train_limit, seed=seed, evaluation=evaluation
    )


def train_agent(name: str, directory: Path, seed: int = 0) -> None:
    """Train an agent to the end; a run that was stopped continues.

    Args:
        name: `game/name`, one of `AGENT_RECIPES`.
        directory: The run's directory.
        seed: The same seed gives the same agent.

    Raises:
        InputError: If the directory holds something else.
    """
    files, config = RunDirectory(directory), agent_config(name, seed)
    if files.exists:
        files.check_same(config)
    else:
        files.create(config)
    resume_run(directory)


def check_finished(name: str, run: Path) -> RunConfig:
    """Return the settings of a finished run; raise `InputError` if it is not one of the recipe.

    Settings that do not influence what is learned may differ.

    Args:
        name: `game/name`, one of `AGENT_RECIPES`.
        run: The run's directory.
    """
    files = RunDirectory(run)
    config = files.config()
    different = differences_of_runs([agent_config(name, config.seed), config], NOT_IDENTITY)
    if different:
        raise InputError(f"{run} is no run for {name}: {'; '.join(different)}.")
    step = _step_of(files.agent)
    if step < config.steps:
        raise InputError(
            f"{run} is at step {step:,} of {config.steps:,}: dropin train --resume {run}"
        )
    return config


def _step_of(agent: Path) -> int:
    """Return the step of an agent, given its file."""
    _, about = read_arrays(agent)
    step = about.get("step", 0)
    if misfit(step, int):
        raise InputError(f"{agent} is damaged: its step is {shown(step)}.")
    return step


def fresh_seed(config: RunConfig) -> int:
    """Return a seed for episodes that a run has not seen in training or at a checkpoint."""
    used = (config.seed, config.evaluation.seed)
    return next(seed for seed in count(FRESH_SEED) if seed not in used)


def measure_agent(agent: Agent, config: RunConfig, episodes: int, seed: int) -> list[Measurement]:
    """Measure the returns of an agent in every mode, beside a policy that acts at random.

    Each is what `dropin evaluate` prints with the same episodes and seed.

    Args:
        agent: The agent.
        config: The settings of its run.
        episodes: Number of episodes of each measurement.
        seed: Seed of the episodes.
    """
    found = []
    for limit in TEAM_LIMITS:
        env = config.make_env(team_limit=limit)
        for mode in agent.policy.modes:
            played = evaluate(agent, env, mode=mode, episodes=episodes, seed=seed)
            found += _measurements(f"{agent.learner}, {mode}", limit, config.rules, played)
        played = evaluate(RANDOM, env, episodes=episodes, seed=seed)
        found += _measurements(RANDOM, limit, config.rules, played)
    return found


def _measurements(policy: str, limit: int, rules: str, played: Evaluation) -> Iterator[Measurement]:
    where = f"at team limit {limit}, rules {rules}"
    yield Measurement(f"return {where}", policy, played.estimate())
    if played.unshaped is not None:
        unshaped = played.estimate(unshaped=True)
        yield Measurement(f"return without shaping {where}", policy, unshaped)


def make_agent_card(name: str, run: Path) -> PlainDict:
    """Measure the agent of a finished run and return its card, as it is written to JSON.

    Args:
        name: `game/name`, one of `AGENT_RECIPES`.
        run: The run's directory.
    """
    config, files = check_finished(name, run), RunDirectory(run)
    agent, seed = load_agent(files.agent), fresh_seed(config)
    return {
        "name": name,
        "summary": registry.learners[config.learner].summary,
        "method": (
            f"as in the paper, at team limit {config.team_limit} with the rules {config.rules}; the"
            " agent of the last checkpoint"
        ),
        "seed": config.seed,
        "rules": config.rules,
        "game_version": config.game_version,
        "command": f"dropin zoo train {name} --seed {config.seed}",
        "sha256": file_checksum(files.agent),
        "measurements": [each.to_dict() for each in measure_agent(agent, config, EPISODES, seed)],
        "measured": {
            "episodes": EPISODES,
            "seed": seed,
            "commands": [
                f"dropin evaluate {name} --team-limit {limit} --mode {mode}"
                f" --episodes {EPISODES} --seed {seed}"
                for limit in TEAM_LIMITS
                for mode in agent.policy.modes
            ],
            "versions": versions(),
        },
        "settings": config.to_dict(),
        "versions": read_json(run / "run.json").get("versions", {}),
    }
