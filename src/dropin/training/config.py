"""The settings of a run, and the environments it needs."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dropin.core import registry
from dropin.core.config import Checked, PlainDict, PlainMapping, from_dict, merge, to_dict
from dropin.core.errors import InputError, shown, unknown
from dropin.core.specs import check_rules
from dropin.env import AnyEnv, make
from dropin.learners.config import TrainConfig
from dropin.teams.dynamics import plain_openness, plain_type_changes

__all__ = [
    "NOT_IDENTITY",
    "PARTNERS",
    "STRANGERS",
    "EvaluationConfig",
    "RunConfig",
    "TrainConfig",
    "default_run_directory",
    "run_config",
]

STRANGERS, PARTNERS = "strangers", "partners"
"""Whom a learner is evaluated with: types, or agents like itself."""


@dataclass(frozen=True)
class EvaluationConfig(Checked):
    """How the learner is evaluated at every checkpoint."""

    team_limits: tuple[int, ...] = ()
    """Team limits besides that of training (paper: 5)."""
    num_envs: int = 64
    """Parallel environments."""
    episodes: int = 5
    """Episodes of each environment."""
    seed: int = field(default=2500, metadata={"least": 0})
    """The same at all checkpoints, so that they meet the same situations."""
    teammates: tuple[str, ...] = (STRANGERS,)
    """Whom it is evaluated with: strangers, partners, or both."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in self.teammates:
            if each not in (STRANGERS, PARTNERS):
                raise unknown("teammates", each, (STRANGERS, PARTNERS))


NOT_IDENTITY = ("evaluation", "log_every")
"""Settings of a run that do not influence what it learns."""
_NOT_OF_THE_GAME = ("rules", "team_limit", "slots", "types", "openness", "type_changes")


@dataclass(frozen=True)
class RunConfig(Checked):
    """Everything that decides the outcome of a run."""

    game: str
    """Name of the game."""
    learner: str
    """Name of the learner."""
    settings: Any
    """Settings of the learner."""
    game_version: int = field(default=0, metadata={"least": 0})
    """The game's `GameSpec.version` when the run was started."""
    rules: str = "paper"
    """Name of a preset of the game."""
    team_limit: int = 3
    types: tuple[str, ...] | None = None
    """Names of the types that teammates are drawn from; None means the game's whole pool."""
    openness: str | PlainMapping | None = None
    """Name of a registered openness, or its kind and parameters; None means that of the rules. A
    TOML file is replaced by what it says."""
    type_changes: str | PlainMapping | None = None
    """Kind and parameters of the process by which teammates change their type; None means that they
    never do. A TOML file is replaced by what it says."""
    game_settings: PlainMapping = field(default_factory=dict)
    """Settings of the game that differ from its rules, by name."""
    custom_env: bool = False
    """Whether the environment was given as an object and has to be given again to resume."""
    steps: int = 6_400_000
    """Environment steps, all parallel environments together."""
    seed: int = field(default=0, metadata={"least": 0})
    log_every: int = 6_400
    """Environment steps between two rows of metrics."""
    checkpoint_every: int = 160_000
    """Environment steps between two checkpoints, with an evaluation each."""
    training: TrainConfig = field(default_factory=TrainConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in registry.learners[self.learner].fixed.items():
            if getattr(self.settings, name) != value:
                raise InputError(
                    f"The {name} of {self.learner} is {value!r}: it cannot be changed."
                )
        if not self.custom_env:
            check_rules(self.rules, registry.games[self.game].rules)
        if self.openness is not None:
            object.__setattr__(self, "openness", plain_openness(self.openness))
        if self.type_changes is not None:
            object.__setattr__(self, "type_changes", plain_type_changes(self.type_changes))
        for name in _NOT_OF_THE_GAME:
            if name in self.game_settings:
                raise InputError(f"The {name.replace('_', ' ')} is no setting of the game.")
        for limit in self.evaluation.team_limits:
            if not isinstance(limit, int) or limit < 2:
                raise InputError(f"Team limit {limit} is too small: a team has at least 2 agents.")

    @property
    def game_change(self) -> str:
        """A sentence if the game has changed since the run was started, otherwise nothing."""
        now = self.game_version if self.custom_env else registry.games[self.game].version
        if self.game_version == now:
            return ""
        return (
            f"the run was started in version {self.game_version} of {self.game}, and this is"
            f" version {now}, whose returns cannot be compared with it."
        )

    @property
    def steps_per_update(self) -> int:
        """Environment steps between two updates, all environments together."""
        return self.training.steps_per_update

    def num_updates(self, steps: int) -> int:
        """Return how many updates this many environment steps take, rounded up."""
        return -(-steps // self.steps_per_update)

    def make_env(self, **other: Any) -> AnyEnv:
        """Make the environment that the run trains in.

        Args:
            **other: Arguments of `dropin.make` that should differ from the run's.
        """
        own = {
            "rules": self.rules,
            "team_limit": self.team_limit,
            "types": self.types,
            "openness": self.openness,
            "type_changes": self.type_changes,
        }
        return make(self.game, **{**own, **self.game_settings, **other})

    def to_dict(self) -> PlainDict:
        """Return the settings as plain values; type changes only if there are any."""
        values = to_dict(self)
        if self.type_changes is None:  # Runs without them keep the identity that they had before.
            del values["type_changes"]
        return values

    @classmethod
    def from_dict(cls, values: PlainMapping) -> "RunConfig":
        """Read the settings from plain values.

        Raises:
            InputError: If something is unknown or cannot be used.
        """
        for name in ("settings", "learner"):
            if name not in values:
                raise InputError(f"The {name} of the run is missing.")
        if not isinstance(values["settings"], Mapping):
            raise InputError(
                f"The settings {shown(values['settings'])} are not a group of settings."
            )
        kind = registry.learners[values["learner"]].settings
        return from_dict(cls, {**values, "settings": from_dict(kind, values["settings"])})


def run_config(game: str | AnyEnv, learner: str, **given: Any) -> RunConfig:
    """Return the settings of a run; what is not given is the paper's for this game.

    Args:
        game: Name of a game, or an environment.
        learner: Name of a learner.
        **given: Fields of `RunConfig`, as objects or plain values, or settings of the learner. None
            means not given. Plain values of a group of settings change only what they name.

    Raises:
        InputError: If something is unknown or cannot be used.
    """
    spec = registry.learners[learner]
    names = {each.name for each in dataclasses.fields(RunConfig)}
    given = {name: value for name, value in given.items() if value is not None}
    own = {name: value for name, value in given.items() if name in names}
    rest = {name: value for name, value in given.items() if name not in names}
    defaults: PlainDict = {"evaluation": {"teammates": tuple(spec.evaluate_with)}}
    if isinstance(game, str):
        known = registry.games[game]
        own_defaults = {"rules": next(iter(known.rules)), "game_version": known.version}
        defaults = merge(defaults, {**own_defaults, **known.run_defaults})
    else:
        own |= {
            "team_limit": int(game.team.limit),
            "types": game.team.pool.names,
            "rules": "custom",
            "custom_env": True,
        }
        game = game.game.name
        if game in registry.games:
            defaults = merge(defaults, registry.games[game].run_defaults)
    allowed = [each.name for each in dataclasses.fields(spec.settings)]
    for name in rest:
        if name not in allowed:
            raise unknown(f"setting of {learner}", name, allowed)
    groups = {"training": TrainConfig, "evaluation": EvaluationConfig}
    values = {**defaults, **own}
    for name, kind in groups.items():
        value = own.get(name)
        if value is None or isinstance(value, Mapping):
            value = merge(defaults.get(name, {}), value or {})
            values[name] = from_dict(kind, merge(to_dict(kind()), value))
    settings = spec.default_settings(game, **rest)
    return RunConfig(game=game, learner=learner, settings=settings, **values)


def default_run_directory(config: RunConfig) -> Path:
    """Return where a run goes if no directory is given."""
    name = f"{config.game}-{config.learner}-{config.rules}-{config.team_limit}"
    return Path("runs") / name / f"seed-{config.seed}"
