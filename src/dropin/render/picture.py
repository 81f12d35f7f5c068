"""Pictures and GIFs of the states of any game. Needs the extra `plot`."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dropin.core import registry
from dropin.core.errors import InputError
from dropin.core.files import write
from dropin.core.observation import TimeStep
from dropin.env import AnyEnv, AnyEnvState
from dropin.games.drawing import Canvas, Renderer
from dropin.render.episode import Frame
from dropin.render.table import FeatureTable

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["picture", "renderer_of", "save_gif", "short_names", "type_names"]

LAST_FRAME_MS = 2000
"""How long a GIF shows the last state before it starts again."""


def renderer_of(env: AnyEnv) -> Renderer:
    """Return the renderer of an environment's game.

    A game that is not registered, or is registered without a renderer, is shown as its table of
    features.
    """
    name = env.game.name
    renderer = registry.games[name].renderer if name in registry.games else None
    return FeatureTable(env) if renderer is None else renderer


def type_names(env: AnyEnv, state: AnyEnvState) -> list[str]:
    """Return the name of the type of each slot.

    Args:
        env: The environment.
        state: Its state.
    """
    return [env.team.pool.names[index] for index in np.asarray(state.roster.type).tolist()]


def short_names(env: AnyEnv, state: AnyEnvState) -> list[str]:
    """Return what to write below each agent: `learner`, or the name of its type.

    Args:
        env: The environment.
        state: Its state.
    """
    return ["learner", *type_names(env, state)[1:]]


def picture(
    env: AnyEnv, state: AnyEnvState, header: str = "", step: TimeStep | None = None
) -> "Image":
    """Draw a state.

    Args:
        env: The environment.
        state: Its state.
        header: A line of text above the picture.
        step: The step that follows the state, if it is known; some games draw what happens in it.

    Returns:
        A PIL image. All states of an environment have the same size.
    """
    renderer = renderer_of(env)
    canvas = Canvas(*renderer.board_size(env))
    renderer.draw(canvas, env, state, short_names(env, state), step)
    canvas.header(header)
    return canvas.finish()


def save_gif(env: AnyEnv, frames: Iterable[Frame], path: Path, seconds: float = 0.35) -> None:
    """Write an episode as a GIF that repeats.

    Args:
        env: The environment.
        frames: The frames of the episode, see `record_episode`.
        path: The file; one that exists is replaced.
        seconds: How long each state is shown.

    Raises:
        InputError: If there are no frames.
    """
    pictures = [
        picture(env, frame.state, f"step {number}   return {round(frame.score, 2):g}", frame.step)
        for number, frame in enumerate(frames)
    ]
    if not pictures:
        raise InputError("A GIF needs at least one frame.")
    durations = [int(seconds * 1000)] * (len(pictures) - 1) + [LAST_FRAME_MS]
    gif = BytesIO()
    pictures[0].save(
        gif,
        "GIF",
        save_all=True,
        append_images=pictures[1:],
        duration=durations,
        loop=0,
        disposal=1,
    )
    write(path, gif.getvalue())
