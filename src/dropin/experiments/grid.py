"""Grids of runs: which games, learners, seeds and settings an experiment needs."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dropin.config import merge
from dropin.errors import InputError
from dropin.evaluation.evaluate import LEGACY_ENVS, LEGACY_EPISODES
from dropin.experiments.choices import Choices
from dropin.learners import find
from dropin.training.config import EvaluationConfig, RunConfig, run_config

GAMES = ("lbf", "wolfpack", "fortattack")
GPL = ("gpl-q", "gpl-spi")
SINGLE = ("ql", "ql-am", "gnn", "gnn-am")
"""The single-agent baselines, with which the paper's asterisks compare."""
JOINT = ("dgn", "maddpg")
ALONE = GPL + SINGLE
LEARNERS = ALONE + JOINT
"""In the order of the paper."""
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
    others: Literal["none", "all", "joint"] = "none"
    """Which learners that are not the paper's can be chosen as well."""
    later: tuple[int, ...] = ()
    """More team limits that the trained agents have to play at."""

    def runs(self, choices: Choices) -> list[RunConfig]:
        """The settings of all runs, those of one game and learner one after another.

        There are none if no game, or no learner, is chosen that the grid has.
        """
        games = [each for each in self.games if choices.games is None or each in choices.games]
        which = choices.learners
        learners = [each for each in self.learners if which is None or each in which]
        learners += [each for each in which or () if self._admits(each)]
        return [
            self._run(game, learner, seed, choices)
            for game in games
            for learner in learners
            for seed in range(self._seeds(choices))
        ]

    def _admits(self, learner: str) -> bool:
        """Whether a learner of somebody's own can be in the grid."""
        if learner in LEARNERS or self.others == "none":
            return False
        return self.others == "all" or find(learner).joint

    def _seeds(self, choices: Choices) -> int:
        """In a small version fewer, but at least two where there are several."""
        if choices.seeds is not None:
            return choices.seeds
        return min(self.seeds, max(LEAST_SEEDS, round(self.seeds * choices.scale)))

    def _run(self, game: str, learner: str, seed: int, choices: Choices) -> RunConfig:
        limits = tuple(each for each in self.test_limits if each != self.team_limit)
        most = max(self.team_limit, *limits, *self.later, 0)
        places = getattr(find(learner).config(game), "places", most)
        config = run_config(
            game,
            learner,
            places=most if places < most else None,
            seed=seed,
            rules=choices.rules,
            team_limit=self.team_limit,
            types=self.types.get(game),
            changes=self.changes.get(game),
            evaluation=EvaluationConfig(team_limits=limits),
        )
        share = choices.scale if choices.steps is None else choices.steps / config.steps
        config = config if share == 1 else scaled(config, share)
        if choices.settings:
            config = RunConfig.from_dict(merge(config.as_dict(), choices.settings))
        watched = config.evaluation
        few = watched.envs < LEGACY_ENVS or watched.episodes < LEGACY_EPISODES
        if few and choices.estimated == "legacy":
            raise InputError(
                f"The legacy estimator takes {LEGACY_EPISODES} episodes of {LEGACY_ENVS}"
                " environments in every evaluation: give --estimator fixed for fewer."
            )
        return config


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
