"""Frames: moments of an episode as small dictionaries for a web page."""

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float

from dropin.analysis.mind import Mind
from dropin.core.observation import TimeStep
from dropin.env import AnyEnv, AnyEnvState
from dropin.render.picture import renderer_of
from dropin.render.scene import scene_of

__all__ = ["Accuracy", "Frame", "FrameMaker", "shorten"]

Frame = dict[str, Any]
"""Values that JSON can hold; see `FrameMaker.frame`."""
Accuracy = tuple[tuple[int, int], ...]
"""For each slot how many of its actions were predicted, and how many there were."""
Points = Float[np.ndarray, "slot 2"]
_DIGITS, _FEWER_DIGITS = 4, 3
"""Significant digits of the numbers in a frame, and of those that there are many of."""
_MOST_EDGES = 16
"""Edges of a frame: in larger teams those with the largest weights."""


class FrameMaker:
    """Makes the frames of an environment.

    Args:
        env: The environment.
    """

    def __init__(self, env: AnyEnv):
        # With NumPy arrays, since a conversion of a JAX array costs more than what is done with it.
        self._env: AnyEnv = jax.tree.map(_as_numpy, env)
        self._scene, self._renderer = scene_of(env), renderer_of(env)
        self._sides = env.sides
        self._types = env.team.pool.names
        sides = [env.game.side_names[side] for side in env.sides]
        self._names = ["the learner", *(f"{side} {n}" for n, side in enumerate(sides) if n > 0)]

    def frame(
        self,
        state: AnyEnvState,
        mind: dict[str, Any] | None,
        *,
        step: int,
        score: float,
        outcome: TimeStep | None = None,
        previous: AnyEnvState | None = None,
    ) -> Frame:
        """Return the frame of a state. All arrays are NumPy arrays.

        Args:
            state: The state.
            mind: What `mind` returned, or None.
            step: Number of steps taken in the episode.
            score: The learner's return so far.
            outcome: What the last step led to; None at the start.
            previous: The state before the last step.

        Returns:
            `step`, `scene` (see `dropin.games.scenes`), `agents` (`slot`, `side`, `present`,
            `arrived` and `type` of each slot; the type is null for the learner and absent agents),
            `actions` that led here (null for agents that did not act), `rewards` likewise, the
            learner's `reward` and `score`, `done`, `text` (sentences on what happened), `entered`
            and `left` (slots), and `mind`.
        """
        present, arrived = np.asarray(state.game.present).tolist(), state.arrived.tolist()
        types = state.roster.type.tolist()
        agents = [
            {
                "slot": slot,
                "side": side,
                "present": present[slot],
                "arrived": arrived[slot],
                "type": self._types[types[slot]] if slot > 0 and present[slot] else None,
            }
            for slot, side in enumerate(self._sides)
        ]
        frame: Frame = {
            "step": step,
            "scene": self._scene(self._env, state, outcome, previous),
            "agents": agents,
        }
        if outcome is None or previous is None:
            nobody = [None] * len(agents)
            frame |= {"actions": nobody, "rewards": nobody, "reward": 0.0, "done": False}
            frame |= {"text": [], "entered": [], "left": []}
        else:
            frame |= self._what_happened(state, outcome, previous)
        return frame | {"score": round(score, _DIGITS), "mind": mind}

    def _what_happened(
        self, state: AnyEnvState, outcome: TimeStep, previous: AnyEnvState
    ) -> dict[str, Any]:
        """Return the part of a frame that is about the last step."""
        acted, present, arrived = (
            np.asarray(each) for each in (outcome.acted, state.game.present, state.arrived)
        )
        rewards = shorten(np.asarray(outcome.rewards))
        # A slot can be left and taken by somebody else in the same step.
        left = np.flatnonzero(acted & (~present | arrived)).tolist()
        entered = np.flatnonzero(arrived).tolist()
        events = self._renderer.describe_events(previous.game, outcome, self._names)
        leave, enter = (
            [f"{self._names[slot]} {verb}" for slot in slots]
            for verb, slots in (("leaves", left), ("enters", entered))
        )
        return {
            "actions": _where(acted, outcome.actions.tolist()),
            "rewards": _where(acted, rewards),
            "reward": rewards[0],
            "done": bool(outcome.done),
            "text": [*events, *leave, *enter],
            "entered": entered,
            "left": left,
        }

    def changed(
        self, frame: Frame, new: Frame, joined: Iterable[int], left: Iterable[int]
    ) -> Frame:
        """Return the frame after people came and went, with what had led to the state.

        Args:
            frame: The frame before the change.
            new: The frame of the changed state, made as if it were the first.
            joined: Slots that somebody else has taken over.
            left: Slots that were left.
        """
        kept = ("actions", "rewards", "reward", "done", "text")
        scene = frame["scene"]
        marks = {name: scene[name] for name in ("marks", "lasers") if name in scene}
        entered = sorted({*frame["entered"], *joined} - {*left})
        return {
            **new,
            **{name: frame[name] for name in kept},
            "scene": {**new["scene"], **marks},
            "entered": entered,
            "left": sorted({*frame["left"], *left}),
        }

    def mind(
        self,
        mind: Mind,
        present: Bool[np.ndarray, " slot"],
        accuracy: Accuracy,
        points: Points | None,
    ) -> dict[str, Any] | None:
        """Return what a learner computes in a state, for a frame.

        Args:
            mind: What the learner computes, as NumPy arrays.
            present: Which slots hold an agent.
            accuracy: How its predictions fared so far.
            points: The type vectors as points on a map.

        Returns:
            `q` (the value of each action), `chosen`, and for each slot, null for absent agents:
            `probs` (predicted action probabilities; null for the learner too), `individual`
            (utilities of its actions), `points` and `accuracy` (hits and total since it arrived);
            `edges` as `[slot, slot, weight]`, the heaviest first, at most 16. A part that the
            learner does not have is null. None if it has none of them.
        """
        values, probs, individual, edges = (
            None if part is None else np.asarray(part)
            for part in (mind.q_values, mind.teammate_probs, mind.individual, mind.edges)
        )
        if values is None:
            return None
        others = present.copy()
        others[0] = False
        return {
            "q": shorten(values),
            "chosen": int(mind.chosen),
            "probs": None if probs is None else _where(others, _shorten_probs(probs)),
            "individual": _short_rows(present, individual),
            "edges": None if edges is None else _edges(present, edges),
            "points": _short_rows(present, points),
            "accuracy": None if probs is None else _where(others, [list(row) for row in accuracy]),
        }


def _edges(present: np.ndarray, weights: np.ndarray) -> list[list[float]]:
    """Return the heaviest edges between agents that are present, each once."""
    slots, short = np.flatnonzero(present).tolist(), shorten(weights, _FEWER_DIGITS)
    edges = [[a, b, short[a][b]] for a in slots for b in slots if a < b]
    return sorted(edges, key=lambda edge: -(edge[2] or 0.0))[:_MOST_EDGES]


def _short_rows(present: np.ndarray, values: np.ndarray | None) -> list[Any] | None:
    """Return the rows of agents that are present."""
    return None if values is None else _where(present, shorten(values, _FEWER_DIGITS))


def _shorten_probs(probs: np.ndarray) -> list[Any]:
    """Return probabilities in thousandths: nobody reads more from a bar."""
    return np.round(np.nan_to_num(probs.astype(np.float64)), 3).tolist()


def _where(which: np.ndarray, values: list[Any]) -> list[Any]:
    """Return the values, with None where `which` is false."""
    pairs = zip(which.tolist(), values, strict=True)
    return [value if included else None for included, value in pairs]


def _as_numpy(leaf: Any) -> Any:
    return np.asarray(leaf) if eqx.is_array(leaf) else leaf


def shorten(values: np.ndarray, digits: int = _DIGITS) -> list[Any]:
    """Return numbers as nested lists with few digits; None where one is not finite.

    Args:
        values: An array of numbers.
        digits: Number of significant digits.

    >>> shorten(np.array([0.123456, -1234567.0, np.nan, 0.0]))
    [0.1235, -1235000.0, None, 0.0]
    """
    exact = values.astype(np.float64)
    size = np.abs(exact)
    exponent = np.floor(np.log10(np.where((size > 0) & (size < np.inf), size, 1.0)))
    scale = 10.0 ** (digits - 1 - exponent)
    short = np.round(exact * scale) / scale
    if np.isfinite(short).all():
        return short.tolist()
    return np.where(np.isfinite(short), short.astype(object), np.array(None)).tolist()
