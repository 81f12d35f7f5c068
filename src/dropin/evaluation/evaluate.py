"""How well an agent, a type or a random policy plays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dropin._xla.cache import use_cache
from dropin.agents import Agent, agent_policy, load_agent
from dropin.core.config import not_none
from dropin.core.errors import InputError, StoppedError, unknown
from dropin.core.metrics import to_row
from dropin.env import AnyEnv, make
from dropin.evaluation.rollout import rollout
from dropin.evaluation.statistics import Estimate, estimate
from dropin.policies import RANDOM, Policy, make_policy
from dropin.teams.changes import TypeChanges
from dropin.teams.openness import Openness
from dropin.teams.types import TypeLike

__all__ = [
    "ESTIMATOR_NAMES",
    "LEGACY_ENVS",
    "LEGACY_EPISODES",
    "Evaluation",
    "evaluate",
    "legacy_means",
    "names_agent",
    "run_episodes",
]

ESTIMATOR_NAMES = ("fixed", "legacy")
"""`fixed` averages all episodes; `legacy` is the authors' stopping rule."""
LEGACY_ENVS, LEGACY_EPISODES = 16, 5
"""Environments and episodes of the authors' evaluation."""


@dataclass(frozen=True)
class Evaluation:
    """The episodes of an evaluation; rows are environments."""

    returns: np.ndarray
    ends: np.ndarray
    """The step at which each episode ended, counted from the start of its environment."""
    unshaped: np.ndarray | None = None
    """The returns without the part that only guides learning, if the game has one."""
    estimator: str = "fixed"
    metrics: Mapping[str, float | int | None] = field(default_factory=dict)
    """The game's own metrics by name; None if there was nothing to average."""

    @property
    def mean(self) -> float:
        """The mean return."""
        return self.estimate().mean

    def estimate(self, method: str = "t", unshaped: bool = False) -> Estimate:
        """Return the mean return with its interval.

        Args:
            method: `t` or `bootstrap`.
            unshaped: Whether to leave out shaping.

        Returns:
            An estimate over episodes, or over rounds of the legacy rule.
        """
        returns = self.unshaped if unshaped and self.unshaped is not None else self.returns
        if self.estimator == "legacy":
            return estimate(legacy_means(returns, self.ends), method)
        return estimate(returns, method)


def legacy_means(returns: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the mean that the authors' evaluation reports, once for every 16 environments.

    All 16 stop as soon as one of them has had 5 episodes; the episodes that have ended by then are
    averaged. Short episodes count too much.

    Args:
        returns: Returns [env, episode].
        ends: The step at which each episode ended.
    """
    rounds = returns.shape[0] // LEGACY_ENVS
    shape = (rounds, LEGACY_ENVS, LEGACY_EPISODES)
    returns = returns[: rounds * LEGACY_ENVS, :LEGACY_EPISODES].reshape(shape)
    ends = ends[: rounds * LEGACY_ENVS, :LEGACY_EPISODES].reshape(shape)
    counted = ends <= ends[:, :, -1].min(axis=1)[:, None, None]
    return (returns * counted).sum(axis=(1, 2)) / counted.sum(axis=(1, 2))


def run_episodes(
    env: AnyEnv,
    policy: Policy,
    *,
    num_envs: int = 16,
    episodes: int = 5,
    seed: int = 0,
    estimator: str = "fixed",
) -> Evaluation:
    """Play a number of episodes in each of several parallel environments.

    Args:
        env: The environment.
        policy: Who plays in the learner's place.
        num_envs: Number of parallel environments.
        episodes: Number of episodes of each.
        seed: The same seed gives the same episodes.
        estimator: `fixed` or `legacy`.

    Raises:
        InputError: If the numbers do not fit the estimator.
        StoppedError: If a state was not finite.
    """
    if estimator not in ESTIMATOR_NAMES:
        raise unknown("estimator", estimator, ESTIMATOR_NAMES)
    if num_envs < 1 or episodes < 1:
        raise InputError("An evaluation takes at least one environment and one episode.")
    if estimator == "legacy" and (num_envs % LEGACY_ENVS or episodes != LEGACY_EPISODES):
        raise InputError(
            f"The legacy estimator takes {LEGACY_EPISODES} episodes in each of {LEGACY_ENVS}"
            f" environments, or a multiple of these: not {episodes} in {num_envs}."
        )
    played = rollout(env, policy, jax.random.key(seed), num_envs, episodes)
    returns, shaping, ends = map(np.asarray, (played.returns, played.shaping, played.ends))
    step, slot = np.asarray(played.nonfinite).tolist()
    if step >= 0:
        raise StoppedError(
            f"The state of the agent in slot {slot} was not a finite number after step {step}."
        )
    unshaped = returns - shaping if env.game.has_shaping else None
    return Evaluation(returns, ends, unshaped, estimator, to_row(played.metrics))


def evaluate(
    who: str | Path | Agent | Policy,
    game: str | AnyEnv | None = None,
    *,
    mode: str = "greedy",
    episodes: int = 160,
    estimator: str = "fixed",
    seed: int = 0,
    rules: str | None = None,
    team_limit: int | None = None,
    types: Sequence[TypeLike] | None = None,
    openness: str | Path | Mapping[str, Any] | Openness | None = None,
    type_changes: str | Path | Mapping[str, Any] | TypeChanges | None = None,
    partners: bool = False,
    **settings: Any,
) -> Evaluation:
    """Measure the returns of an agent, of a type, or of a random policy.

    Args:
        who: An agent, its name, its file or its run's directory as in `dropin.load_agent`, a
            policy, `random`, or the name of a type.
        game: An environment, or the name of a game; by default the game that the agent was trained
            in. Settings that are not given are those of `dropin.make`, not of the agent's run.
        mode: How an agent chooses actions: `greedy`, or `sampled` if it has a distribution.
        episodes: Number of episodes, rounded up so that each parallel environment plays as many.
        estimator: `fixed`, or `legacy` for the authors' stopping rule.
        seed: The same seed gives the same episodes.
        rules: As in `dropin.make`.
        team_limit: As in `dropin.make`.
        types: As in `dropin.make`.
        openness: As in `dropin.make`.
        type_changes: As in `dropin.make`.
        partners: Whether the teammates are agents like itself instead of types.
        **settings: Fields of the game that differ from its rules.

    Returns:
        The returns of all episodes.

    Raises:
        InputError: If something is unknown or does not fit.

    >>> from dropin import evaluate
    >>> print(evaluate("random", "lbf", team_limit=5, episodes=16).estimate().n)
    80
    """
    use_cache()
    if isinstance(who, Path) or (isinstance(who, str) and names_agent(who)):
        who = load_agent(who)
    if game is None:
        if not isinstance(who, Agent):
            raise InputError(f"In which game should {who!r} play?")
        game = who.interface.game
    options = not_none(
        rules=rules,
        team_limit=team_limit,
        types=types,
        openness=openness,
        type_changes=type_changes,
        **settings,
    )
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
        env = env.with_types([who.as_type(env.game)])
    if isinstance(who, Agent):
        who = agent_policy(who, env, mode)
    elif mode != "greedy":
        raise InputError(f"{who!r} has one mode only: it can be chosen for agents.")
    elif isinstance(who, str):
        who = make_policy(env, who)
    if episodes < 1:
        raise InputError(f"The number of episodes {episodes} is too small: it is at least 1.")
    rounds = -(-episodes // (LEGACY_ENVS * LEGACY_EPISODES))
    return run_episodes(
        env,
        who,
        num_envs=LEGACY_ENVS * rounds,
        episodes=LEGACY_EPISODES,
        seed=seed,
        estimator=estimator,
    )


def names_agent(name: str) -> bool:
    """Return whether a name is that of a trained agent or of a file, not of a type or `random`."""
    return (name != RANDOM and Path(name).exists()) or "/" in name or name.endswith(".safetensors")
