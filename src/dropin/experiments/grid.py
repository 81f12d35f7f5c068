"""Grids of runs: which games, learners, seeds and settings an experiment needs."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dropin.config import merge
from dropin.errors import InputError
from dropin.evaluation.evaluate import LEGACY_ENVS
from dropin.experiments.choices import Choices
from dropin.training.config import EvaluationConfig, RunConfig, run_config

GAMES = ("lbf", "wolfpack", "fortattack")
GPL = ("gpl-q", "gpl-spi")
SINGLE = ("ql", "ql-am", "gnn", "gnn-am")
"""The single-agent baselines, with which the paper's asterisks compare."""
JOINT = ("dgn", "maddpg")
ALONE = GPL + SINGLE
SEEDS = 8
"""How many the paper has."""
LEAST_SEEDS, LEAST_CHECKPOINTS = 2, 10
"""What a small version has at least."""


@dataclass(frozen=True)
class Grid:
    """Runs that differ in game, learner and seed, and in nothing else."""

    games: tuple[str, ...] = GAMES
    learners: tuple[str, ...] = ALONE
    seeds: int = SEEDS
    team_limit: int = 3
    test_limits: tuple[int, ...] = (5,)
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The types of a game that are drawn from; all if it is not there."""
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What `dropin.make` gets besides, by game."""

    def runs(self, choices: Choices) -> list[RunConfig]:
        """The settings of all runs, those of one game and learner one after another.

        There are none if no game, or no learner, is chosen that the grid has.
        """
        games = [each for each in self.games if choices.games is None or each in choices.games]
        which = choices.learners
        learners = [each for each in self.learners if which is None or each in which]
        return [
            self._run(game, learner, seed, choices)
            for game in games
            for learner in learners
            for seed in range(self._seeds(choices))
        ]

    def _seeds(self, choices: Choices) -> int:
        """In a small version fewer, but at least two where there are several."""
        if choices.seeds is not None:
            return choices.seeds
        return min(self.seeds, max(LEAST_SEEDS, round(self.seeds * choices.scale)))

    def _run(self, game: str, learner: str, seed: int, choices: Choices) -> RunConfig:
        limits = tuple(each for each in self.test_limits if each != self.team_limit)
        config = run_config(
            game,
            learner,
            seed=seed,
            rules=choices.rules,
            team_limit=self.team_limit,
            types=self.types.get(game),
            changes=self.changes.get(game),
            evaluation=EvaluationConfig(team_limits=limits),
        )
        share = choices.scale if choices.steps is None else choices.steps / config.steps
        config = config if share == 1 else scaled(config, share)
        if not choices.settings:
            return config
        return RunConfig.from_dict(merge(config.as_dict(), choices.settings))


def scaled(config: RunConfig, scale: float) -> RunConfig:
    """The same with a share of the steps, and exploration shortened alike.

    A shorter run has fewer checkpoints too, but at least ten, and each is evaluated as shortly as
    the authors did: otherwise evaluations would take most of the time. Nothing else changes.
    """
    if not scale > 0:
        raise InputError(f"The scale {scale:g} is out of range: it is above 0.")
    each = config.steps_per_update

    def share(steps: int, scale: float = scale) -> int:
        """In whole updates, at least one."""
        return max(round(steps * scale / each), 1) * each

    def shorter(schedule: Any) -> Any:
        return dataclasses.replace(
            schedule, steps=share(schedule.steps), every=min(schedule.every, share(schedule.every))
        )

    training, steps, watched = config.training, share(config.steps), config.evaluation
    number = config.steps / config.checkpoint_every
    number = min(number, max(LEAST_CHECKPOINTS, number * scale))
    return dataclasses.replace(
        config,
        steps=steps,
        checkpoint_every=share(steps, 1 / number),
        log_every=share(config.log_every),
        evaluation=dataclasses.replace(watched, envs=min(watched.envs, LEGACY_ENVS)),
        training=dataclasses.replace(
            training,
            epsilon=shorter(training.epsilon),
            temperature=shorter(training.temperature),
        ),
    )
