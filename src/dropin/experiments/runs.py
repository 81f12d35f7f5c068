"""Which runs an experiment needs: the options of the user, and grids of games, learners, seeds."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dropin.core import registry
from dropin.core.config import PlainMapping, merge
from dropin.core.errors import InputError, unknown
from dropin.core.specs import check_rules
from dropin.evaluation.evaluate import LEGACY_ENVS, LEGACY_EPISODES
from dropin.learners.config import LinearSchedule
from dropin.training.config import PARTNERS, RunConfig, run_config
from dropin.training.tables import ESTIMATORS

__all__ = [
    "AD_HOC_LEARNERS",
    "GPL",
    "JOINT_LEARNERS",
    "PAPER_GAMES",
    "PAPER_LEARNERS",
    "PAPER_SEEDS",
    "SINGLE_AGENT_BASELINES",
    "TEST_LIMIT",
    "Grid",
    "Options",
    "room_for",
    "scaled",
]

PAPER_GAMES = ("lbf", "wolfpack", "fortattack")
GPL = ("gpl-q", "gpl-spi")
SINGLE_AGENT_BASELINES = ("ql", "ql-am", "gnn", "gnn-am")
"""The baselines that the asterisks of the paper's tables compare with."""
JOINT_LEARNERS = ("dgn", "maddpg")
AD_HOC_LEARNERS = GPL + SINGLE_AGENT_BASELINES
PAPER_LEARNERS = AD_HOC_LEARNERS + JOINT_LEARNERS
"""In the order of the paper."""
PAPER_SEEDS = 8
TEST_LIMIT = 5
"""The team limit of the paper's generalisation experiments."""
MIN_SEEDS, MIN_CHECKPOINTS = 2, 10
"""What a scaled-down experiment has at least."""


@dataclass(frozen=True)
class Options:
    """The options of an experiment; None means the default of the experiment."""

    rules: str = "paper"
    """The preset of the games."""
    seeds: int | None = None
    """Number of runs of each kind, from seed 0 on."""
    steps: int | None = None
    """Length of all runs, instead of a scale."""
    scale: float = 1.0
    """Length of all runs as a share of the paper's; seeds and checkpoints become fewer too."""
    games: tuple[str, ...] | None = None
    """Only these games."""
    learners: tuple[str, ...] | None = None
    """Only these learners."""
    split: str | None = None
    """For `held-out`: the name of a split, or types of training and of testing as `H1,H2/H3`."""
    team_limits: tuple[int, ...] | None = None
    """For `held-out`: the team limits of testing."""
    estimator: str | None = None
    """The estimator of returns, `fixed` or `legacy`; None is `legacy` under the rules `reference`
    and `fixed` otherwise."""
    settings: PlainMapping = field(default_factory=dict)
    """Changes to the settings of all runs, in the shape of `run.json`."""
    states: int = 24_000
    """For analyses: number of states to look at, at every checkpoint."""
    episodes: int = 320
    """Where trained agents are evaluated again: number of episodes of each agent."""

    def __post_init__(self) -> None:
        presets = [game.rules for game in registry.games.values()]
        check_rules(self.rules, {name: text for rules in presets for name, text in rules.items()})
        if not 0 < self.scale <= 1:
            raise InputError(f"The scale {self.scale:g} is out of range: above 0 and at most 1.")
        if self.steps is not None and self.scale != 1:
            raise InputError("Give steps or a scale, not both.")
        for name in ("seeds", "steps", "states", "episodes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"The number of {name} is {value}, but it has to be at least 1.")
        for limit in self.team_limits or ():
            if limit < 2:
                raise InputError(f"Team limit {limit} is too small: a team has at least 2 agents.")
        for game in self.games or ():
            registry.games[game]  # raises InputError if it is unknown
        for learner in self.learners or ():
            registry.learners[learner]
        if self.estimator is not None and self.estimator not in ESTIMATORS:
            raise unknown("estimator", self.estimator, ESTIMATORS)

    @property
    def is_small(self) -> bool:
        """Whether runs are shorter than the paper's."""
        return self.scale < 1 or self.steps is not None

    @property
    def small_notice(self) -> str:
        """The sentence that every output of a scaled-down experiment carries, or nothing."""
        if self.steps is not None:
            return f"A small version: runs of {self.steps:,} steps."
        return f"A small version: {self.scale:g} of the paper's steps." if self.is_small else ""

    @property
    def chosen_estimator(self) -> str:
        """The estimator of returns: the given one, or the default of the rules."""
        return self.estimator or ("legacy" if self.rules == "reference" else "fixed")

    @property
    def return_column(self) -> str:
        """The column of `evaluation.csv` that holds the returns by this estimator."""
        return ESTIMATORS[self.chosen_estimator]


@dataclass(frozen=True)
class Grid:
    """Runs that differ in game, learner and seed, and in nothing else."""

    games: tuple[str, ...] = PAPER_GAMES
    learners: tuple[str, ...] = AD_HOC_LEARNERS
    seeds: int = PAPER_SEEDS
    team_limit: int = 3
    """The team limit of training."""
    test_limits: tuple[int, ...] = (TEST_LIMIT,)
    """Other team limits to evaluate at, at every checkpoint."""
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By game, the types that teammates are drawn from; the default pool if it is not there."""
    game_settings: Mapping[str, PlainMapping] = field(default_factory=dict)
    """By game, further arguments of `dropin.make`."""
    extra_learners: Literal["none", "all", "partners"] = "none"
    """Which learners besides the paper's take part if the options name them: none, all, or those
    that are evaluated with partners."""
    extra_games: bool = False
    """Whether games besides the paper's take part if the options name them."""
    later_limits: tuple[int, ...] = ()
    """Team limits that trained agents will play at after the run, so that they need room for."""

    def chosen_games(self, options: Options) -> list[str]:
        """Return the games of the grid that the options leave, and extra ones they ask for."""
        chosen = [game for game in self.games if options.games is None or game in options.games]
        extra = [game for game in options.games or () if game not in PAPER_GAMES]
        return list(dict.fromkeys(chosen + (extra if self.extra_games else [])))

    def chosen_learners(self, options: Options) -> list[str]:
        """Return the learners of the grid that the options leave, and extra ones they ask for."""
        asked = options.learners
        chosen = [learner for learner in self.learners if asked is None or learner in asked]
        extra = [learner for learner in asked or () if self._admits(learner)]
        return list(dict.fromkeys(chosen + extra))

    def is_empty(self, options: Options) -> bool:
        """Return whether the options leave no run of the grid."""
        return not (self.chosen_games(options) and self.chosen_learners(options))

    def run_configs(self, options: Options) -> list[RunConfig]:
        """Return the configs of all runs; those of one game and learner follow one another."""
        return [
            self._run_config(game, learner, seed, options)
            for game in self.chosen_games(options)
            for learner in self.chosen_learners(options)
            for seed in range(self._num_seeds(options))
        ]

    def _admits(self, learner: str) -> bool:
        """Return whether a learner that is not the paper's can take part."""
        if learner in PAPER_LEARNERS or self.extra_learners == "none":
            return False
        return self.extra_learners == "all" or PARTNERS in registry.learners[learner].evaluate_with

    def _num_seeds(self, options: Options) -> int:
        if options.seeds is not None:
            return options.seeds
        return min(self.seeds, max(MIN_SEEDS, round(self.seeds * options.scale)))

    def _run_config(self, game: str, learner: str, seed: int, options: Options) -> RunConfig:
        test_limits = tuple(limit for limit in self.test_limits if limit != self.team_limit)
        largest = max(self.team_limit, *test_limits, *self.later_limits, 0)
        config = run_config(
            game,
            learner,
            seed=seed,
            rules=_rules_of(game, options),
            team_limit=self.team_limit,
            types=self.types.get(game),
            game_settings=self.game_settings.get(game),
            evaluation={"team_limits": test_limits},
            **room_for(largest, game, learner),
        )
        share = options.scale if options.steps is None else options.steps / config.steps
        config = config if share == 1 else scaled(config, share)
        if options.settings:
            config = RunConfig.from_dict(merge(config.to_dict(), options.settings))
        self._check_episodes(config, options)
        return config

    @staticmethod
    def _check_episodes(config: RunConfig, options: Options) -> None:
        evaluation = config.evaluation
        few = evaluation.num_envs < LEGACY_ENVS or evaluation.episodes < LEGACY_EPISODES
        if few and options.chosen_estimator == "legacy":
            raise InputError(
                f"The legacy estimator takes {LEGACY_EPISODES} episodes of {LEGACY_ENVS}"
                " environments in every evaluation: give --estimator fixed for fewer."
            )


def _rules_of(game: str, options: Options) -> str:
    """Return the rules of a run; a game without `paper`, the default, has its own default."""
    presets = registry.games[game].rules
    is_default = options.rules == Options.rules
    return next(iter(presets)) if is_default and options.rules not in presets else options.rules


def room_for(team_limit: int, game: str, learner: str) -> dict[str, int]:
    """Return the setting that gives a learner with an input of fixed length room for a team.

    Args:
        team_limit: The largest team limit that it will play at.
        game: Name of the game.
        learner: Name of the learner.

    Returns:
        The setting by its name; nothing if there is room enough, or no such input.
    """
    setting = "max_agents_per_side"
    settings = registry.learners[learner].default_settings(game)
    return {setting: team_limit} if getattr(settings, setting, team_limit) < team_limit else {}


def scaled(config: RunConfig, scale: float) -> RunConfig:
    """Return a shorter version of a run, with its exploration shortened in proportion.

    It has fewer checkpoints too, but at least ten, and evaluations are as short as the authors':
    otherwise they would take most of the time. Nothing else changes.

    Args:
        config: The run.
        scale: The share of its steps.

    Raises:
        InputError: If the scale is not above 0.
    """
    if not scale > 0:
        raise InputError(f"The scale {scale:g} is out of range: it has to be above 0.")
    per_update = config.steps_per_update

    def share(steps: int, scale: float = scale) -> int:
        """Return a share of some steps in whole updates, at least one."""
        return max(round(steps * scale / per_update), 1) * per_update

    def shorter(schedule: LinearSchedule) -> LinearSchedule:
        return dataclasses.replace(
            schedule,
            num_steps=share(schedule.num_steps),
            update_every=min(schedule.update_every, share(schedule.update_every)),
        )

    training, evaluation, steps = config.training, config.evaluation, share(config.steps)
    checkpoints = config.steps / config.checkpoint_every
    checkpoints = min(checkpoints, max(MIN_CHECKPOINTS, checkpoints * scale))
    return dataclasses.replace(
        config,
        steps=steps,
        checkpoint_every=share(steps, 1 / checkpoints),
        log_every=share(config.log_every),
        evaluation=dataclasses.replace(evaluation, num_envs=min(evaluation.num_envs, LEGACY_ENVS)),
        training=dataclasses.replace(
            training,
            epsilon=shorter(training.epsilon),
            temperature=shorter(training.temperature),
        ),
    )
