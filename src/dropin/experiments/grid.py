"""Grids of runs: which games, learners, seeds and settings an experiment needs."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dropin.errors import InputError
from dropin.training.config import EvaluationConfig, RunConfig, run_config

GAMES = ("lbf", "wolfpack", "fortattack")
ALONE = ("gpl-q", "gpl-spi", "ql", "ql-am", "gnn", "gnn-am")
JOINT = ("dgn", "maddpg")
SINGLE = ("ql", "ql-am", "gnn", "gnn-am")
"""The single-agent baselines, with which the paper's asterisks compare."""
SEEDS = 8
"""How many the paper has."""


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
    """Settings of a game that differ from its rules."""

    def runs(
        self,
        rules: str = "paper",
        *,
        seeds: int | None = None,
        steps: int | None = None,
        scale: float = 1.0,
        games: Sequence[str] | None = None,
        learners: Sequence[str] | None = None,
    ) -> list[RunConfig]:
        """The settings of all runs, those of one game and learner one after another."""
        chosen = [each for each in self.games if games is None or each in games]
        which = [each for each in self.learners if learners is None or each in learners]
        if not chosen or not which:
            raise InputError(
                f"Nothing is left of the grid: it has {', '.join(self.games)} and"
                f" {', '.join(self.learners)}."
            )
        return [
            scaled(self._run(game, learner, seed, rules, steps), scale)
            for game in chosen
            for learner in which
            for seed in range(self.seeds if seeds is None else seeds)
        ]

    def _run(self, game: str, learner: str, seed: int, rules: str, steps: int | None) -> RunConfig:
        limits = tuple(each for each in self.test_limits if each != self.team_limit)
        return run_config(
            game,
            learner,
            seed=seed,
            rules=rules,
            steps=steps,
            team_limit=self.team_limit,
            types=self.types.get(game),
            changes=self.changes.get(game),
            evaluation=EvaluationConfig(team_limits=limits),
        )


def scaled(config: RunConfig, scale: float) -> RunConfig:
    """The same with a share of the steps: exploration and checkpoints are shortened alike.

    So a short run has as many checkpoints as a long one. Nothing else changes.
    """
    if not 0 < scale <= 1:
        raise InputError(f"The scale {scale:g} is out of range: it is above 0 and at most 1.")
    if scale == 1:
        return config

    def share(steps: int) -> int:
        """In whole updates, at least one."""
        each = config.steps_per_update
        return max(round(steps * scale / each), 1) * each

    def shorter(schedule: Any) -> Any:
        return dataclasses.replace(
            schedule, steps=share(schedule.steps), every=min(schedule.every, share(schedule.every))
        )

    training = config.training
    return dataclasses.replace(
        config,
        steps=share(config.steps),
        checkpoint_every=share(config.checkpoint_every),
        log_every=share(config.log_every),
        training=dataclasses.replace(
            training,
            epsilon=shorter(training.epsilon),
            temperature=shorter(training.temperature),
        ),
    )
