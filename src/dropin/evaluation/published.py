"""The numbers of the paper, to show beside our own. Each is a mean over eight runs."""

import functools
import json
from dataclasses import dataclass
from pathlib import Path

from dropin.core.config import PlainDict

__all__ = [
    "PublishedCurve",
    "PublishedMean",
    "larger_team_return",
    "partner_return",
    "shooting_accuracy",
    "training_curve",
]


@dataclass(frozen=True)
class PublishedMean:
    """A mean with its 95 % interval."""

    mean: float
    half_width: float
    """Half the width of the interval."""

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.half_width:.2f}"


@dataclass(frozen=True)
class PublishedCurve:
    """The returns of the authors' runs at every checkpoint."""

    steps: tuple[int, ...]
    points: tuple[PublishedMean, ...]

    @property
    def best_index(self) -> int:
        """The index of the checkpoint with the largest mean."""
        return max(range(len(self.points)), key=lambda index: self.points[index].mean)

    @property
    def best(self) -> PublishedMean:
        """The largest mean."""
        return self.points[self.best_index]


def training_curve(game: str, learner: str) -> PublishedCurve | None:
    """Return the returns in training at team limit 3, by the authors' estimator (figure 2).

    Args:
        game: Name of the game.
        learner: Name of the learner.

    Returns:
        The curve; None if the paper has no such runs.
    """
    found = _numbers()["training_returns"].get(game, {}).get(learner)
    if found is None:
        return None
    rows = zip(found["mean"], found["half_width"], strict=True)
    points = tuple(PublishedMean(mean, half_width) for mean, half_width in rows)
    return PublishedCurve(_checkpoint_steps(len(points)), points)


def larger_team_return(game: str, learner: str) -> PublishedMean | None:
    """Return the return at team limit 5 with strangers (table 2).

    Args:
        game: Name of the game.
        learner: Name of the learner.

    Returns:
        The mean; None if the paper has no such runs.
    """
    return _lookup("larger_team_returns", game, learner)


def partner_return(game: str, learner: str) -> PublishedMean | None:
    """Return the return at team limit 5 with partners (appendix F).

    Args:
        game: Name of the game.
        learner: Name of the learner.

    Returns:
        The mean; None if the paper has no such runs.
    """
    return _lookup("partner_returns", game, learner)


def shooting_accuracy(learner: str) -> tuple[tuple[int, ...], tuple[float | None, ...]] | None:
    """Return the share of the learner's shots that hit in FortAttack (figure 3a).

    Args:
        learner: Name of the learner.

    Returns:
        The steps of the checkpoints, and the share at each; a share is None where there was no
        shot. None if the paper has no such runs.
    """
    found = _numbers()["shooting_accuracy"].get(learner)
    return None if found is None else (_checkpoint_steps(len(found)), tuple(found))


@functools.cache
def _numbers() -> PlainDict:
    return json.loads(Path(__file__).with_name("published.json").read_text())


def _lookup(table: str, game: str, learner: str) -> PublishedMean | None:
    found = _numbers()[table].get(game, {}).get(learner)
    return None if found is None else PublishedMean(*found)


def _checkpoint_steps(number: int) -> tuple[int, ...]:
    return tuple(_numbers()["steps_between_checkpoints"] * index for index in range(number))
