"""How well an agent, a type or chance plays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dropin.adhoc import AdHoc, make
from dropin.agents import Agent, agent_player, load_agent
from dropin.compilation import use_cache
from dropin.config import given
from dropin.errors import InputError, StoppedError, unknown
from dropin.evaluation.rollout import rollout
from dropin.evaluation.statistics import Estimate, estimate
from dropin.games.base import Game
from dropin.players import RANDOM, Player, player
from dropin.teams.types import Type

ESTIMATORS = ("fixed", "legacy")
LEGACY_ENVS, LEGACY_EPISODES = 16, 5


@dataclass(frozen=True)
class Evaluation:
    """The episodes of an evaluation; rows are environments."""

    returns: np.ndarray
    ends: np.ndarray
    """When each episode was over, in steps of its environment."""
    unshaped: np.ndarray | None = None
    """The returns without the part that only guides learning, if the game has one."""
    estimator: str = "fixed"
    ratios: Mapping[str, float | str] = field(default_factory=dict)
    """What the game reports besides, by name; empty if there was nothing to divide by."""

    @property
    def mean(self) -> float:
        """The mean return."""
        return self.estimate().mean

    def estimate(self, method: str = "t", unshaped: bool = False) -> Estimate:
        """The mean return with its interval over episodes, or over rounds of the legacy rule."""
        returns = self.unshaped if unshaped and self.unshaped is not None else self.returns
        if self.estimator == "legacy":
            return estimate(legacy_means(returns, self.ends), method)
        return estimate(returns, method)


def ratios(game: Game[Any], counts: np.ndarray) -> dict[str, float | str]:
    """The ratios of a game by name, from sums of parts and wholes."""
    rows = zip(game.ratios, counts.tolist(), strict=True)
    return {name: part / whole if whole else "" for name, (part, whole) in rows}


def legacy_means(returns: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """What the authors' evaluation reports, once for every 16 environments.

    All 16 stop as soon as one of them has had 5 episodes; the episodes that were over by then are
    averaged. Short episodes count too much.
    """
    rounds = returns.shape[0] // LEGACY_ENVS
    shape = (rounds, LEGACY_ENVS, LEGACY_EPISODES)
    returns = returns[: rounds * LEGACY_ENVS, :LEGACY_EPISODES].reshape(shape)
    ends = ends[: rounds * LEGACY_ENVS, :LEGACY_EPISODES].reshape(shape)
    over = ends <= ends[:, :, -1].min(axis=1)[:, None, None]
    return (returns * over).sum(axis=(1, 2)) / over.sum(axis=(1, 2))


def run_episodes(
    env: AdHoc,
    who: Player,
    *,
    envs: int = 16,
    episodes: int = 5,
    seed: int = 0,
    estimator: str = "fixed",
) -> Evaluation:
    """So many episodes in each of so many parallel environments."""
    if estimator not in ESTIMATORS:
        raise unknown("estimator", estimator, ESTIMATORS)
    if envs < 1 or episodes < 1:
        raise InputError("An evaluation takes at least one environment and one episode.")
    if estimator == "legacy" and (envs % LEGACY_ENVS or episodes != LEGACY_EPISODES):
        raise InputError(
            f"The legacy estimator takes {LEGACY_EPISODES} episodes in each of {LEGACY_ENVS}"
            f" environments, or a multiple of these: not {episodes} in {envs}."
        )
    played = rollout(env, who, jax.random.key(seed), envs, episodes)
    returns, shaping, ends = map(np.asarray, (played.returns, played.shaping, played.ends))
    step, slot = np.asarray(played.flaw).tolist()
    if step >= 0:
        raise StoppedError(
            f"The place of the agent in slot {slot} was not a number after step {step}."
        )
    unshaped = returns - shaping if env.game.shaped else None
    told = ratios(env.game, np.asarray(played.counts))
    return Evaluation(returns, ends, unshaped, estimator, told)


def evaluate(
    who: str | Path | Agent | Player,
    game: str | AdHoc | None = None,
    *,
    policy: str = "greedy",
    episodes: int = 160,
    estimator: str = "fixed",
    seed: int = 0,
    rules: str | None = None,
    team_limit: int | None = None,
    types: Sequence[str | Type | Callable[..., Any]] | None = None,
    partners: bool = False,
    **changes: Any,
) -> Evaluation:
    """The returns of an agent (or its file, or a run's directory), of `random`, or of a type.

    The environment is given, or made by `dropin.make` from the name of a game (by default the one
    that the agent was trained in) and the settings; those that are not given are not taken from
    the agent's run but as `dropin.make` has them. `episodes` are rounded up so that each of the
    parallel environments plays the same number. With `partners` the teammates of an agent are
    agents like itself.

    >>> from dropin import evaluate
    >>> print(evaluate("random", "lbf", team_limit=5, episodes=16).estimate().n)
    80
    """
    use_cache()
    if isinstance(who, Path) or (isinstance(who, str) and _is_path(who)):
        who = load_agent(who)
    if game is None:
        if not isinstance(who, Agent):
            raise InputError(f"In which game should {who!r} play?")
        game = who.meets.game
    options = given(rules=rules, team_limit=team_limit, types=types, **changes)
    if isinstance(game, str):
        env = make(game, **options)
    elif options:
        raise InputError(
            f"The environment is there already, with its own {', '.join(options)}: give these along"
            " with the name of a game."
        )
    else:
        env = game
    if partners:
        if not isinstance(who, Agent):
            raise InputError(f"{who!r} is not a trained agent: only those have partners.")
        env = env.among([who.as_type(env.game)])
    if isinstance(who, Agent):
        who = agent_player(who, env, policy)
    elif policy != "greedy":
        raise InputError(f"{who!r} has one policy only: it is an agent's that can be chosen.")
    elif isinstance(who, str):
        who = player(env, who)
    if episodes < 1:
        raise InputError(f"The number of episodes {episodes} is too small: it is at least 1.")
    rounds = -(-episodes // (LEGACY_ENVS * LEGACY_EPISODES))
    return run_episodes(
        env,
        who,
        envs=LEGACY_ENVS * rounds,
        episodes=LEGACY_EPISODES,
        seed=seed,
        estimator=estimator,
    )


def _is_path(name: str) -> bool:
    return (name != RANDOM and Path(name).exists()) or "/" in name or name.endswith(".safetensors")
