"""An episode told in sentences."""

from collections.abc import Iterable, Sequence

import numpy as np

from dropin.env import AnyEnv, AnyEnvState
from dropin.games.drawing import Renderer
from dropin.render.episode import Frame
from dropin.render.picture import renderer_of, type_names

__all__ = ["long_names", "tell_story"]


def long_names(env: AnyEnv, state: AnyEnvState) -> list[str]:
    """Return what a story calls the agent in each slot, as `mate 1 (H3)`.

    Args:
        env: The environment.
        state: Its state.
    """
    sides = [env.game.side_names[side] for side in env.sides]
    others = [
        f"{side} {slot} ({name})"
        for slot, (side, name) in enumerate(zip(sides, type_names(env, state), strict=True))
    ]
    return ["the learner", *others[1:]]


def tell_story(env: AnyEnv, frames: Iterable[Frame]) -> list[str]:
    """Return sentences on who was present at the start, what happened, and how it ended.

    Args:
        env: The environment.
        frames: The frames of one episode, see `record_episode`.

    Returns:
        One sentence for the start, one for each event, arrival and departure, and one for the end.
    """
    renderer = renderer_of(env)
    sentences: list[str] = []
    previous: Frame | None = None
    number = -1
    for number, frame in enumerate(frames):
        if previous is None or previous.step is None:
            present = np.flatnonzero(frame.state.game.present).tolist()
            team = _describe_agents(env, renderer, frame.state, present)
            sentences.append(f"Start: {'; '.join(team)}.")
        else:
            events = _describe_step(env, renderer, previous, frame)
            sentences += [f"Step {number}: {event}." for event in events]
        previous = frame
    if previous is not None:
        steps = f"{number} step{'' if number == 1 else 's'}"
        score = f"{round(previous.score, 2):g}"
        sentences.append(f"The episode ends after {steps}; the learner's return is {score}.")
    return sentences


def _describe_step(env: AnyEnv, renderer: Renderer, previous: Frame, frame: Frame) -> list[str]:
    """Return clauses on the events of the step between two frames, on who left and who entered."""
    assert previous.step is not None
    names = long_names(env, previous.state)
    events = renderer.describe_events(previous.state.game, previous.step, names)
    present, arrived = np.asarray(frame.state.game.present), np.asarray(frame.state.arrived)
    # A slot can be left and taken by somebody else in the same step.
    left = np.flatnonzero(np.asarray(previous.step.acted) & (~present | arrived)).tolist()
    entered = np.flatnonzero(arrived).tolist()
    newcomers = _describe_agents(env, renderer, frame.state, entered)
    return [
        *events,
        *(f"{names[slot]} leaves" for slot in left),
        *(f"{newcomer} enters" for newcomer in newcomers),
    ]


def _describe_agents(
    env: AnyEnv, renderer: Renderer, state: AnyEnvState, slots: Sequence[int]
) -> list[str]:
    """Return the name of the agent in each of the slots, with the game's description of it."""
    names = long_names(env, state)
    described = ((names[slot], renderer.describe_agent(state.game, slot)) for slot in slots)
    return [", ".join(part for part in parts if part) for parts in described]
