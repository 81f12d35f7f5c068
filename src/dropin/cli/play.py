"""The command that plays an episode."""

import time
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from dropin.core.config import not_none
from dropin.core.errors import InputError

__all__ = ["play"]


def play(
    game: Annotated[Positional[str], arg(metavar="GAME")],
    rules: str | None = None,
    team_limit: int | None = None,
    slots: int | None = None,
    types: tuple[str, ...] | None = None,
    openness: str | None = None,
    type_changes: Path | None = None,
    seed: int = 0,
    learner: str = "random",
    agent: str | None = None,
    mode: str = "greedy",
    gif: Path | None = None,
    force: bool = False,
    seconds: float = 0.25,
) -> None:
    """Play one episode, in the terminal or to a GIF, and tell what happened.

    A trained agent plays in the environment of its run; options that are given here take
    precedence.

    Args:
        game: Name of the game, see `dropin games`.
        rules: Name of a preset, see `dropin games` (paper if not given).
        team_limit: Most agents at a time, the learner included (3 if not given).
        slots: Slots of the learner's team; as many as the team limit if not given.
        types: Teammates are drawn from these, see `dropin types`; from the pool if not given.
        openness: Name of an openness, see `dropin games`, or a TOML file with a table [openness];
            as the rules say if not given.
        type_changes: A TOML file with a table [type_changes]: teammates change their type.
        seed: The same seed gives the same episode.
        learner: Who plays in the learner's place: random, or a type, see `dropin types`.
        agent: A trained agent plays in the learner's place: its name, see `dropin zoo list`, its
            file, or a run's directory.
        mode: How the agent chooses actions: greedy, or sampled if it has a distribution.
        gif: Write the episode to this file instead of showing it.
        force: Replace the file if it exists.
        seconds: How long each step is shown.
    """
    if gif is not None and gif.exists() and not force:
        raise InputError(f"{gif} exists already: give another name, or --force to replace it.")

    from dropin._xla.cache import use_cache
    from dropin.agents import agent_path, load_policy
    from dropin.env import make
    from dropin.policies import make_policy
    from dropin.render.episode import record_episode
    from dropin.render.picture import renderer_of, save_gif
    from dropin.render.story import tell_story
    from dropin.training.run_directory import RunDirectory, run_env

    use_cache()
    options = not_none(
        rules=rules,
        team_limit=team_limit,
        slots=slots,
        types=types,
        openness=openness,
        type_changes=type_changes,
    )
    trained = None if agent is None else agent_path(agent)
    if trained is not None and RunDirectory(trained).exists:
        env, _ = run_env(trained, game, **options)
    else:
        env = make(game, **options)
    console = Console(highlight=False)
    policy = make_policy(env, learner) if trained is None else load_policy(trained, env, mode)
    frames = list(record_episode(env, policy, seed))
    if gif is not None:
        save_gif(env, frames, gif, seconds)
    elif console.is_terminal:
        renderer = renderer_of(env)
        with console.screen() as screen:
            for frame in frames:
                screen.update(renderer.text(env, frame.state))
                time.sleep(seconds)
    for sentence in tell_story(env, frames):
        console.print(sentence, markup=False)
    if gif is not None:
        console.print(f"{gif}: {len(frames)} pictures", markup=False)
