"""What is asked of an experiment, besides which one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dropin.errors import InputError, unknown
from dropin.games import check_rules
from dropin.games import find as find_game
from dropin.learners import find as find_learner
from dropin.training.table import ESTIMATORS


@dataclass(frozen=True)
class Choices:
    """Everything that may differ from the paper; None is as there."""

    rules: str = "paper"
    seeds: int | None = None
    """How many runs of the same kind, from seed 0 on."""
    steps: int | None = None
    """The length of all runs, instead of a scale."""
    scale: float = 1.0
    """The length of all runs as a share of the paper's; with fewer seeds and checkpoints."""
    games: tuple[str, ...] | None = None
    learners: tuple[str, ...] | None = None
    split: str | None = None
    """Of held-out evaluation: a name, or the types of training and of the test."""
    limits: tuple[int, ...] | None = None
    """Team limits of held-out evaluation."""
    estimator: str | None = None
    """fixed, or legacy as the authors'; the latter under reference rules if not given."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of all runs, in the shape of run.json, where they differ from the paper's."""
    states: int = 24_000
    """That are looked at in an analysis, at every checkpoint."""
    episodes: int = 320
    """Of each agent, where more is played than in training."""

    def __post_init__(self) -> None:
        check_rules(self.rules)
        if not 0 < self.scale <= 1:
            raise InputError(f"The scale {self.scale:g} is out of range: above 0 and at most 1.")
        if self.steps is not None and self.scale != 1:
            raise InputError("Give steps or a scale, not both.")
        for name in ("seeds", "steps", "states", "episodes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"The number of {name} is {value}, but it is at least 1.")
        for limit in self.limits or ():
            if limit < 2:
                raise InputError(f"Team limit {limit} is too small: a team has at least 2 agents.")
        for game in self.games or ():
            find_game(game)
        for learner in self.learners or ():
            find_learner(learner)
        if self.estimator is not None and self.estimator not in ESTIMATORS:
            raise unknown("estimator", self.estimator, ESTIMATORS)

    @property
    def small(self) -> bool:
        """Whether runs are shorter than the paper's."""
        return self.scale < 1 or self.steps is not None

    @property
    def stamp(self) -> str:
        """What every output of a small version says; nothing for a whole one."""
        if self.steps is not None:
            return f"A small version: runs of {self.steps:,} steps."
        return f"A small version: {self.scale:g} of the paper's steps." if self.small else ""

    @property
    def estimated(self) -> str:
        """The estimator of returns."""
        return self.estimator or ("legacy" if self.rules == "reference" else "fixed")

    @property
    def column(self) -> str:
        """The column of evaluations that holds the returns."""
        return ESTIMATORS[self.estimated]
