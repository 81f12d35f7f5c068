"""What a run is, and the environments it needs."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dropin.adhoc import AdHoc, make
from dropin.config import Checked, as_dict, from_dict
from dropin.errors import InputError, unknown
from dropin.games import check_rules
from dropin.games import find as find_game
from dropin.learners import find as find_learner
from dropin.training.chunk import TrainConfig
from dropin.training.schedule import Linear


@dataclass(frozen=True)
class EvaluationConfig(Checked):
    """How the learner is evaluated at every checkpoint."""

    team_limits: tuple[int, ...] = ()
    """Besides the one it trains with (paper: 5)."""
    envs: int = 64
    """Parallel environments."""
    episodes: int = 5
    """Of each environment."""
    seed: int = field(default=2500, metadata={"least": 0})
    """The same at all checkpoints, so that they meet the same situations."""


WATCHING = ("evaluation", "log_every")
"""Settings of a run that do not decide what it learns."""
_NOT_OF_THE_GAME = ("rules", "team_limit", "slots", "types", "openness")


@dataclass(frozen=True)
class RunConfig(Checked):
    """Everything that decides the outcome of a run."""

    game: str
    learner: str
    settings: Any
    """The settings of the learner."""
    rules: str = "paper"
    team_limit: int = 3
    types: tuple[str, ...] | None = None
    """Names of the types that teammates are drawn from; all of the game's if not given."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the game that differ from its rules, by name."""
    own_environment: bool = False
    """Whether the environment was given as an object and has to be given again to resume."""
    steps: int = 6_400_000
    """Of all parallel environments together."""
    seed: int = field(default=0, metadata={"least": 0})
    log_every: int = 6_400
    """Steps between two rows of metrics."""
    checkpoint_every: int = 160_000
    """Steps between two checkpoints, with an evaluation each."""
    training: TrainConfig = field(default_factory=TrainConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        find_game(self.game)
        for name, value in find_learner(self.learner).settings:
            if getattr(self.settings, name) != value:
                raise InputError(
                    f"The {name} of {self.learner} is {value!r}: it cannot be changed."
                )
        if not self.own_environment:
            check_rules(self.rules)
        for name in _NOT_OF_THE_GAME:
            if name in self.changes:
                raise InputError(f"The {name.replace('_', ' ')} is no setting of the game.")
        for limit in self.evaluation.team_limits:
            if not isinstance(limit, int) or limit < 2:
                raise InputError(f"Team limit {limit} is too small: a team has at least 2 agents.")

    @property
    def steps_per_update(self) -> int:
        """Steps of all environments together between two updates."""
        return self.training.envs * self.training.period

    def updates(self, steps: int) -> int:
        """So many steps in updates, rounded up."""
        return -(-steps // self.steps_per_update)

    def environment(self, **other: Any) -> AdHoc:
        """The environment that the run trains in; `other` is what should differ from it."""
        own = {"rules": self.rules, "team_limit": self.team_limit, "types": self.types}
        return make(self.game, **{**own, **self.changes, **other})

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain values."""
        return as_dict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunConfig":
        """The settings that were written as `values`."""
        if not isinstance(values["settings"], Mapping):
            raise InputError(f"The settings {values['settings']!r} are not a group of settings.")
        settings = from_dict(find_learner(values["learner"]).kind, values["settings"])
        return from_dict(cls, {**values, "settings": settings})


PRESETS: dict[str, dict[str, Any]] = {
    "fortattack": {
        "steps": 16_000_000,
        "training": TrainConfig(
            learning_rate=1e-4,
            epsilon=Linear(1.0, 0.05, 8_000_000),
            temperature=Linear(1.0, 0.01, 8_000_000),
        ),
    }
}
"""The settings of a run in which the paper differs for a game."""


def default_values(game: str, learner: str) -> dict[str, Any]:
    """The settings of a run of this learner in this game as plain values."""
    find_game(game)
    return run_config(game, learner).as_dict()


def run_config(game: str | AdHoc, learner: str, **given: Any) -> RunConfig:
    """The settings of a run; those that are not the run's own are the learner's.

    What is not given, or None, is as in the paper for this game.
    """
    names = {each.name for each in dataclasses.fields(RunConfig)}
    given = {name: value for name, value in given.items() if value is not None}
    own = {name: value for name, value in given.items() if name in names}
    rest = {name: value for name, value in given.items() if name not in names}
    if not isinstance(game, str):
        own |= {
            "team_limit": int(game.team.limit),
            "types": game.team.pool.names,
            "rules": "its own",
            "own_environment": True,
        }
        game = game.game.name
    own = PRESETS.get(game, {}) | own
    return RunConfig(game=game, learner=learner, settings=_settings(game, learner, rest), **own)


def _settings(game: str, learner: str, changes: Mapping[str, Any]) -> Any:
    entry = find_learner(learner)
    names = [each.name for each in dataclasses.fields(entry.kind)]
    for name in changes:
        if name not in names:
            raise unknown(f"setting of {learner}", name, names)
    return entry.config(game, **changes)


def default_directory(config: RunConfig) -> Path:
    """Where a run goes if nobody says where."""
    name = f"{config.game}-{config.learner}-{config.rules}-{config.team_limit}"
    return Path("runs") / name / f"seed-{config.seed}"
