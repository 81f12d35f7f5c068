"""The numbers of the paper, to be shown beside ours."""

import functools
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

SEEDS = 8
"""Each number is a mean over so many runs."""


@dataclass(frozen=True)
class Published:
    """A mean, and half the width of its 95 % interval."""

    mean: float
    width: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.width:.2f}"


@dataclass(frozen=True)
class PublishedCurve:
    """What the authors' runs had at every checkpoint."""

    steps: tuple[int, ...]
    points: tuple[Published, ...]

    @property
    def best(self) -> int:
        """The place of the best mean."""
        return max(range(len(self.points)), key=lambda number: self.points[number].mean)

    @property
    def top(self) -> Published:
        """The best mean."""
        return self.points[self.best]


@functools.cache
def _paper() -> Any:
    return json.loads((files("dropin") / "published.json").read_text())


def curve(game: str, learner: str) -> PublishedCurve | None:
    """The returns in training with a team limit of 3, by the authors' estimator (figure 2)."""
    found = _paper()["train"].get(game, {}).get(learner)
    if found is None:
        return None
    rows = zip(found["mean"], found["ci95"], strict=True)
    points = tuple(Published(mean, width) for mean, width in rows)
    return PublishedCurve(_steps(len(points)), points)


def test_return(game: str, learner: str) -> Published | None:
    """The return with a team limit of 5 among strangers (table 2)."""
    return _pair("test", game, learner)


def return_among_partners(game: str, learner: str) -> Published | None:
    """The return with a team limit of 5 among those it was trained with (appendix F)."""
    return _pair("partners", game, learner)


def accuracy(learner: str) -> tuple[tuple[int, ...], tuple[float | None, ...]] | None:
    """The share of shots that hit at every checkpoint in FortAttack (figure 3a); None: no shot."""
    found = _paper()["accuracy"].get(learner)
    return None if found is None else (_steps(len(found)), tuple(found))


def _pair(table: str, game: str, learner: str) -> Published | None:
    found = _paper()[table].get(game, {}).get(learner)
    return None if found is None else Published(*found)


def _steps(number: int) -> tuple[int, ...]:
    return tuple(_paper()["every"] * each for each in range(number))
