"""Watch an episode."""

import time
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from dropin.config import given
from dropin.errors import InputError


def play(
    game: Annotated[Positional[str], arg(metavar="GAME")],
    rules: str | None = None,
    team_limit: int | None = None,
    slots: int | None = None,
    seed: int = 0,
    learner: str = "random",
    agent: Path | None = None,
    policy: str = "greedy",
    gif: Path | None = None,
    force: bool = False,
    seconds: float = 0.25,
) -> None:
    """Play one episode, in the terminal or to a GIF, and tell what happened.

    The agent of a run plays in the run's game, where nothing else is given.

    Args:
        game: Name of the game, see `dropin games`.
        rules: paper (if not given) or reference.
        team_limit: Most agents at a time, the learner included (3 if not given).
        slots: Places for agents; as many as the team limit if not given.
        seed: The same seed gives the same episode.
        learner: Who plays the learner: random, or a type, see `dropin types`.
        agent: A trained agent plays the learner: its file, or a run's directory.
        policy: Of the agent: greedy, or sampled if it can be drawn from.
        gif: Write the episode to this file instead of showing it.
        force: Write over a file that exists.
        seconds: How long each step is shown.
    """
    if gif is not None and gif.exists() and not force:
        raise InputError(f"{gif} exists already: give another name, or --force to replace it.")

    from dropin.adhoc import make
    from dropin.agents import load_player
    from dropin.players import player
    from dropin.render.episode import record
    from dropin.render.picture import looks_of, save_gif
    from dropin.render.story import story
    from dropin.training.directory import RunDirectory, run_environment

    options = given(rules=rules, team_limit=team_limit, slots=slots)
    if agent is not None and RunDirectory(agent).exists:
        env, _ = run_environment(agent, game, **options)
    else:
        env = make(game, **options)
    console = Console(highlight=False)
    who = player(env, learner) if agent is None else load_player(agent, env, policy)
    moments = list(record(env, who, seed))
    if gif is not None:
        save_gif(env, moments, gif, seconds)
    elif console.is_terminal:
        looks = looks_of(env)
        with console.screen() as screen:
            for moment in moments:
                screen.update(looks.text(env, moment.state))
                time.sleep(seconds)
    for sentence in story(env, moments):
        console.print(sentence)
    if gif is not None:
        console.print(f"{gif}: {len(moments)} pictures")
